package postgres

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// alter changes a setting for all later connections to the database.
func alter(t *testing.T, dsn, setting string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	statement(t, dsn, `ALTER DATABASE `+u.Path[1:]+` SET `+setting)
}

// TestTablesOutOfSight: with a search_path to another schema, Open creates no second, empty
// store beside the existing one.
func TestTablesOutOfSight(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	statement(t, dsn, `CREATE SCHEMA elsewhere`)
	alter(t, dsn, `search_path = elsewhere, public`)
	s, err := Open(t.Context(), Config{URL: dsn})
	if err == nil {
		_ = s.Close()
		t.Fatal("a second store was made")
	}
	if !strings.Contains(err.Error(), "public") || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("the schemas are not named: %v", err)
	}
	alter(t, dsn, `search_path = public, elsewhere`)
	openTest(t, Config{URL: dsn})
}

// TestAddress: no error contains a password that was not URL-encoded.
func TestAddress(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Config{URL: "postgres://gate:7391@8264@localhost/gatehouse"})
	if err == nil || strings.Contains(err.Error(), "8264") {
		t.Error(err)
	}
}

// TestPingOfAnotherVersion: a process that does not know the schema version is not ready.
func TestPingOfAnotherVersion(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	statement(t, s.config.URL, `INSERT INTO gatehouse_schema (version) VALUES ($1)`, SchemaVersion()+1)
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a newer program has migrated: %v", err)
	}
	statement(t, s.config.URL, `DELETE FROM gatehouse_schema WHERE version > $1`, SchemaVersion())
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("after the version was restored: %v", err)
	}
	statement(t, s.config.URL, `DROP TABLE gatehouse_schema`)
	if err := s.Ping(t.Context()); err == nil {
		t.Error("ready without tables")
	}
}

// TestPingOfForgetful: a database whose synchronous_commit was turned off under a running
// process is not ready.
func TestPingOfForgetful(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	alter(t, s.config.URL, `synchronous_commit = off`)
	s.pool.Reset()
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "synchronous_commit") {
		t.Errorf("synchronous_commit is off: %v", err)
	}
}

// TestPingOverEndedConnections: terminated connections say nothing about the server, as long as
// it accepts new ones.
func TestPingOverEndedConnections(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	for range 3 {
		err := s.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) error { _, err := q.ListTenants(); return err })
		if err != nil {
			t.Fatal(err)
		}
		statement(t, pgtest.Superuser(s.config.URL), `SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'gatehouse'`)
		if err := s.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPingOfNobody: no answer within seconds counts as a failure.
func TestPingOfNobody(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{MaxConns: 2})
	for range 2 {
		c, err := s.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*pingTimeout)
	defer cancel()
	if err := s.Ping(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("all connections taken: %v, %v", err, ctx.Err())
	}
}

// TestNoRoom: a full disk, and a lack of memory or connections, are temporary: the caller may
// retry.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"53000", "53100", "53200", "53300", "53400"} {
		if err := explain(&pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code}); !errors.Is(err,
			gatehouse.ErrBusy) {
			t.Errorf("%s: %v", code, err)
		}
	}
	if err := explain(&pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "42601"}); errors.Is(err,
		gatehouse.ErrBusy) {
		t.Error("a mistake in a statement counts as temporary")
	}
}

// TestIdleConnectionsAreGivenBack: an idle replica closes its connections, so that others can
// have them.
func TestIdleConnectionsAreGivenBack(t *testing.T) {
	t.Parallel()
	if d := openTest(t, Config{}).pool.Config().MaxConnIdleTime; d > time.Minute {
		t.Errorf("kept for %s", d)
	}
}

// TestConnectionsEndBeforeTheirSessions: no connection lives until the row of its session is deleted.
func TestConnectionsEndBeforeTheirSessions(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	s := openTest(t, Config{URL: dsn + "&pool_max_conn_lifetime=72h&pool_max_conn_lifetime_jitter=72h"})
	if c := s.pool.Config(); c.MaxConnLifetime > 24*time.Hour || c.MaxConnLifetimeJitter > time.Hour {
		t.Errorf("kept for %s and up to %s more", c.MaxConnLifetime, c.MaxConnLifetimeJitter)
	}
}

// TestNoWrites: the error says when a server accepts no writes.
func TestNoWrites(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	alter(t, dsn, `default_transaction_read_only = on`)
	if _, err := Open(t.Context(), Config{URL: dsn}); err == nil || !strings.Contains(err.Error(), "accepts no writes") {
		t.Errorf("read only: %v", err)
	}
}

// TestRowSecurityOfTheRole: the store overrides row_security = off, which makes statements fail
// instead of limiting their rows, and which only pg_dump wants.
func TestRowSecurityOfTheRole(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	alter(t, dsn, `row_security = off`)
	s := openTest(t, Config{URL: dsn})
	err := s.View(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		_, err := tx.ListPrincipals("", 1)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFrozen: an operator who makes the database read-only while it is served wants no more
// changes. Nothing is written, and the replica reports that it cannot work.
func TestFrozen(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{MaxConns: 2})
	write := func() error {
		return s.Update(t.Context(), "late", func(tx gatehouse.Tx) error {
			return tx.InsertTenant(&gatehouse.Tenant{ID: "late", CreatedAt: tx.Now()})
		})
	}
	freeze(t, s, "on")
	if err := write(); !errors.Is(err, gatehouse.ErrBusy) {
		t.Errorf("a write: %v", err)
	}
	err := s.View(t.Context(), "late", func(tx gatehouse.ReadTx) error { _, err := tx.FindTenant(); return err })
	if !errors.Is(err, gatehouse.ErrNotFound) {
		t.Errorf("it was stored, or is not read: %v", err)
	}
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "accepts no writes") {
		t.Errorf("ready: %v", err)
	}
	freeze(t, s, "off")
	if err := errors.Join(s.Ping(t.Context()), write()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// freeze has the effect of ALTER SYSTEM on all connections of a store.
func freeze(t *testing.T, s *Store, value string) {
	t.Helper()
	for range s.config.MaxConns {
		c, err := s.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
		if _, err := c.Exec(t.Context(), `SET default_transaction_read_only = `+value); err != nil {
			t.Fatal(err)
		}
	}
}
