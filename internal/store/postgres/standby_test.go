package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// synchronous sets whether each COMMIT waits for the missing standby.
func synchronous(t *testing.T, c *pgtest.Cluster, on bool) {
	t.Helper()
	if err := c.Synchronous(on); err != nil {
		t.Fatal(err)
	}
}

func putTenant(s *Store, id string) error {
	return s.Update(context.Background(), id, func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: id, CreatedAt: tx.Now()})
	})
}

// TestCommitWithoutStandby: a commit that no standby has is not acknowledged, however often it is looked
// up, and nobody sees it. Once no standby is required, it is stored.
func TestCommitWithoutStandby(t *testing.T) {
	t.Parallel()
	c := pgtest.New(t)
	s := openTest(t, Config{URL: c.DSN("postgres"), Patience: time.Second})
	if err := putTenant(s, "before"); err != nil {
		t.Fatal(err)
	}
	synchronous(t, c, true)
	if err := putTenant(s, "acme"); err == nil || errors.Is(err, gatehouse.ErrBusy) ||
		errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v: no standby has it, and nobody knows whether one will", err)
	}
	find := func() error {
		return s.View(t.Context(), "acme", func(tx gatehouse.ReadTx) error { _, err := tx.FindTenant(); return err })
	}
	if err := find(); !errors.Is(err, gatehouse.ErrNotFound) {
		t.Errorf("error %v: a retry would be reported as stored", err)
	}
	if n := len(s.updateSlots); n != 1 {
		t.Errorf("%d slots are in use: one connection of the server waits", n)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if err := s.Ping(t.Context()); err != nil {
			if !strings.Contains(err.Error(), "standby of synchronous_standby_names") {
				t.Errorf("Ping: %v", err)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("the store is ready, and accepts no writes")
		}
	}
	synchronous(t, c, false)
	for end := time.Now().Add(time.Minute); len(s.updateSlots) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the slot is not released")
		}
	}
	if err := find(); err != nil {
		t.Error(err)
	}
}

// TestCommitWaitCanceled: if somebody cancels a COMMIT that waits for a standby, the server reports it as
// committed, but the store does not acknowledge it.
func TestCommitWaitCanceled(t *testing.T) {
	t.Parallel()
	c := pgtest.New(t)
	for name, end := range map[string]string{"cancel": "pg_cancel_backend", "terminate": "pg_terminate_backend"} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, Config{URL: c.DSN("postgres"), Patience: 2 * time.Second})
			if err := putTenant(s, name+"_before"); err != nil {
				t.Fatal(err)
			}
			synchronous(t, c, true)
			conn, err := pgx.Connect(t.Context(), c.DSN("postgres"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			done := make(chan error, 1)
			go func() { done <- putTenant(s, name+"_acme") }()
			for ended := 0; ended == 0; time.Sleep(time.Millisecond) {
				select {
				case err := <-done:
					t.Fatalf("the COMMIT did not wait: %v", err)
				default:
				}
				if err := conn.QueryRow(t.Context(),
					`SELECT count(`+end+`(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`).Scan(&ended); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-done; err == nil || errors.Is(err, gatehouse.ErrBusy) {
				t.Errorf("error %v: no standby has it, and nobody knows whether one will", err)
			}
			if n := len(s.updateSlots); name == "cancel" && n > 0 {
				t.Errorf("%d slots are in use: the connection is back in the pool", n)
			}
			synchronous(t, c, false)
			if err := putTenant(s, name+"_after"); err != nil {
				t.Errorf("the store does not recover: %v", err)
			}
		})
	}
}
