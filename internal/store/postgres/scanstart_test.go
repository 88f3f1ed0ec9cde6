package postgres

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
)

// backup holds a snapshot, as pg_dump does: rows that change from now on stay in the indexes.
func backup(t *testing.T, s *Store) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, s.config.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(ctx) })
	for _, sql := range []string{`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`, `SELECT count(*) FROM pg_class`} {
		if _, err := c.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
}

// pagesOf counts the pages of a table that work reads.
func pagesOf(t *testing.T, s *Store, table string, work func(q gatehouse.Queues) error) (pages int64) {
	t.Helper()
	err := s.UpdateQueues(context.Background(), func(q gatehouse.Queues) error {
		tx := q.(queues).tx
		before, err := tx.number(fmt.Sprintf(`SELECT pg_stat_get_xact_blocks_fetched('%s'::regclass)`, table))
		if err != nil {
			return err
		}
		if err := work(q); err != nil {
			return err
		}
		pages, err = tx.number(fmt.Sprintf(`SELECT pg_stat_get_xact_blocks_fetched('%s'::regclass)`, table))
		pages -= before
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func execAll(t *testing.T, s *Store, statements ...string) {
	t.Helper()
	ctx := context.Background()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setTenant, AllTenants); err != nil {
			return err
		}
		for _, sql := range statements {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// few bounds the pages of a scan that does not walk over finished rows.
const few = 100

// TestClaimsDoNotWalkOverWhatIsDone: while a backup keeps finished pushes in the indexes, claims
// read few pages. They find pushes that are queued now. A push that is due before the marks is
// found by the next scan from the beginning.
func TestClaimsDoNotWalkOverWhatIsDone(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	// Autovacuum may analyze the table during the test, and with fresh statistics the scan over
	// tenants uses another index: docs/postgresql.md states its cost during a backup.
	statement(t, s.config.URL, `ALTER TABLE push SET (autovacuum_enabled = false)`)
	approved(t, s, "acme", 1002)
	execAll(t, s, `UPDATE push SET not_before = not_before - 60000000`,
		`UPDATE push SET not_before = not_before + 3600000000 WHERE seq IN (SELECT seq FROM push ORDER BY seq LIMIT 2)`)
	if _, err := s.pool.Exec(context.Background(), `VACUUM push`); err != nil {
		t.Fatal(err)
	}
	backup(t, s)
	var got []*gatehouse.Push
	cycle := func() (pages int64) {
		t.Helper()
		got = nil
		return pagesOf(t, s, "push", func(q gatehouse.Queues) (err error) {
			if _, err = q.NextPushAt(); err != nil {
				return err
			}
			if _, err = q.ExpiredLeases(10); err != nil {
				return err
			}
			due, err := q.DueTenants("", 10, 10)
			for _, d := range due {
				list, err := q.ClaimPushes(
					"w",
					time.Minute,
					gatehouse.PushShare{Tenant: d.Tenant, Limit: d.Due, Most: 10},
				)
				if err != nil {
					return err
				}
				got = append(got, list...)
			}
			return err
		})
	}
	settle := func(which string) {
		t.Helper()
		execAll(t, s, `UPDATE push SET status = 'sent', attempts = 1, sent_at = not_before WHERE status = 'picking'`+which,
			`UPDATE push SET status = 'applied', applied_at = not_before WHERE status = 'sent'`+which)
	}
	execAll(t, s, `UPDATE push SET status = 'picking', generation = 1, lease_owner = 'w', lease_until = not_before + seq
WHERE not_before < (SELECT max(not_before) FROM push)`)
	settle("")
	if pages := cycle(); pages < longScanPages {
		t.Fatalf("the first scan over 1000 finished pushes read %d pages: the backup does not keep them", pages)
	}
	cycle() // scans from the beginning once more, and sets the marks
	if s.pushScan.marks == (lowMarks{}) {
		t.Fatal("a long scan set no marks")
	}
	s.pushScan.nextScan = time.Now().Add(time.Hour)
	if pages := cycle(); pages > few {
		t.Errorf("a claim with nothing to do read %d pages", pages)
	}
	approved(t, s, "aaa", 3) // aaa comes before acme, so the walk continues from it to acme
	execAll(t, s,
		`UPDATE push SET not_before = (SELECT max(not_before) FROM push WHERE tenant = 'aaa')
			WHERE tenant = 'acme' AND status = 'queued'`)
	if pages := cycle(); len(got) != 5 || pages > few {
		t.Errorf("a claim of 5 pushes that were queued since read %d pages and claimed %d", pages, len(got))
	}
	// Pushes in flight count until they have ended.
	approved(t, s, "gamma", 12)
	if cycle(); len(got) != 10 {
		t.Errorf("claimed %d of 12 pushes where 10 may be in flight", len(got))
	}
	if cycle(); len(got) != 0 {
		t.Errorf("claimed %d more while 10 are in flight", len(got))
	}
	settle(` AND tenant = 'gamma'`)
	if cycle(); len(got) != 2 {
		t.Errorf("claimed %d of the 2 that were left", len(got))
	}
	// A push that is queued by a clock that fell back is found by the next scan from the
	// beginning.
	approved(t, s, "late", 1)
	execAll(t, s, `UPDATE push SET not_before = 1 WHERE tenant = 'late'`)
	if cycle(); len(got) != 0 {
		t.Error("a push behind the front was claimed: the marks do not count")
	}
	s.pushScan.nextScan = time.Time{}
	if cycle(); len(got) != 1 {
		t.Errorf("claimed %d of 1 push that was queued behind the front", len(got))
	}
}

// TestStepClaimsDoNotWalkOverWhatIsDone is the same test for the steps of runs.
func TestStepClaimsDoNotWalkOverWhatIsDone(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	park(t, s, 1)
	ready := func(workflow string, n int, at string) {
		t.Helper()
		execAll(t, s,
			fmt.Sprintf(`INSERT INTO step (tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses,
  tool, status, attempts,
 generation, skipped, event, lease_owner, created_at, ready_at)
SELECT tenant, 'stp_%[1]s' || i, seq, id, '%[1]s' || i, i, '', '%[1]s', workspace, 'transform', '', 'ready', 0, 0,
  false, '', '', created_at, %[3]s
FROM run, generate_series(1, %[2]d) i`, workflow, n, at))
	}
	settle := func(which string) {
		t.Helper()
		execAll(t, s,
			`UPDATE step SET status = 'succeeded', lease_owner = '', lease_until = NULL, due_at = NULL, finished_at = created_at
WHERE status IN ('running', 'failed_retryable') AND `+which)
	}
	const now = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
	ready("mail", 3000, `created_at - 60000000`)
	if _, err := s.pool.Exec(context.Background(), `VACUUM step`); err != nil {
		t.Fatal(err)
	}
	backup(t, s)
	execAll(t, s,
		`UPDATE step SET status = 'running', generation = 1, attempts = 1, lease_owner = 'w', lease_until = ready_at + seq,
  started_at = ready_at
WHERE status = 'ready'`,
		`UPDATE step SET status = 'failed_retryable', due_at = lease_until, lease_owner = '', lease_until = NULL
			WHERE workflow = 'mail'`)
	settle(`workflow = 'mail'`)

	var got []*gatehouse.Step
	cycle := func() (pages int64) {
		t.Helper()
		got = nil
		return pagesOf(t, s, "step", func(q gatehouse.Queues) error {
			_, err := q.NextRunWorkAt()
			for _, find := range []func(int) ([]gatehouse.StepRef, error){q.ExpiredSteps, q.DueSteps} {
				if err == nil {
					_, err = find(10)
				}
			}
			if err != nil {
				return err
			}
			lanes, err := q.DueLanes("", "", gatehouse.Lane{}, 64, 16)
			if err != nil || len(lanes) == 0 {
				return err
			}
			shares := make([]gatehouse.StepShare, len(lanes))
			for i, l := range lanes {
				shares[i] = gatehouse.StepShare{Lane: l.Lane, Limit: l.Ready, MostOfWorkflow: 10, MostOfTenant: 100}
			}
			got, err = q.ClaimSteps("w", time.Minute, shares...)
			return err
		})
	}
	if pages := cycle(); pages < longScanPages {
		t.Fatalf("the first scan over 3000 finished steps read %d pages: the backup does not keep them", pages)
	}
	cycle()
	if s.stepScan.marks == (lowMarks{}) {
		t.Fatal("a long scan set no marks")
	}
	s.stepScan.nextScan = time.Now().Add(time.Hour)
	if pages := cycle(); pages > few {
		t.Errorf("a claim with nothing to do read %d pages", pages)
	}
	ready("alarm", 3, now) // alarm comes before mail, so the walk continues from it to mail
	execAll(t, s,
		`INSERT INTO step (tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses, tool, status,
  attempts,
 generation, skipped, event, lease_owner, created_at, ready_at)
SELECT tenant, 'stp_new' || i, seq, id, 'new' || i, i, '', 'mail', workspace, 'transform', '', 'ready', 0, 0, false,
  '', '', created_at, `+now+`
FROM run, generate_series(1, 2) i`)
	if pages := cycle(); len(got) != 5 || pages > few {
		t.Errorf("a claim of 5 steps that became ready since read %d pages and claimed %d", pages, len(got))
	}
	settle(`workflow IN ('alarm', 'mail')`)
	ready("nap", 12, now)
	if cycle(); len(got) != 10 {
		t.Errorf("claimed %d of 12 steps where 10 may be running", len(got))
	}
	if cycle(); len(got) != 0 {
		t.Errorf("claimed %d more while 10 are running", len(got))
	}
	settle(`workflow = 'nap'`)
	if cycle(); len(got) != 2 {
		t.Errorf("claimed %d of the 2 that were left", len(got))
	}
	ready("zoo", 1, `1`)
	if cycle(); len(got) != 0 {
		t.Error("a step behind the front was claimed: the marks do not count")
	}
	s.stepScan.nextScan = time.Time{}
	if cycle(); len(got) != 1 {
		t.Errorf("claimed %d of 1 step that became ready behind the front", len(got))
	}
}

// TestSequencerDoesNotWalkOverWhatIsNumbered is the same test for the log.
func TestSequencerDoesNotWalkOverWhatIsNumbered(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	backup(t, s)
	waiting := 0
	look := func() (pages int64) {
		t.Helper()
		return pagesOf(t, s, "audit_waiting", func(q gatehouse.Queues) error {
			list, err := q.UnnumberedLeaves(5)
			waiting = len(list)
			return err
		})
	}
	execAll(t, s, `INSERT INTO audit_waiting (first, tenant, leaves)
SELECT seq, 'default', ARRAY[seq] FROM (SELECT nextval('audit_leaf_row') AS seq FROM generate_series(1, 70000)) l`,
		`DELETE FROM audit_waiting`)
	if pages := look(); pages < longScanPages {
		t.Fatalf("the first scan over 70000 deleted rows read %d pages: the backup does not keep them", pages)
	}
	look()
	s.leafScan.nextScan = time.Now().Add(time.Hour)
	if pages := look(); pages > few || waiting != 0 {
		t.Errorf("a scan with nothing to do read %d pages and found %d leaves", pages, waiting)
	}
	execAll(t, s,
		`WITH l AS (INSERT INTO audit_leaf (seq, tenant, action_id, body)
			SELECT nextval('audit_leaf_row'), 'default', '', '{}'
  FROM generate_series(1, 2) RETURNING seq) INSERT INTO audit_waiting (first, tenant, leaves)
  SELECT seq, 'default', ARRAY[seq] FROM l`)
	if pages := look(); pages > few || waiting != 2 {
		t.Errorf("a scan for 2 leaves read %d pages and found %d", pages, waiting)
	}
}

// TestScanStartIsRenewed: long scans from the beginning are repeated, for a share of the time only, until one
// is short.
func TestScanStartIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			took        time.Duration
			from, until time.Duration
		}{
			{0, 0, time.Second},
			{100 * time.Millisecond, time.Second, 2 * time.Second},
			{time.Minute, 2 * time.Second, 10 * time.Second},
		} {
			var f scanStart
			f.recordPages(longScanPages)
			if _, due := f.current(false); due {
				t.Error("a scan is due for a transaction that cannot make it")
			}
			if _, due := f.current(true); !due {
				t.Error("after a long scan, no scan from the beginning is due")
			}
			if _, due := f.current(true); due {
				t.Error("two scans at a time")
			}
			f.set(lowMarks{7, 8}, longScanPages, c.took)
			in := time.Until(f.nextScan)
			if m, due := f.current(true); m != (lowMarks{7, 8}) || due || in <= c.from || in > c.until {
				t.Errorf("after a scan of %v: from %v, due again %v, in %v", c.took, m, due, in)
			}
			f.set(lowMarks{9, 9}, longScanPages-1, c.took)
			if m, due := f.current(true); m != (lowMarks{}) || due {
				t.Errorf("after a short scan: from %v, due again %v", m, due)
			}
		}
	})
}
