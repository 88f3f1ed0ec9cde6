package sqlite

import (
	"context"
	"errors"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-dev/gatehouse"
)

// walked takes one action from proposal to applied and so runs every statement
// that writes on the way.
func walked(t *testing.T, s *Store) {
	t.Helper()
	update(t, s, func(tx gatehouse.Tx) error {
		if err := tx.InsertAction(pendingAction("1", tx.Now())); err != nil {
			return err
		}
		if _, err := tx.LockAction("act_1"); err != nil {
			return err
		}
		return decide(tx, "1")
	})
	updateQueues(t, s, func(q gatehouse.Queues) error {
		tx := q.In("default")
		leaves, err := q.UnnumberedLeaves(1)
		if err != nil {
			return err
		}
		return tx.NumberLeaves(0, []*gatehouse.NumberedLeaf{{Row: leaves[0].Row}}, []gatehouse.Hash{{}})
	})
	var p *gatehouse.Push
	updateQueues(t, s, func(q gatehouse.Queues) error {
		list, err := q.ClaimPushes("me", 1e9, gatehouse.PushShare{Tenant: "default", Limit: 1})
		if err == nil {
			p = list[0]
		}
		return err
	})
	move := func(from, to gatehouse.Status) gatehouse.ActionMove {
		return gatehouse.ActionMove{ID: "act_1", From: from, To: to, Finished: to.Finished()}
	}
	update(t, s, func(tx gatehouse.Tx) error {
		q := *p
		q.Status, q.Attempts = gatehouse.PushSent, 1
		if err := tx.UpdatePush(&q, gatehouse.PushPicking, q.Generation); err != nil {
			return err
		}
		return tx.MoveAction(move(gatehouse.StatusApproved, gatehouse.StatusPushing))
	})
	update(t, s, func(tx gatehouse.Tx) error {
		q := *p
		q.Status, q.Attempts, q.LeaseOwner, q.LeaseUntil = gatehouse.PushApplied, 1, "", nil
		if err := tx.UpdatePush(&q, gatehouse.PushSent, q.Generation); err != nil {
			return err
		}
		if err := tx.MoveAction(move(gatehouse.StatusPushing, gatehouse.StatusApplied)); err != nil {
			return err
		}
		err := tx.InsertReceipt(&gatehouse.Receipt{
			ID: "rcp_1", Tenant: "default", ActionID: "act_1", PushID: p.ID, Outcome: gatehouse.ReceiptApplied, Source: "call",
			At: tx.Now(),
		})
		if err != nil {
			return err
		}
		return tx.InsertMirror(
			&gatehouse.AppliedMirror{Tenant: "default", ActionID: "act_1", ReceiptID: "rcp_1", After: `{}`, AppliedAt: tx.Now()})
	})
}

// The CHECKs on the rows of each decision and push compare values with =:
// SQLite builds a temporary table for an IN list of more than two.
func TestHotWritesMakeNoTables(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	walked(t, s)
	seen := make(map[string]bool)
	update(t, s, func(x gatehouse.Tx) error {
		c := x.(*tx).c
		for sql := range c.stmts {
			verb, rest, _ := strings.Cut(strings.TrimSpace(sql), " ")
			if verb != "UPDATE" && verb != "INSERT" || strings.Contains(sql, "RETURNING") {
				continue
			}
			rest = strings.TrimPrefix(strings.TrimPrefix(rest, "INTO "), "OR ROLLBACK ")
			table, _, _ := strings.Cut(rest, " ")
			seen[verb+" "+table] = true
			err := c.each(`EXPLAIN `+sql, func(r *stmt) error {
				_ = r.Int() // the address
				if op := r.Text(); op == "OpenEphemeral" {
					t.Errorf("%s\nmakes a table", sql)
				}
				return nil
			}, make([]any, c.stmts[sql].params)...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, want := range []string{
		"INSERT action", "INSERT proposal", "INSERT approval", "INSERT vote", "INSERT push", "INSERT receipt",
		"INSERT mirror", "INSERT audit_leaf",
		"UPDATE action", "UPDATE approval", "UPDATE push", "INSERT audit_batch",
	} {
		if !seen[want] {
			t.Errorf("no %s was checked", want)
		}
	}
}

// No statement is compiled again because of a bound value such as the limit of
// a page. Compiling again takes a tenth of the time of pushes and steps.
func TestNothingIsCompiledTwice(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	walked(t, s)
	for n := range 4 {
		updateQueues(t, s, func(q gatehouse.Queues) error {
			tx := q.In("default")
			_, err := q.DueTenants("", 10, n+1)
			_, err2 := q.ClaimPushes("me", 1e9, gatehouse.PushShare{Tenant: "default", Limit: n + 1, Most: 10})
			_, err3 := q.UnnumberedLeaves(n + 1)
			_, err4 := tx.ListPushes(gatehouse.PushFilter{Status: gatehouse.PushQueued, Limit: n + 1})
			_, err5 := tx.ListActions(gatehouse.ActionFilter{Status: gatehouse.StatusApplied, Limit: n + 1})
			return errors.Join(err, err2, err3, err4, err5)
		})
	}
	update(t, s, func(x gatehouse.Tx) error {
		c := x.(*tx).c
		for sql, st := range c.stmts {
			if n := sqlite3.Xsqlite3_stmt_status(c.tls, st.p, sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0); n != 0 {
				t.Errorf("%s\nwas compiled %d times more", sql, n)
			}
		}
		return nil
	})
}

// TestChecksHold writes values that a CHECK or a trigger must refuse.
func TestChecksHold(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	walked(t, s)
	insert := func(table, column, value string) string {
		var columns []string
		err := s.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
			return tx.(*readTx).each(`SELECT name FROM pragma_table_info(?) WHERE name <> 'seq'`, func(r *stmt) error {
				columns = append(columns, r.Text())
				return nil
			}, table)
		})
		if err != nil {
			t.Fatal(err)
		}
		values := make([]string, len(columns))
		for i, name := range columns {
			switch name {
			case column:
				values[i] = value
			case "id":
				values[i] = "'other'"
			default:
				values[i] = name
			}
		}
		return `INSERT INTO ` + table + ` (` + strings.Join(columns, ", ") + `) SELECT ` + strings.Join(values, ", ") +
			` FROM ` + table
	}
	for _, sql := range []string{
		`UPDATE action SET status = 'nonsense'`,
		`UPDATE action SET decided_via = 'nonsense'`,
		insert("proposal", "policy_outcome", "'nonsense'"),
		insert("approval", "status", "'nonsense'"),
		`UPDATE push SET status = 'nonsense'`,
		insert("receipt", "outcome", "'nonsense'"),
		`UPDATE push SET status = 'queued'`,
		`UPDATE push SET generation = 0`,
	} {
		err := s.Update(context.Background(), gatehouse.DefaultTenant, func(x gatehouse.Tx) error {
			n, err := x.(*tx).exec(sql)
			if err == nil && n == 0 {
				t.Errorf("%s: changed no row: it proves nothing", sql)
			}
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "CHECK") && !strings.Contains(err.Error(), "no transition") &&
			!strings.Contains(err.Error(), "never falls") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
