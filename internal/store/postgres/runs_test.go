package postgres

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

var parkedRuns = flag.Int("parked", 100_000, "runs in BenchmarkParkedRuns")

// TestRunPlans checks the plans of the queries about runs for empty tables: each part goes by the
// named index, and nothing is sorted.
func TestRunPlans(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	plan := planner(t, s.config.URL)
	run := func(where string) string { return `SELECT r.id FROM run r ` + where }
	newest := func(f gatehouse.RunFilter, where string) string {
		return run(`WHERE r.tenant = $1 AND ` + shared.RunIndex(f) + where +
			` ORDER BY r.created_at DESC, r.seq DESC LIMIT 50`)
	}
	for _, q := range []struct{ sql, indexes string }{
		{dueLanes, "step_lease step_ready step_ready step_ready"},
		{claimSteps, "run_pkey step_body_pkey step_pkey step_ready step_running"},
		{readyTools, "step_lease step_ready step_ready step_ready"},
		{queuedLanes, "run_queued run_queued run_queued run_started run_started"},
		{oldestQueued, "run_queued"},
		{dueSteps, "step_due"},
		{expiredSteps, "step_lease"},
		{stepMarks, "step_ready"},
		{overdueRuns, "run_deadline"},
		{dueSchedules, "schedule_due"},
		{findStepByKey, "run_tenant_id_key step_body_pkey step_key step_pkey step_run"},
		{findStepByAction, "step_action step_body_pkey"},
		{wakeActionSteps.text, "step_action"},
		{wakeParents.text, "step_child"},
		{spentByTenant, "model_usage_spent"},
		{claimedByTenant, "budget_claim_at"},
		{claimedByWorkflow, "budget_claim_at"},
		{`DELETE FROM budget_claim WHERE tenant = $1 AND currency = $2 AND at < $3`, "budget_claim_at"},
		{spentByWorkflow, "model_usage_workflow"},
		{newest(gatehouse.RunFilter{}, ` AND (r.created_at, r.seq) < ($2, $3)`), "run_created"},
		{newest(gatehouse.RunFilter{Workflow: "f"}, ` AND r.workflow = $2`), "run_workflow"},
		{newest(gatehouse.RunFilter{Status: "x"}, ` AND r.status = $2`), "run_status"},
		{newest(gatehouse.RunFilter{Status: "x", Workflow: "f"}, ` AND r.status = $2 AND r.workflow = $3`), "run_outcome"},
		{findRun, "run_body_pkey run_pkey run_tenant_id_key"},
		{findRunByRef, "run_body_pkey run_pkey run_ref"},
		{lockRuns.text, "run_tenant_id_key"},
		{findRunHeads.text, "run_tenant_id_key"},
		{runBodies, "run_body_pkey run_tenant_id_key"},
		{lineage, "run_tenant_id_key run_tenant_id_key"},
		{findTransitionSteps.text, "run_tenant_id_key run_tenant_id_key step_items step_run step_run step_tenant_id_key"},
		{itemsOfStep, "step_body_pkey step_items"},
		{openItemsOfStep, "step_body_pkey step_items"},
		{findStepOf, "run_tenant_id_key step_body_pkey step_run"},
		{findItemOf, "run_tenant_id_key run_tenant_id_key step_body_pkey step_run step_run"},
		{countSteps, "run_tenant_id_key step_run"},
		{stepsOfRun, "run_tenant_id_key step_body_pkey step_run"},
		{moveRuns.text, "run_pkey run_tenant_id_key"},
		{findStep, "step_body_pkey step_tenant_id_key"},
		{updateSteps.text, "step_key step_tenant_id_key"},
		{passSteps.text, "step_key step_tenant_id_key"},
		{insertAttempts.text, "step_tenant_id_key"},
		{attemptsOfRun, "step_attempt_pkey"},
		{insertItem, "run_tenant_id_key"},
		{lockStepApproval, "approval_pkey step_tenant_id_key"},
		{lockStepAction, "step_tenant_id_key"},
		{lockChild, "run_pkey run_tenant_id_key step_tenant_id_key"},
		{wakeIfAction, "action_archive_pkey step_tenant_id_key"},
		{wakeIfChild, "run_pkey run_tenant_id_key step_tenant_id_key step_tenant_id_key"},
		{unwakeStep, "step_tenant_id_key step_wake_pkey"},
		{runCounts, "run_status"},
		{listWorkflows, "run_workflow workflow_tenant_name_version_key workflow_tenant_name_version_key"},
	} {
		wantIndexes(t, q.sql, plan(q.sql), q.indexes)
	}
	// A scan without a condition on its index starts at the beginning of the index.
	for sql, indexes := range map[string][]string{
		settledSteps:  {"step_wake_pkey"},
		unbundledRuns: {"run_unbundled"},
		nextRunWork:   {"step_due", "step_lease", "run_deadline", "schedule_due"},
	} {
		lines := strings.Join(plan(sql), "\n")
		for _, index := range indexes {
			if !strings.Contains(lines, "using "+index+" ") || unindexed.MatchString(lines) {
				t.Errorf("%s\ndoes not go by %s:\n%s", sql, index, lines)
			}
		}
	}
}

var (
	unindexed = regexp.MustCompile(`Seq Scan|Sort|Bitmap`)
	byIndex   = regexp.MustCompile(`Scan (?:Backward )?using (\w+) on .*? by `)
)

// wantIndexes fails if a plan uses other indexes than these, uses one without a condition, or
// sorts.
func wantIndexes(t *testing.T, sql string, lines []string, want string) {
	t.Helper()
	var indexes []string
	for _, line := range lines {
		if unindexed.MatchString(line) {
			t.Errorf("%s\n%s", sql, line)
		}
		// The index by which an action is looked up is not checked.
		if m := byIndex.FindStringSubmatch(line); m != nil && !strings.Contains(line, " on action ") {
			indexes = append(indexes, m[1])
		}
	}
	if slices.Sort(indexes); strings.Join(indexes, " ") != want {
		t.Errorf("%s\ngoes by %v, want %s:\n%s", sql, indexes, want, strings.Join(lines, "\n"))
	}
}

// park stores n runs with bulk statements: half of them wait for an action, a quarter for a
// distant time, a quarter for an event. Each has a distant deadline and a blocked next step.
func park(tb testing.TB, s *Store, n int) {
	tb.Helper()
	ctx := context.Background()
	err := s.Update(ctx, "default", func(tx gatehouse.Tx) error {
		return tx.InsertWorkflow(
			&gatehouse.Workflow{ID: "wfl_1", Tenant: "default", Name: "triage", Version: 1, CreatedAt: tx.Now()})
	})
	if err != nil {
		tb.Fatal(err)
	}
	const now = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
	statement(tb, s.config.URL, `SELECT set_config('gatehouse.tenant', '*', false);
INSERT INTO run (tenant, id, workflow, version, workspace, status, stop, trigger_type, started_by, starter_id,
  parent_run,
 parent_step, retry_of, writes, created_at, started_at, deadline, evidence)
SELECT 'default', 'run_' || lpad(i::text, 9, '0'), 'triage', 1, '',
  CASE i % 2 WHEN 0 THEN 'waiting_approval' ELSE 'waiting' END, '', 'api', 'ana', 'prn_ana',
 '', '', '', 1, `+now+`, `+now+`, `+now+` + 86400000000 + i, '' FROM generate_series(1, `+fmt.Sprint(n)+`) i;
INSERT INTO run_body (seq, tenant, input, output) SELECT seq, tenant, '{"n":1}', '' FROM run;
INSERT INTO step (tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses, tool, status,
  attempts, generation,
 idempotency_key, skipped, action_id, action_at, event, due_at, lease_owner, created_at, ready_at, started_at)
SELECT tenant, 'stp_a' || seq, seq, id, 'a', 0, '', workflow, workspace, 'connector.shop.update', '', status, 1, 1,
  id || ':a', false,
 CASE WHEN status = 'waiting_approval' THEN 'act_' || seq END,
   CASE WHEN status = 'waiting_approval' THEN created_at END,
 CASE seq % 4 WHEN 1 THEN 'go' ELSE '' END, CASE seq % 4 WHEN 3 THEN created_at + 3600000000 END, '', created_at,
   created_at, created_at FROM run;
INSERT INTO step (tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses, tool, status,
  attempts, generation,
 skipped, event, lease_owner, created_at)
SELECT tenant, 'stp_b' || seq, seq, id, 'b', 1, '', workflow, workspace, 'transform', '', 'blocked', 0, 0, false, '',
  '', created_at FROM run;
ANALYZE run; ANALYZE step;`)
}

// BenchmarkParkedRuns measures a server's polls while runs are parked, each in its own
// transaction: a round trip or two.
func BenchmarkParkedRuns(b *testing.B) {
	s := openTest(b, Config{})
	park(b, s, *parkedRuns)
	for name, poll := range map[string]func(gatehouse.ReadQueues) error{
		"Bare":          func(q gatehouse.ReadQueues) error { _, err := q.In("default").FindTenant(); return err },
		"NextRunWorkAt": func(q gatehouse.ReadQueues) error { _, err := q.NextRunWorkAt(); return err },
		"SettledSteps":  func(q gatehouse.ReadQueues) error { _, err := q.SettledSteps(100); return err },
		"DueSteps":      func(q gatehouse.ReadQueues) error { _, err := q.DueSteps(100); return err },
		"ExpiredSteps":  func(q gatehouse.ReadQueues) error { _, err := q.ExpiredSteps(100); return err },
		"DueLanes": func(q gatehouse.ReadQueues) error {
			_,
				err := q.DueLanes("", "", gatehouse.Lane{}, 64, 16)
			return err
		},
		"ReadyTools": func(q gatehouse.ReadQueues) error { _, err := q.ReadyTools("", 64); return err },
		"QueuedLanes": func(q gatehouse.ReadQueues) error {
			_, err := q.QueuedLanes(gatehouse.QueuedLane{}, 64, 16, time.Now())
			return err
		},
		"OverdueRuns":   func(q gatehouse.ReadQueues) error { _, err := q.OverdueRuns(100); return err },
		"UnbundledRuns": func(q gatehouse.ReadQueues) error { _, err := q.UnbundledRuns(100); return err },
		"DueSchedules":  func(q gatehouse.ReadQueues) error { _, err := q.DueSchedules(100); return err },
		"RunCounts":     func(q gatehouse.ReadQueues) error { _, err := q.RunCounts(); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := s.ViewQueues(context.Background(), poll); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

const stepBatch = 32

// BenchmarkSteps claims steps in batches and completes them in batches: two
// transactions for each.
func BenchmarkSteps(b *testing.B) {
	ctx := context.Background()
	b.Run("store", func(b *testing.B) {
		s := openTest(b, Config{})
		park(b, s, 1)
		statement(b, s.config.URL, `SELECT set_config('gatehouse.tenant', '*', false);
INSERT INTO step (tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses, tool, status,
  attempts, generation,
 skipped, event, lease_owner, created_at, ready_at)
SELECT tenant, 'stp_' || i, seq, id, 's' || i, i, '', workflow, workspace, 'transform', '', 'ready', 0, 0, false, '',
  '', created_at, created_at
FROM run, generate_series(1, `+fmt.Sprint(b.N)+`) i;
INSERT INTO step_body (seq, tenant, item, input, output) SELECT seq, tenant, '', '{"n":1}',
  '' FROM step WHERE status = 'ready'`)
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
		url := database(b)
		statement(b, url, bareSteps)
		statement(b, url, bareStepFill, b.N)
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close(ctx)
		b.ResetTimer()
		for done := 0; done < b.N; {
			rows, err := c.Query(ctx, bareTake, "w", time.Now().Add(time.Minute).UnixMicro(), "default", stepBatch)
			if err != nil {
				b.Fatal(err)
			}
			ids, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (id string, err error) {
				var run, key, input string
				return id, r.Scan(&id, &run, &key, &input)
			})
			if err != nil {
				b.Fatal(err)
			}
			var batch pgx.Batch
			batch.Queue(`begin`)
			for _, id := range ids {
				batch.Queue(bareFinish, `{"ok":true}`, time.Now().UnixMicro(), "default", id)
			}
			batch.Queue(`commit`)
			if err := c.SendBatch(ctx, &batch).Close(); err != nil {
				b.Fatal(err)
			}
			done += len(ids)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
	})
}

// The baseline: the same rows in one bare table, and two statements.
const (
	bareSteps = `CREATE TABLE bare_step (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, run TEXT NOT NULL,
  key TEXT NOT NULL, status TEXT NOT NULL,
 attempts INTEGER NOT NULL, ready_at BIGINT, owner TEXT, lease_until BIGINT, finished_at BIGINT, input TEXT,
   output TEXT);
CREATE INDEX bare_ready ON bare_step (tenant, ready_at) WHERE status = 'ready';
CREATE INDEX bare_lease ON bare_step (lease_until) WHERE status = 'running';`
	bareStepFill = `INSERT INTO bare_step
		SELECT 'stp_' || i, 'default', 'run_' || i / 20, 's' || i % 20, 'ready', 0, i, NULL, NULL, NULL, '{"n":1}', NULL
FROM generate_series(1, $1::int) i`
	bareTake = `UPDATE bare_step SET status = 'running', attempts = attempts + 1, owner = $1, lease_until = $2
		WHERE id IN (
 SELECT id FROM bare_step WHERE tenant = $3 AND status = 'ready'
 ORDER BY ready_at LIMIT $4 FOR UPDATE SKIP LOCKED) RETURNING id, run, key, input`
	bareFinish = `UPDATE bare_step SET status = 'succeeded', output = $1, owner = NULL, lease_until = NULL,
  finished_at = $2
WHERE tenant = $3 AND id = $4 AND status = 'running'`
)
