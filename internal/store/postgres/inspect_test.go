package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// TestInspect: Inspect creates and writes nothing, not even its own session.
func TestInspect(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	if _, err := Inspect(t.Context(), Config{URL: url}); err == nil ||
		!strings.Contains(err.Error(), "not a store of Gatehouse") {
		t.Errorf("an empty database: %v", err)
	}
	s, err := Open(t.Context(), Config{URL: url, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var before, after int
	count := `SELECT count(*) FROM gatehouse_session`
	if err := s.pool.QueryRow(t.Context(), count).Scan(&before); err != nil {
		t.Fatal(err)
	}
	// The address of a replica, which accepts only servers that take writes.
	r, err := Inspect(t.Context(), Config{URL: url + "&target_session_attrs=read-write", MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = r.View(
		t.Context(),
		gatehouse.DefaultTenant,
		func(tx gatehouse.ReadTx) error { _, err := tx.FindTenant(); return err },
	)
	if err := errors.Join(err, r.Ping(t.Context())); err != nil {
		t.Error(err)
	}
	if err := r.Update(t.Context(), gatehouse.DefaultTenant, func(gatehouse.Tx) error { return nil }); !errors.Is(err,
		ErrReadOnly) {
		t.Errorf("an Update: %v", err)
	}
	if _, err := r.s.pool.Exec(t.Context(), `DELETE FROM policy_active`); err == nil ||
		!strings.Contains(err.Error(), "read-only") {
		t.Errorf("a reader's connection writes: %v", err)
	}
	if err := s.pool.QueryRow(t.Context(), count).Scan(&after); err != nil || after != before {
		t.Errorf("%d sessions before, %d after, %v", before, after, err)
	}
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO gatehouse_schema (version) VALUES (1000)`); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(t.Context(), Config{URL: url}); !errors.Is(err, ErrNewer) ||
		!strings.Contains(err.Error(), "version 1000") {
		t.Errorf("a newer database: %v", err)
	}
}
