package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-dev/gatehouse"
)

// TestOneProcess opens the same file twice. The lock belongs to the open file,
// so two Opens in one process act like two processes.
func TestOneProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	first, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(context.Background(), Config{Path: path, LockWait: -1})
	if err == nil || !strings.Contains(err.Error(), "in use by another Gatehouse process (pid ") ||
		!strings.Contains(err.Error(), filepath.Dir(path)+" ") || strings.Contains(err.Error(), "-lock") {
		t.Fatalf("second Open: error %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err = Open(ctx, Config{Path: path, LockWait: time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("second Open with a deadline: error %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		second, err := Open(context.Background(), Config{Path: path, LockWait: time.Minute})
		if err == nil {
			err = second.Close()
		}
		opened <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Fatalf("Open while another closes: %v", err)
	}
}

// TestMigrate opens an empty file, the same file again, and files of other
// programs.
func TestMigrate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	var schema []string
	for round := range 2 {
		s, err := Open(context.Background(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		var now []string
		err = s.writer.c.each(`SELECT sql FROM sqlite_schema ORDER BY name`,
			func(r *stmt) error { now = append(now, r.Text()); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			if schema = now; len(schema) < 40 {
				t.Fatalf("%d schema objects", len(schema))
			}
			if err := s.Update(context.Background(), gatehouse.DefaultTenant, insertTenant("kept")); err != nil {
				t.Fatal(err)
			}
		} else if strings.Join(now, ";") != strings.Join(schema, ";") || !tenants(t, s)["kept"] {
			t.Fatal("the second start changed the file")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ setup, want string }{
		"foreign": {`CREATE TABLE x (a)`, "another program's"},
		"other":   {`PRAGMA application_id = 1`, "another program's"},
	} {
		path := filepath.Join(t.TempDir(), "x.db")
		conn, err := open(path, true, c.setup)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(context.Background(), Config{Path: path}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestConstraints bypasses the store and writes rows that the schema must
// refuse.
func TestConstraints(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	err := s.UpdateQueues(context.Background(), func(q gatehouse.Queues) error {
		tx := q.In("default")
		if err := tx.InsertAction(pendingAction("1", tx.Now())); err != nil {
			return err
		}
		if err := tx.InsertAction(pendingAction("2", tx.Now())); err != nil {
			return err
		}
		if err := decide(tx, "1"); err != nil {
			return err
		}
		leaves, err := q.UnnumberedLeaves(1)
		if err != nil {
			return err
		}
		err = tx.NumberLeaves(0, []*gatehouse.NumberedLeaf{{Row: leaves[0].Row}}, []gatehouse.Hash{{}})
		if err != nil {
			return err
		}
		return tx.InsertReceipt(&gatehouse.Receipt{
			ID: "rcp_1", Tenant: "default", ActionID: "act_1", PushID: "psh_1", Outcome: gatehouse.ReceiptApplied,
			Source: "call", At: tx.Now(),
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`UPDATE action SET status = 'nonsense' WHERE id = 'act_2'`,
		`UPDATE action SET status = 'approved' WHERE id = 'act_2'`,
		`UPDATE action SET decided_at = NULL WHERE id = 'act_1'`,
		`UPDATE action SET finished_at = 1 WHERE id = 'act_1'`,
		`UPDATE action SET expires_at = NULL WHERE id = 'act_2'`,
		`UPDATE action SET risk = 6`,
		`UPDATE action SET failure_code = 'x' WHERE id = 'act_1'`,
		`UPDATE action SET status = 'reversed' WHERE id = 'act_1'`,
		`UPDATE action SET decided_at = 'yesterday' WHERE id = 'act_1'`,
		`UPDATE action SET tenant = 'nobody'`,
		`DELETE FROM action`,
		`UPDATE proposal SET proposed_change = '{}'`,
		`DELETE FROM proposal`,
		`UPDATE approval SET required = 0`,
		`UPDATE approval SET required = 2 WHERE id = 'apr_2'`,
		`UPDATE approval SET expires_at = expires_at + 1 WHERE id = 'apr_2'`,
		`UPDATE approval SET about = '{}' WHERE id = 'apr_2'`,
		`UPDATE approval SET status = 'requested' WHERE id = 'apr_1'`,
		`INSERT INTO vote SELECT * FROM vote`,
		`UPDATE push SET attempts = -1`,
		`UPDATE push SET generation = -1`,
		`UPDATE push SET status = 'picking'`,
		`UPDATE push SET status = 'sent', lease_until = 1, generation = 1`,
		`UPDATE push SET status = 'nonsense'`,
		`INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts,
  attempt_base, last_error,
		 error_code, not_before, created_at, generation, lease_owner, replays)
		 SELECT tenant, 'psh_2', action_seq, action_id, connector,
		 'k', digest, status, 0, 0, '', '', 1, 1, 0, '', 0 FROM push`,
		`UPDATE receipt SET outcome = 'terminal'`,
		`DELETE FROM receipt`,
		`UPDATE audit_leaf SET body = '{}'`,
		`UPDATE audit_leaf SET seq = seq + 1000`,
		`UPDATE audit_leaf SET tenant = 'x' WHERE seq > (SELECT numbered FROM meta)`,
		`DELETE FROM audit_leaf`,
		`UPDATE audit_batch SET number = 5`,
		`UPDATE audit_batch SET leaves = zeroblob(8)`,
		`UPDATE audit_batch SET hashes = zeroblob(32)`,
		`DELETE FROM audit_batch`,
		`INSERT INTO audit_batch (tenant, number, position, last, leaves, hashes)
			VALUES ('default', 0, 9, 9, zeroblob(8), zeroblob(32))`,
		`INSERT INTO audit_batch (tenant, number, position, last, leaves, hashes)
			SELECT tenant, 1, 9, last, zeroblob(8), zeroblob(32) FROM audit_batch`,
		`INSERT INTO audit_batch (tenant, number, position, last, leaves, hashes)
			VALUES ('default', 1, 9, 9, zeroblob(7), zeroblob(32))`,
		`INSERT INTO audit_batch (tenant, number, position, last, leaves, hashes)
			VALUES ('default', 1, 9, 9, zeroblob(8), zeroblob(31))`,
		`UPDATE meta SET clock = clock - 1`,
		`UPDATE meta SET batch = batch - 1`,
		`INSERT INTO meta (id, clock, batch, numbered) VALUES (2, 0, 0, 0)`,
		`DELETE FROM tenant`,
	} {
		err := s.Update(context.Background(), gatehouse.DefaultTenant, func(x gatehouse.Tx) error {
			n, err := x.(*tx).exec(sql)
			if err == nil && n == 0 {
				t.Errorf("%s: changed no row: it proves nothing", sql)
			}
			return err
		})
		if !isCode(err, sqlite3.SQLITE_CONSTRAINT) {
			t.Errorf("%s: error %v, want a violated constraint", sql, err)
		}
	}
}

// TestMissingProposal: a list fails if the file is damaged and lacks a proposal.
func TestMissingProposal(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	update(t, s, func(x gatehouse.Tx) error {
		if err := x.InsertAction(pendingAction("1", x.Now())); err != nil {
			return err
		}
		_, err := x.(*tx).exec(`DROP TRIGGER proposal_kept`)
		if err == nil {
			_, err = x.(*tx).exec(`DELETE FROM proposal`)
		}
		return err
	})
	err := s.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		_, err := tx.ListActions(gatehouse.ActionFilter{})
		return err
	})
	if err == nil || err.Error() != "sqlite: the action act_1 has no proposal" {
		t.Error(err)
	}
}

// TestViewInterrupted interrupts a statement that would run forever.
func TestViewInterrupted(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Readers: 1})
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		err := s.View(ctx, gatehouse.DefaultTenant, func(x gatehouse.ReadTx) error {
			return x.(*readTx).each(`WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c`,
				func(r *stmt) error {
					if r.Int() == 10 {
						cancel()
					}
					return nil
				})
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("View: error %v", err)
		}
		if n := len(tenants(t, s)); n != 1 {
			t.Fatalf("the connection afterwards reads %d tenants", n)
		}
	}
}

// TestViewCannotWrite checks that a reading connection cannot write.
func TestViewCannotWrite(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	err := s.View(context.Background(), gatehouse.DefaultTenant, func(x gatehouse.ReadTx) error {
		_, err := x.(*readTx).exec(`DELETE FROM principal`)
		return err
	})
	if err == nil {
		t.Fatal("a View wrote")
	}
}
