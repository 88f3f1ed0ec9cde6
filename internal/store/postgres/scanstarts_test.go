package postgres

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
)

// look lets a queue scan from the beginning now. All later scans start at the marks that it returns.
func look(t *testing.T, s *Store, f *scanStart) (m lowMarks) {
	t.Helper()
	f.longScan, f.nextScan = true, time.Time{}
	err := s.Update(context.Background(), gatehouse.DefaultTenant, func(x gatehouse.Tx) (err error) {
		m, err = x.(*tx).scanFrom(f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.set(m, longScanPages, time.Hour)
	f.nextScan = time.Now().Add(time.Hour)
	return m
}

// begins opens a transaction under the name of a program, and returns the server's clock.
func begins(t *testing.T, s *Store, program string) (tx pgx.Tx, at int64) {
	t.Helper()
	ctx := context.Background()
	config, err := pgx.ParseConfig(s.config.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = program
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(ctx) })
	if tx, err = c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}); err == nil {
		err = tx.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM (`+setTenant+`) x`,
			AllTenants).Scan(&at)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tx, at
}

// TestScanStartWaitsForWriters: the rows of a long transaction are found as soon as it
// commits, also during a backup: scans in the meantime set no mark beyond those rows.
func TestScanStartWaitsForWriters(t *testing.T) {
	t.Parallel()
	const (
		readies = `INSERT INTO step (tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses, tool,
  status, attempts,
 generation, skipped, event, lease_owner, created_at, ready_at)
SELECT tenant, 'stp_late', seq, id, 'late', 9, '', 'late', workspace, 'transform', '', 'ready', 0, 0, false, '', '',
  created_at, $1::bigint FROM run`
		frees = `UPDATE push SET not_before = $1::bigint WHERE tenant = 'acme'`
	)
	for name, c := range map[string]struct {
		program       string
		before, after []string
	}{
		"written":     {"another", []string{readies, frees}, nil},
		"not written": {"gatehouse", nil, []string{readies, frees}},
		"in between":  {"another", []string{readies}, []string{frees}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := openTest(t, Config{}), context.Background()
			park(t, s, 1)
			approved(t, s, "acme", 1)
			execAll(t, s, `UPDATE push SET not_before = not_before + 36000000000`)
			backup(t, s)
			other, at := begins(t, s, c.program)
			do := func(statements []string) {
				t.Helper()
				for _, sql := range statements {
					if _, err := other.Exec(ctx, sql, at); err != nil {
						t.Fatal(err)
					}
				}
			}
			do(c.before)
			s.high.Store(time.Now().Add(time.Hour).UnixMicro()) // the transaction takes that long
			for _, f := range []*scanStart{&s.stepScan, &s.pushScan, &s.expiryScan} {
				if m := look(t, s, f); slices.Max(m[:]) > at || m[0] == 0 {
					t.Errorf("%s: scans begin at %v, but a transaction that began at %d is under way", f.table, m, at)
				}
			}
			do(c.after)
			if err := other.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			err := s.UpdateQueues(ctx, func(q gatehouse.Queues) error {
				lanes, err := q.DueLanes("", "", gatehouse.Lane{}, 64, 16)
				if err != nil {
					return err
				}
				steps := 0
				for _, l := range lanes {
					list, err := q.ClaimSteps("w", time.Minute, gatehouse.StepShare{Lane: l.Lane, Limit: l.Ready})
					if err != nil {
						return err
					}
					steps += len(list)
				}
				pushes, err := q.ClaimPushes("w", time.Minute, gatehouse.PushShare{Tenant: "acme", Limit: 10})
				if steps != 1 || len(pushes) != 1 {
					t.Errorf("claimed %d of 1 step and %d of 1 push that were stored meanwhile", steps, len(pushes))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if m := look(t, s, &s.pushScan); m[0] <= at {
				t.Errorf("scans begin at %d, want after %d: the backup holds them back", m[0], at)
			}
		})
	}
}

// TestScanFromTheBeginning: a Read scans from the beginning too, over the rows of all
// tenants, whichever tenant it is for; a View does so only before its first statement. The transactions under
// way are read before the rows, and each of the two queries has its own snapshot.
func TestScanFromTheBeginning(t *testing.T) {
	t.Parallel()
	counter := &tripCounter{}
	s, ctx := openTest(t, Config{trip: counter.record}), context.Background()
	park(t, s, 1)
	approved(t, s, "beta", 2)
	execAll(t, s,
		`INSERT INTO step (tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses, tool, status,
  attempts,
 generation, skipped, event, lease_owner, created_at, ready_at, lease_until, due_at)
SELECT tenant, 'stp_' || k, seq, id, k, 9, '', k, workspace, 'transform', '', state, 1, 1, false, '', '', created_at,
  at, lease, due
FROM run, (VALUES ('x', 'ready', 7, NULL, NULL), ('y', 'running', 1, 8, NULL), ('z', 'failed_retryable', 1, NULL,
  9)) v (k, state, at, lease, due)`,
		`UPDATE push SET not_before = 7`,
		`UPDATE push SET status = 'picking', generation = 1, lease_owner = 'w', lease_until = 8 WHERE id = (SELECT min(id)
			FROM push)`)
	s.stepScan.longScan = true
	trips := counter.count(t, "a query", func() {
		err := s.ReadQueues(ctx, func(q gatehouse.ReadQueues) error {
			lanes, err := q.DueLanes("acme", "", gatehouse.Lane{}, 64, 16)
			if len(lanes) != 0 {
				t.Errorf("another tenant's lanes: %v", lanes)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	if trips != 2 {
		t.Fatalf("a scan and a query took %d round trips", trips)
	}
	at := -1
	for _, sql := range []string{beginUpdate, readClock, oldestWriter, stepMarks, `commit`} {
		next := slices.Index(counter.trips[0], sql)
		if next <= at {
			t.Errorf("%q is at %d, after %d", sql, next, at)
		}
		at = next
	}
	err := s.View(ctx, "acme", func(x gatehouse.ReadTx) error {
		tx := x.(*readTx)
		for f, want := range map[*scanStart]lowMarks{&s.stepScan: {7, 8, 9}, &s.pushScan: {7, 8}} {
			f.longScan, f.nextScan = true, time.Time{}
			if m, err := tx.scanFrom(f); err != nil || m != want || tx.begun || tx.tenant != "acme" {
				t.Errorf("%s: a scan in a View of another tenant returned %v, %v", f.table, m, err)
			}
		}
		if _, err := tx.LogSize(); err != nil {
			return err
		}
		s.stepScan.set(lowMarks{1, 2, 3}, longScanPages, time.Hour)
		s.stepScan.nextScan = time.Time{}
		if m, err := tx.scanFrom(&s.stepScan); err != nil || m != (lowMarks{1, 2, 3}) || !s.stepScan.nextScan.IsZero() {
			t.Errorf("a View scanned from the beginning after its first statement: %v, %v", m, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSweepsDoNotWalkOverWhatWasDecided: sweeps skip the actions that were decided before they
// expired, and find the expired ones.
func TestSweepsDoNotWalkOverWhatWasDecided(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	execAll(t, s,
		`INSERT INTO action (tenant, id, status, action_type, risk, proposer_id, idempotency_key, proposed_at, expires_at,
  decided_by, decided_via)
SELECT 'default', 'act_' || i, 'pending', repeat('a', 400), 3, 'prn_bot', 'k' || i, 1, i, '', ''
FROM generate_series(1, 12000) i`)
	backup(t, s)
	execAll(t, s, `UPDATE action SET status = 'canceled', decided_at = 1, finished_at = 1`)
	found := 0
	sweep := func() (pages int64) {
		t.Helper()
		return pagesOf(t, s, "action", func(q gatehouse.Queues) error {
			refs, err := q.ExpiredActions(10)
			found = len(refs)
			return err
		})
	}
	if pages := sweep(); pages < longScanPages {
		t.Fatalf("the first scan over 12000 decided actions read %d pages: the backup does not keep them", pages)
	}
	sweep()
	if s.expiryScan.marks == (lowMarks{}) {
		t.Fatal("a long scan set no marks")
	}
	s.expiryScan.nextScan = time.Now().Add(time.Hour)
	if pages := sweep(); pages > few {
		t.Errorf("a sweep with nothing to do read %d pages", pages)
	}
	err := s.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		a := pendingAction("new", tx.Now())
		a.Approval.ExpiresAt = tx.Now()
		return tx.InsertAction(a)
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages := sweep(); found != 1 || pages > few {
		t.Errorf("a sweep for 1 that expired read %d pages and found %d", pages, found)
	}
}
