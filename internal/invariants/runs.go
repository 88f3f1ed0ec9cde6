package invariants

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
)

// runRows is one run with all its steps.
type runRows struct {
	seq              int64
	tenant, id       string
	status, stop     gatehouse.RunStatus
	evidence, bundle string
	archive          []byte
	steps            []stepRow
}

type stepRow struct {
	gatehouse.Step
	leased bool
	action gatehouse.Status    // "" when it does not exist
	child  gatehouse.RunStatus // "" when it does not exist
	wakes  int
	// highestGeneration is the highest generation of the attempts, storedAttempts is their number.
	highestGeneration, storedAttempts int
}

// runs walks all runs page by page and checks rules 16 and 18 to 21.
func (c *checker) runs(ctx context.Context) error {
	for after := int64(0); ; {
		var runs []*runRows
		err := c.in(ctx, func(tx *sql.Tx) (err error) {
			runs, err = c.loadRuns(ctx, tx, after)
			return err
		})
		if err != nil || len(runs) == 0 {
			return err
		}
		for _, f := range runs {
			f.check(c.r)
		}
		after = runs[len(runs)-1].seq
	}
}

func (c *checker) loadRuns(ctx context.Context, tx *sql.Tx, after int64) (runs []*runRows, err error) {
	bySeq := make(map[int64]*runRows)
	err = each(ctx, tx,
		fmt.Sprintf(`SELECT r.seq, r.tenant, r.id, r.status, r.stop, r.evidence, coalesce(b.sha256, ''), b.archive
FROM run r LEFT JOIN bundle b ON b.tenant = r.tenant AND b.run_id = r.id WHERE r.seq > %d ORDER BY r.seq LIMIT %d`,
			after, c.o.Page), func(rows *sql.Rows) error {
			f := &runRows{}
			err := rows.Scan(&f.seq, &f.tenant, &f.id, &f.status, &f.stop, &f.evidence, &f.bundle, &f.archive)
			if f.bundle != "" {
				sum := sha256.Sum256(f.archive)
				f.archive = sum[:] // the archive itself may be large
			}
			runs, bySeq[f.seq] = append(runs, f), f
			return err
		})
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	last := runs[len(runs)-1].seq
	return runs,
		each(ctx, tx,
			fmt.Sprintf(`SELECT s.run_seq, s.tenant, s.run_id, s.id, s.key, s.parent, s.status, s.attempts, s.generation, s.event,
s.lease_owner, s.lease_until IS NOT NULL, s.due_at IS NOT NULL, s.ready_at IS NOT NULL,
coalesce(s.action_id, ''), coalesce(s.child_run, ''),
coalesce((SELECT a.status FROM action a WHERE a.tenant = s.tenant AND a.id = s.action_id),
  (SELECT z.status FROM action_archive z WHERE z.tenant = s.tenant AND z.id = s.action_id), ''),
coalesce((SELECT r.status FROM run r WHERE r.tenant = s.tenant AND r.id = s.child_run), ''),
(SELECT count(*) FROM step_wake w
WHERE w.step_seq = s.seq AND w.tenant = s.tenant AND w.run_id = s.run_id AND w.step_id = s.id),
coalesce((SELECT max(t.generation) FROM step_attempt t
WHERE t.tenant = s.tenant AND t.run_id = s.run_id AND t.step_id = s.id), 0),
(SELECT count(*) FROM step_attempt t WHERE t.tenant = s.tenant AND t.run_id = s.run_id AND t.step_id = s.id)
FROM step s WHERE s.run_seq > %d AND s.run_seq <= %d ORDER BY s.run_seq, s.seq`, after, last),
			func(rows *sql.Rows) error {
				var seq int64
				var s stepRow
				var due, ready bool
				err := rows.Scan(&seq, &s.Tenant, &s.RunID, &s.ID, &s.Key, &s.Parent, &s.Status, &s.Attempts, &s.Generation,
					&s.Event,
					&s.LeaseOwner, &s.leased, &due, &ready, &s.ActionID, &s.ChildRun, &s.action, &s.child, &s.wakes,
					&s.highestGeneration, &s.storedAttempts)
				at := s.CreatedAt
				if due {
					s.DueAt = &at
				}
				if ready {
					s.ReadyAt = &at
				}
				if f := bySeq[seq]; f != nil {
					f.steps = append(f.steps, s)
				}
				return err
			})
}

func (f *runRows) check(r *Report) {
	for _, n := range []int{18, 21} {
		r.examined(n, 1)
	}
	say := func(n int, format string, args ...any) { r.violated(n, f.tenant, f.id, format, args...) }
	f.checkState(say)
	for i := range f.steps {
		r.examined(16, 1)
		r.examined(19, 1)
		r.examined(20, 1)
		f.checkStep(&f.steps[i], say)
	}
	// Evidence is stored once, and its hash in the run.
	switch {
	case f.evidence != f.bundle:
		say(21, "the run's evidence is %q, its bundle's %q", f.evidence, f.bundle)
	case f.bundle != "" && f.bundle != hex.EncodeToString(f.archive):
		say(21, "its bundle has the hash %x, and says %s", f.archive, f.bundle)
	case f.bundle != "" && !f.status.Final():
		say(21, "it has a bundle, but is %s", f.status)
	}
}

// checkState checks rule 18: the state of a started run follows from its steps.
func (f *runRows) checkState(say sayer) {
	steps := make([]*gatehouse.Step, len(f.steps))
	for i := range f.steps {
		steps[i] = &f.steps[i].Step
		if f.status.Final() && !steps[i].Status.Final() {
			say(18, "it is %s, its step %s is %s", f.status, steps[i].Key, steps[i].Status)
		}
	}
	if f.status == gatehouse.RunQueued {
		for _, s := range steps {
			if s.Generation > 0 {
				say(18, "it is queued, but its step %s was leased", s.Key)
			}
		}
		return
	}
	if want := gatehouse.StatusOfSteps(steps, f.stop); want != f.status {
		say(18, "it is %s, but must be %s by its steps", f.status, want)
	}
}

// checkStep checks rules 16, 19 and 20.
func (f *runRows) checkStep(s *stepRow, say sayer) {
	if s.Tenant != f.tenant || s.RunID != f.id {
		say(16, "its step %s is of the run %s in the tenant %s", s.ID, s.RunID, s.Tenant)
	}
	ended := false
	switch s.Status {
	case gatehouse.StepReady:
		if s.ReadyAt == nil {
			say(19, "its step %s is ready, but has no time at which it became ready", s.Key)
		}
	case gatehouse.StepRunning:
		if !s.leased || s.LeaseOwner == "" {
			say(19, "its step %s is running without a lease", s.Key)
		}
	case gatehouse.StepRetrying:
		if s.DueAt == nil {
			say(19, "its step %s waits for a retry that is never due", s.Key)
		}
	case gatehouse.StepWaitingApproval:
		if s.action == "" {
			say(19, "its step %s waits for the action %q, which does not exist", s.Key, s.ActionID)
		}
		ended = s.action.Finished() && s.action != gatehouse.StatusUnknown
	case gatehouse.StepWaiting:
		if s.child == "" && s.ChildRun != "" {
			say(19, "its step %s waits for the run %s, which does not exist", s.Key, s.ChildRun)
		}
		if s.ChildRun == "" && s.Event == "" && s.DueAt == nil && !f.hasItems(s.ID) {
			say(19, "its step %s waits for nothing", s.Key)
		}
		ended = s.child.Final()
	}
	if want := map[bool]int{true: 1}[ended]; s.wakes != want {
		say(19, "its step %s is %s, what it waits for has ended: %v, and it has %d wakes", s.Key, s.Status, ended, s.wakes)
	}
	if s.Attempts > s.Generation || s.highestGeneration > s.Generation {
		say(20, "its step %s has %d attempts and results of lease %d, but %d leases", s.Key, s.Attempts, s.highestGeneration,
			s.Generation)
	}
	if least, most := f.attempts(s); s.storedAttempts < least || s.storedAttempts > most {
		say(20, "its step %s is %s after %d attempts, of which %d are stored", s.Key, s.Status, s.Attempts, s.storedAttempts)
	}
}

// attempts returns the least and the greatest correct number of stored attempts of a
// step. All attempts except the current one are stored, but earlier builds did not
// store the last one if its lease did no work, as for a step that was skipped, was
// canceled, or waits for its items.
func (f *runRows) attempts(s *stepRow) (least, most int) {
	most = s.Attempts
	if s.Status == gatehouse.StepRunning {
		most--
	}
	if s.Status.Final() || f.hasItems(s.ID) {
		return most - 1, most
	}
	return most, most
}

func (f *runRows) hasItems(step string) bool {
	for i := range f.steps {
		if f.steps[i].Parent == step {
			return true
		}
	}
	return false
}

// runKeys checks the keys of rules 20 and 21 that must be unique. Indexes enforce it.
func (c *checker) runKeys(ctx context.Context) error {
	return c.in(ctx, func(tx *sql.Tx) error {
		for _, u := range []struct {
			number      int
			what, query string
		}{
			{20, "steps hold one key", `SELECT tenant, idempotency_key, count(*) FROM step
WHERE idempotency_key IS NOT NULL AND status NOT IN ('failed_terminal', 'canceled')
GROUP BY tenant, idempotency_key HAVING count(*) > 1`},
			{20, "runs have one trigger_ref", `SELECT tenant, trigger_ref, count(*) FROM run
WHERE trigger_ref IS NOT NULL GROUP BY tenant, workflow, trigger_ref HAVING count(*) > 1`},
			{21, "bundles of one run", `SELECT tenant, run_id, count(*) FROM bundle
GROUP BY tenant, run_id HAVING count(*) > 1`},
		} {
			err := each(ctx, tx, u.query, func(rows *sql.Rows) error {
				var tenant, id string
				var n int
				err := rows.Scan(&tenant, &id, &n)
				c.r.violated(u.number, tenant, id, "%d %s", n, u.what)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
