package sqlite

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

var parkedRuns = flag.Int("parked", 100_000, "runs in BenchmarkParkedRuns")

// park inserts n runs with bulk statements. Half of them wait for an action, a
// quarter for a distant time, a quarter for an event. Each has a distant
// deadline and one blocked step after the waiting one.
func park(tb testing.TB, s *Store, n int) {
	tb.Helper()
	err := s.Update(context.Background(), "default", func(x gatehouse.Tx) error {
		t := x.(*tx)
		if err := t.InsertWorkflow(
			&gatehouse.Workflow{ID: "wfl_1", Tenant: "default", Name: "triage", Version: 1, CreatedAt: t.at}); err != nil {
			return err
		}
		now := fmt.Sprint(t.at.UnixMicro())
		for _, sql := range []string{
			`INSERT INTO run (seq, tenant, id, workflow, version, workspace, status, stop, trigger_type, started_by,
  starter_id, parent_run,
 parent_step, retry_of, writes, created_at, started_at, deadline, evidence)
WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < ` + fmt.Sprint(n) + `)
SELECT i, 'default', printf('run_%09d', i), 'triage', 1, '', iif(i % 2 = 0, 'waiting_approval', 'waiting'), '',
  'api', 'ana', 'prn_ana', '', '', '', 1,
 ` + now + ` - i, ` + now + ` - i, ` + now + ` + 86400000000 + i, '' FROM g`,
			`INSERT INTO run_body (seq, tenant, input, output) SELECT seq, tenant, '{"n":1}', '' FROM run`,
			`INSERT INTO step (seq, tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses, tool,
  status, attempts, generation,
 idempotency_key, skipped, action_id, action_at, event, due_at, lease_owner, created_at, ready_at, started_at)
SELECT seq * 2, tenant, printf('stp_%09d_a', seq), seq, id, 'a', 0, '', workflow, workspace, 'connector.shop.update',
  '', status, 1, 1,
 id || ':a', 0, iif(status = 'waiting_approval', 'act_' || seq, NULL), iif(status = 'waiting_approval', created_at,
   NULL), iif(seq % 4 = 1, 'go', ''),
 iif(seq % 4 = 3, ` + now + ` + 3600000000 + seq, NULL), '', created_at, created_at, created_at FROM run`,
			`INSERT INTO step (seq, tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses, tool,
  status, attempts, generation,
 skipped, event, lease_owner, created_at)
SELECT seq * 2 + 1, tenant, printf('stp_%09d_b', seq), seq, id, 'b', 1, '', workflow, workspace, 'transform', '',
  'blocked', 0, 0, 0, '', '', created_at FROM run`,
		} {
			if _, err := t.exec(sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// polls are the queries that a server's loops repeat while nothing happens.
var polls = map[string]func(gatehouse.ReadQueues) (int, error){
	"NextRunWorkAt": func(q gatehouse.ReadQueues) (int, error) { _, err := q.NextRunWorkAt(); return 0, err },
	"SettledSteps":  func(q gatehouse.ReadQueues) (int, error) { r, err := q.SettledSteps(100); return len(r), err },
	"DueSteps":      func(q gatehouse.ReadQueues) (int, error) { r, err := q.DueSteps(100); return len(r), err },
	"ExpiredSteps":  func(q gatehouse.ReadQueues) (int, error) { r, err := q.ExpiredSteps(100); return len(r), err },
	"DueLanes": func(q gatehouse.ReadQueues) (int, error) {
		r, err := q.DueLanes("", "", gatehouse.Lane{Tenant: "acme", Workspace: "w", Workflow: "f"}, 64, 16)
		return len(r), err
	},
	"ReadyTools": func(q gatehouse.ReadQueues) (int, error) { r, err := q.ReadyTools("", 64); return len(r), err },
	"QueuedLanes": func(q gatehouse.ReadQueues) (int, error) {
		r, err := q.QueuedLanes(gatehouse.QueuedLane{}, 64, 16, q.Now().Add(-time.Minute))
		return len(r), err
	},
	"OverdueRuns":   func(q gatehouse.ReadQueues) (int, error) { r, err := q.OverdueRuns(100); return len(r), err },
	"UnbundledRuns": func(q gatehouse.ReadQueues) (int, error) { r, err := q.UnbundledRuns(100); return len(r), err },
	"DueSchedules":  func(q gatehouse.ReadQueues) (int, error) { r, err := q.DueSchedules(100); return len(r), err },
}

// TestParkedRunsCostNothing counts the steps of SQLite's virtual machine for each poll: at most 100 more with thousands
// of parked runs than with none.
func TestParkedRunsCostNothing(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Readers: 1})
	cost := func() map[string]int {
		took := make(map[string]int)
		for name, poll := range polls {
			c := <-s.readers
			for _, st := range c.stmts {
				sqlite3.Xsqlite3_stmt_status(c.tls, st.p, sqlite3.SQLITE_STMTSTATUS_VM_STEP, 1)
			}
			s.readers <- c
			err := s.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) error {
				n, err := poll(q)
				if n != 0 {
					t.Errorf("%s finds %d", name, n)
				}
				return err
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c = <-s.readers
			for _, st := range c.stmts {
				took[name] += int(sqlite3.Xsqlite3_stmt_status(c.tls, st.p, sqlite3.SQLITE_STMTSTATUS_VM_STEP, 1))
			}
			s.readers <- c
		}
		return took
	}
	empty := cost()
	park(t, s, 4000)
	for name, n := range cost() {
		// The head of a queue is read even when nothing in it is due.
		if n > empty[name]+100 {
			t.Errorf("%s takes %d VM steps, want at most 100 more than the %d with nothing parked", name, n, empty[name])
		}
	}
}

// TestRunPlans: by their query plans, the statements below scan no whole table, and none sorts. The partial index
// run_unbundled may be scanned.
func TestRunPlans(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Readers: 1})
	reader := <-s.readers
	defer func() { s.readers <- reader }()
	statements := map[string]string{
		"find": findRun, "by ref": runRef, "head": runHead, "bodies": runBodies, "steps": stepsOfRun, "top": topSteps,
		"item": itemOfRun, "items": itemsOfStep, "open items": openItemsOfStep, "step of": findStepOf, "count": countSteps,
		"step": findStep, "by key": findStepByKey, "by action": findStepByAction, "of an action": stepsOfAction,
		"lane": nextLane, "first tool": firstTool, "tool": nextTool, "longest": longest, "tool leased": toolLeased,
		"ready": countReady, "of workflow": runningOfWorkflow, "of tenant": runningOfTenant, "claim": claimSteps,
		"queued": nextQueued, "count queued": countQueued, "starts": countStarts,
		"oldest": `SELECT r.id FROM run r ` + oldestQueued,
		"due":    dueSteps, "expired": expiredSteps, "overdue": `SELECT r.id FROM run r ` + overdueRuns,
		"unbundled": `SELECT r.id FROM run r ` + unbundledRuns, "schedules": dueSchedules, "spent": spentByTenant,
		"spent of one": spentByWorkflow, "claimed": claimedByTenant, "claimed of one": claimedByWorkflow,
		"update": updateStep, "move": moveRun, "since": runsSince,
	}
	for _, f := range []gatehouse.RunFilter{{}, {Status: "x"}, {Workflow: "x"}, {Status: "x", Workflow: "x"}} {
		sql := `SELECT r.seq FROM run r WHERE r.tenant = ? AND ` + shared.RunIndex(f)
		if f.Workflow != "" {
			sql += ` AND r.workflow = ?`
		}
		if f.Status != "" {
			sql += ` AND r.status = ?`
		}
		statements[fmt.Sprintf("list %+v", f)] = sql +
			` AND (r.created_at, r.seq) < (?, ?) ORDER BY r.created_at DESC, r.seq DESC LIMIT ?`
	}
	for name, sql := range statements {
		st, err := reader.cached(sql)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var plan []string
		err = reader.each(`EXPLAIN QUERY PLAN `+sql, func(r *stmt) error {
			r.column = 3
			plan = append(plan, r.Text())
			return nil
		}, make([]any, st.params)...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, line := range plan {
			if strings.HasPrefix(line, "SCAN ") && !strings.HasPrefix(line, "SCAN (") &&
				!strings.Contains(line, "run_unbundled") || strings.Contains(line, "TEMP B-TREE") {
				t.Errorf("%s: %s", name, strings.Join(plan, "\n\t"))
				break
			}
		}
	}
}

// BenchmarkParkedRuns measures a server's polls while runs are parked, each
// poll in its own transaction.
func BenchmarkParkedRuns(b *testing.B) {
	s := openTest(b, Config{})
	park(b, s, *parkedRuns)
	for name, poll := range polls {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := s.ViewQueues(context.Background(),
					func(q gatehouse.ReadQueues) error { _, err := poll(q); return err }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("RunCounts", func(b *testing.B) {
		for b.Loop() {
			if err := s.ViewQueues(context.Background(),
				func(q gatehouse.ReadQueues) error { _, err := q.RunCounts(); return err }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

const stepBatch = 32

// BenchmarkSteps claims a batch of steps in one transaction, and completes it in another.
func BenchmarkSteps(b *testing.B) {
	ctx := context.Background()
	b.Run("store", func(b *testing.B) {
		s := openTest(b, Config{})
		readySteps(b, s, b.N)
		lane := gatehouse.StepShare{Lane: gatehouse.Lane{Tenant: "default", Workflow: "triage"}, Limit: stepBatch,
			MostOfWorkflow: 1000}
		b.ResetTimer()
		for done := 0; done < b.N; {
			var got []*gatehouse.Step
			err := s.UpdateQueues(
				ctx,
				func(q gatehouse.Queues) (err error) { got, err = q.ClaimSteps("w", time.Minute, lane); return err },
			)
			if err != nil || len(got) == 0 {
				b.Fatal(len(got), err)
			}
			err = s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
				now := tx.Now()
				for _, st := range got {
					st.Status, st.LeaseOwner, st.LeaseUntil, st.FinishedAt = gatehouse.StepSucceeded, "", nil, &now
					st.Input, st.Output = "", `{"ok":true}`
					if err := tx.UpdateStep(st, gatehouse.StepRunning, st.Generation); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			done += len(got)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
	})
	b.Run("bare", func(b *testing.B) {
		db := bareOpen(b, 0)
		if _, err := db.Exec(bareSteps); err != nil {
			b.Fatal(err)
		}
		if _, err := db.Exec(bareFill, b.N); err != nil {
			b.Fatal(err)
		}
		claim, err := db.Prepare(bareTake)
		if err != nil {
			b.Fatal(err)
		}
		finish, err := db.Prepare(bareFinish)
		if err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		for done := 0; done < b.N; {
			var ids []string
			tx, err := db.Begin()
			if err != nil {
				b.Fatal(err)
			}
			rows, err := tx.Stmt(claim).Query("w", time.Now().Add(time.Minute).UnixMicro(), "default", stepBatch)
			if err != nil {
				b.Fatal(err)
			}
			for rows.Next() {
				var id, run, key, input string
				if err := rows.Scan(&id, &run, &key, &input); err != nil {
					b.Fatal(err)
				}
				ids = append(ids, id)
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				b.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				b.Fatal(err)
			}
			if tx, err = db.Begin(); err != nil {
				b.Fatal(err)
			}
			for _, id := range ids {
				if _, err := tx.Stmt(finish).Exec(`{"ok":true}`, time.Now().UnixMicro(), "default", id); err != nil {
					b.Fatal(err)
				}
			}
			if err := tx.Commit(); err != nil {
				b.Fatal(err)
			}
			done += len(ids)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
	})
}

// The baseline: the same rows in one plain table, and two statements.
const (
	bareSteps = `CREATE TABLE step (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, run TEXT NOT NULL, key TEXT NOT NULL,
  status TEXT NOT NULL,
 attempts INTEGER NOT NULL, ready_at INTEGER, owner TEXT, lease_until INTEGER, finished_at INTEGER, input TEXT,
   output TEXT) STRICT;
CREATE INDEX step_ready ON step (tenant, ready_at) WHERE status = 'ready';
CREATE INDEX step_lease ON step (lease_until) WHERE status = 'running';`
	bareFill = `INSERT INTO step WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < ?)
SELECT printf('stp_%09d', i), 'default', printf('run_%09d', i / 20), 's' || i % 20, 'ready', 0, i, NULL, NULL, NULL,
  '{"n":1}', NULL FROM g`
	bareTake = `UPDATE step SET status = 'running', attempts = attempts + 1, owner = ?, lease_until = ?
WHERE rowid IN (SELECT rowid FROM step WHERE tenant = ? AND status = 'ready'
ORDER BY ready_at LIMIT ?) RETURNING id, run, key, input`
	bareFinish = `UPDATE step SET status = 'succeeded', output = ?, owner = NULL, lease_until = NULL, finished_at = ?
		WHERE tenant = ? AND id = ? AND status = 'running'`
)

// readySteps inserts n ready steps with a small input, twenty per run.
func readySteps(b *testing.B, s *Store, n int) {
	b.Helper()
	err := s.Update(context.Background(), "default", func(x gatehouse.Tx) error {
		t := x.(*tx)
		if err := t.InsertWorkflow(
			&gatehouse.Workflow{ID: "wfl_1", Tenant: "default", Name: "triage", Version: 1, CreatedAt: t.at}); err != nil {
			return err
		}
		var r *gatehouse.Run
		for i := range n {
			if i%20 == 0 {
				r = &gatehouse.Run{
					ID: fmt.Sprintf("run_%09d", i), Tenant: "default", Workflow: "triage", Version: 1, Status: gatehouse.RunQueued,
					Trigger: gatehouse.TriggerAPI, Input: `{"n":1}`, CreatedAt: t.at,
				}
			}
			r.Steps = append(r.Steps, &gatehouse.Step{
				ID: fmt.Sprintf("stp_%09d", i), Tenant: "default", RunID: r.ID, Key: fmt.Sprint("s", i%20), Index: i % 20,
				Workflow: "triage",
				Status:   gatehouse.StepReady, Input: `{"n":1}`, CreatedAt: t.at, ReadyAt: &t.at,
			})
			if i%20 == 19 || i == n-1 {
				if err := t.InsertRun(r); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
