package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestInspect reads beside a store that writes, sees its commits, and changes nothing.
func TestInspect(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	if _, err := Inspect(t.Context(), Config{Path: path}); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("without a file: %v", err)
	}
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := Inspect(t.Context(), Config{Path: path, Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(
		t.Context(),
		"acme",
		func(tx gatehouse.Tx) error { return tx.InsertTenant(&gatehouse.Tenant{ID: "acme"}) },
	)
	if err != nil {
		t.Fatal(err)
	}
	err = r.View(t.Context(), "acme", func(tx gatehouse.ReadTx) error { _, err := tx.FindTenant(); return err })
	if err != nil {
		t.Errorf("what was committed is not seen: %v", err)
	}
	if err := r.Update(t.Context(), gatehouse.DefaultTenant, func(gatehouse.Tx) error { return nil }); !errors.Is(err,
		ErrReadOnly) {
		t.Errorf("an Update: %v", err)
	}
	// The connection itself refuses writes, too.
	c := <-r.s.readers
	if _, err := c.exec(`DELETE FROM policy_active`); err == nil {
		t.Error("a reader's connection writes")
	}
	r.s.readers <- c
	if err := errors.Join(r.Ping(t.Context()), r.Close()); err != nil {
		t.Error(err)
	}
	if err := r.View(t.Context(), gatehouse.DefaultTenant, func(gatehouse.ReadTx) error { return nil }); err == nil {
		t.Error("a closed reader reads")
	}
}

// TestInspectRefusesOtherFiles: a file of another program is refused. TestOtherVersionsAreRefused is about versions.
func TestInspectRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := open(path, false, `PRAGMA application_id = 1`)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	_, err = Inspect(t.Context(), Config{Path: path})
	if err == nil || !strings.Contains(err.Error(), "not a database file of Gatehouse") {
		t.Error(err)
	}
}

// TestBackup copies a file that is in use, and never leaves an incomplete copy.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, to := filepath.Join(dir, "gatehouse.db"), filepath.Join(dir, "it's a copy.db")
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Backup(ctx, path, to); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled backup: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "it*")); len(left) > 0 {
		t.Errorf("a canceled backup leaves %v", left)
	}
	// The remains of a killed backup do not disturb the next one.
	if err := os.WriteFile(to+".partial", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Backup(t.Context(), path, to); err != nil {
		t.Fatal(err)
	}
	under := filepath.Join(path, "copy.db") // in a file, not a folder
	if err := Backup(t.Context(), path, under); err == nil || strings.Contains(err.Error(), "exists already") {
		t.Errorf("a backup under a file: %v", err)
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(to + ".partial"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the partial file is left: %v", err)
	}
	before, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := Backup(t.Context(), path, to); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("over another backup: %v", err)
	}
	if after, err := os.ReadFile(to); err != nil || string(after) != string(before) {
		t.Errorf("the first backup has changed, %v", err)
	}
	r, err := Inspect(t.Context(), Config{Path: to, Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	err = r.View(
		t.Context(),
		gatehouse.DefaultTenant,
		func(tx gatehouse.ReadTx) error { _, err := tx.FindTenant(); return err },
	)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Error(err)
	}
}
