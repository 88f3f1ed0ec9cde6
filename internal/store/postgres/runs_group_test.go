package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// leasedRuns stores n runs of two steps whose first step is leased, and returns these steps.
func leasedRuns(t *testing.T, s *Store, n int) []*gatehouse.Step {
	t.Helper()
	var leased []*gatehouse.Step
	err := s.Update(t.Context(), "default", func(tx gatehouse.Tx) error {
		now := tx.Now()
		err := tx.InsertWorkflow(
			&gatehouse.Workflow{ID: "wfl_1", Tenant: "default", Name: "line", Version: 1, CreatedAt: now})
		if err != nil {
			return err
		}
		for i := range n {
			r := &gatehouse.Run{ID: fmt.Sprintf("run_%02d", i), Tenant: "default", Workflow: "line", Version: 1,
				Status:  gatehouse.RunQueued,
				Trigger: gatehouse.TriggerAPI, Input: "{}", CreatedAt: now}
			for k, status := range []gatehouse.StepStatus{gatehouse.StepReady, gatehouse.StepBlocked} {
				step := &gatehouse.Step{ID: fmt.Sprintf("stp_%02d_%d", i, k), Tenant: "default", RunID: r.ID,
					Key: fmt.Sprint("s", k), Index: k,
					Workflow: "line", Uses: "transform", Status: status, CreatedAt: now}
				if status == gatehouse.StepReady {
					step.ReadyAt = &now
				}
				r.Steps = append(r.Steps, step)
			}
			if err := tx.InsertRun(r); err != nil {
				return err
			}
			r.Status, r.StartedAt = gatehouse.RunRunning, &now
			if err := tx.MoveRun(r, gatehouse.RunQueued); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.UpdateQueues(t.Context(), func(q gatehouse.Queues) (err error) {
		leased, err = q.ClaimSteps(
			"w",
			time.Minute,
			gatehouse.StepShare{Lane: gatehouse.Lane{Tenant: "default", Workflow: "line"}, Limit: n},
		)
		return err
	})
	if err != nil || len(leased) != n {
		t.Fatalf("%d are leased, want %d: %v", len(leased), n, err)
	}
	return leased
}

// closeStep is the transition for a worker's answer: attempt, step, leaf, and the next step or, with last, the
// end of the run.
func closeStep(s *Store, leased *gatehouse.Step, last bool) func() error {
	return func() error {
		return s.Update(context.Background(), leased.Tenant, func(tx gatehouse.Tx) error {
			r, err := tx.OpenStep(leased.RunID, leased.ID)
			if err != nil {
				return err
			}
			now := tx.Now()
			step := r.StepByID(leased.ID)
			err = tx.InsertAttempt(&gatehouse.StepAttempt{Tenant: r.Tenant, RunID: r.ID, StepID: step.ID, Attempt: step.Attempts,
				Generation: step.Generation, Worker: "w", StartedAt: now, FinishedAt: now, Outcome: "succeeded"})
			if err != nil {
				return err
			}
			step.Status, step.FinishedAt, step.LeaseOwner, step.LeaseUntil = gatehouse.StepSucceeded, &now, "", nil
			step.IdempotencyKey, step.Input, step.Output = r.ID+":s0", `{"n":1}`, gatehouse.StringJSON(r.ID)
			if err := tx.UpdateStep(step, gatehouse.StepRunning, leased.Generation); err != nil {
				return err
			}
			if err := tx.AppendLeaf(
				&gatehouse.Leaf{Tenant: r.Tenant, Type: "step.succeeded", Subject: r.ID, Actor: "w"}); err != nil {
				return err
			}
			next := r.Steps[1]
			if !last {
				next.Status, next.ReadyAt = gatehouse.StepReady, &now
				r.Writes++
				return errors.Join(tx.UpdateStep(next, gatehouse.StepBlocked, 0), tx.MoveRun(r, r.Status))
			}
			next.Status, next.FinishedAt = gatehouse.StepCanceled, &now
			r.Status, r.FinishedAt, r.Output = gatehouse.RunSucceeded, &now, `{"of":"`+gatehouse.JSON(r.ID)+`"}`
			return errors.Join(tx.UpdateStep(next, gatehouse.StepBlocked, 0), tx.MoveRun(r, gatehouse.RunRunning),
				tx.InsertReflexion(
					&gatehouse.Reflexion{ID: "rfx_" + r.ID, Tenant: r.Tenant, RunID: r.ID, Workflow: "line", Version: 1,
						Outcome: r.Status, Attempted: "a", Happened: "b", Otherwise: "c", At: now}))
		})
	}
}

// TestRunsInOneGroup: the answers of workers for several runs take two round trips and a number
// of statements that does not depend on the number of runs. Each run gets its own answer.
func TestRunsInOneGroup(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record})
	const n = 12
	leased := leasedRuns(t, s, n)
	var calls []func() error
	for i, step := range leased {
		calls = append(calls, closeStep(s, step, i%4 == 0))
	}
	trips := counter.count(t, "group", func() {
		for _, err := range together(t, s, calls...) {
			if err != nil {
				t.Error(err)
			}
		}
	})
	if trips != 2 {
		t.Errorf("%d round trips, want 2", trips)
	}
	for i, statements := range counter.trips {
		if len(statements) > 16 {
			t.Errorf("trip %d has %d statements for %d runs", i+1, len(statements), n)
		}
	}
	for i, step := range leased {
		var r *gatehouse.Run
		var attempts []*gatehouse.StepAttempt
		err := s.View(t.Context(), "default", func(tx gatehouse.ReadTx) (err error) {
			if r, err = tx.FindRun(step.RunID); err == nil {
				attempts, err = tx.ListAttempts(step.RunID)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		status, next, writes, output := gatehouse.RunRunning, gatehouse.StepReady, 1, gatehouse.JSON("")
		if i%4 == 0 {
			status, next, writes, output = gatehouse.RunSucceeded, gatehouse.StepCanceled, 0, `{"of":"`+gatehouse.JSON(r.ID)+`"}`
		}
		if r.Status != status || r.Steps[1].Status != next || r.Writes != writes || r.Output != output {
			t.Errorf("%s is %s with %d writes, its second step %s, its output %s", r.ID, r.Status, r.Writes, r.Steps[1].Status,
				r.Output)
		}
		if first := r.Steps[0]; first.Status != gatehouse.StepSucceeded || first.Output != gatehouse.StringJSON(r.ID) ||
			first.Input != `{"n":1}` || first.IdempotencyKey != r.ID+":s0" || len(attempts) != 1 {
			t.Errorf("the first step of %s is %+v with %d attempts", r.ID, first, len(attempts))
		}
	}
}

// TestRunsInOneGroupAreFenced: an answer under a stale generation is refused, without effect on
// others. Of two answers for one step, one is refused.
func TestRunsInOneGroupAreFenced(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	leased := leasedRuns(t, s, 5)
	stale := *leased[2]
	stale.Generation-- // the generation of an earlier lease
	again := *leased[4]
	errs := together(t, s, closeStep(s, leased[0], false), closeStep(s, leased[1], false), closeStep(s, &stale, false),
		closeStep(s, leased[3], false), closeStep(s, leased[4], false), closeStep(s, &again, false))
	failed := 0
	for i, err := range errs {
		if err != nil {
			failed++
		}
		if i < 4 && (err != nil) != (i == 2) || i == 2 && !errors.Is(err, gatehouse.ErrConflict) {
			t.Errorf("member %d: %v", i, err)
		}
	}
	if failed != 2 {
		t.Errorf("%d have failed, want the stale one and one of the two for one step: %v", failed, errs)
	}
	for i, step := range leased {
		err := s.View(t.Context(), "default", func(tx gatehouse.ReadTx) error {
			r, err := tx.FindRun(step.RunID)
			if err != nil {
				return err
			}
			attempts, err := tx.ListAttempts(step.RunID)
			if want := min(1, abs(i-2)); r.Writes != want || len(attempts) != want {
				t.Errorf("%s was moved %d times, with %d attempts, want %d", r.ID, r.Writes, len(attempts), want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// closeTwo closes a leased step together with the step behind it.
func closeTwo(s *Store, leased *gatehouse.Step) func() error {
	return func() error {
		return s.Update(context.Background(), leased.Tenant, func(tx gatehouse.Tx) error {
			r, err := tx.OpenStep(leased.RunID, leased.ID)
			if err != nil {
				return err
			}
			now := tx.Now()
			for i, step := range r.Steps {
				step.Status, step.FinishedAt, step.LeaseOwner, step.LeaseUntil = gatehouse.StepSucceeded, &now, "", nil
				step.IdempotencyKey, step.Output = r.ID+":"+step.Key, gatehouse.StringJSON(r.ID+step.Key)
				if i > 0 {
					step.Attempts, step.Generation, step.ReadyAt, step.StartedAt = 1, 1, &now, &now
					err = tx.PassStep(step, "w")
				} else {
					err = errors.Join(
						tx.InsertAttempt(&gatehouse.StepAttempt{Tenant: r.Tenant, RunID: r.ID, StepID: step.ID, Attempt: 1,
							Generation: 1, Worker: "w", StartedAt: now, FinishedAt: now, Outcome: "succeeded"}),
						tx.UpdateStep(step, gatehouse.StepRunning, leased.Generation))
				}
				err = errors.Join(err,
					tx.AppendLeaf(&gatehouse.Leaf{Tenant: r.Tenant, Type: "step.succeeded", Subject: r.ID, Actor: step.Key}))
				if err != nil {
					return err
				}
			}
			r.Status, r.FinishedAt, r.Output = gatehouse.RunSucceeded, &now, `{"of":"`+gatehouse.JSON(r.ID)+`"}`
			return errors.Join(tx.MoveRun(r, gatehouse.RunRunning),
				tx.AppendLeaf(&gatehouse.Leaf{Tenant: r.Tenant, Type: "run.succeeded", Subject: r.ID, Actor: "w"}))
		})
	}
}

// TestStepsPassInOneGroup: several inline steps in each of several runs take no more statements than one step
// in each. A step that is no longer blocked undoes only its own run's transition.
func TestStepsPassInOneGroup(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record})
	const n = 12
	leased := leasedRuns(t, s, n)
	var calls []func() error
	for _, step := range leased {
		calls = append(calls, closeTwo(s, step))
	}
	trips := counter.count(t, "group", func() {
		for _, err := range together(t, s, calls[:8]...) {
			if err != nil {
				t.Error(err)
			}
		}
	})
	if trips != 2 {
		t.Errorf("%d round trips, want 2", trips)
	}
	for i, statements := range counter.trips {
		if len(statements) > 16 {
			t.Errorf("trip %d has %d statements for 8 runs", i+1, len(statements))
		}
	}
	last := leased[n-1]
	if err := s.Update(t.Context(), last.Tenant, func(tx gatehouse.Tx) error { // meanwhile the step was made ready
		r, err := tx.LockRun(last.RunID, "")
		if err != nil {
			return err
		}
		now := tx.Now()
		next := r.Steps[1]
		next.Status, next.ReadyAt = gatehouse.StepReady, &now
		return tx.UpdateStep(next, gatehouse.StepBlocked, 0)
	}); err != nil {
		t.Fatal(err)
	}
	for i, err := range together(t, s, calls[8:]...) {
		if i == n-1-8 && !errors.Is(err, gatehouse.ErrConflict) || i < n-1-8 && err != nil {
			t.Errorf("member %d: %v", i, err)
		}
	}
	for i, step := range leased {
		err := s.View(t.Context(), "default", func(tx gatehouse.ReadTx) error {
			r, err := tx.FindRun(step.RunID)
			if err != nil {
				return err
			}
			attempts, err := tx.ListAttempts(step.RunID)
			if i == n-1 {
				if r.Status != gatehouse.RunRunning || r.Steps[0].Status != gatehouse.StepRunning || len(attempts) != 0 {
					t.Errorf("%s is %s, its first step %s with %d attempts", r.ID, r.Status, r.Steps[0].Status, len(attempts))
				}
				return err
			}
			if r.Status != gatehouse.RunSucceeded || r.Output != `{"of":"`+gatehouse.JSON(r.ID)+`"}` || len(attempts) != 2 {
				t.Errorf("%s is %s with the output %s and %d attempts", r.ID, r.Status, r.Output, len(attempts))
			}
			for k, st := range r.Steps {
				if st.Status != gatehouse.StepSucceeded || st.Output != gatehouse.StringJSON(r.ID+st.Key) ||
					attempts[k].StepID != st.ID {
					t.Errorf("%s of %s is %s with the output %s", st.Key, r.ID, st.Status, st.Output)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	var order []string
	if err := s.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) error {
		leaves, err := q.UnnumberedLeaves(1000)
		for _, l := range leaves {
			if l.ActionID == leased[0].RunID {
				var leaf struct{ Actor string }
				err = errors.Join(err, json.Unmarshal([]byte(l.Body), &leaf))
				order = append(order, leaf.Actor)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order, []string{"s0", "s1", "w"}) {
		t.Errorf("the log has %v", order)
	}
}

// TestAttemptIsOfItsStep: an attempt is stored only with the run of its step, alone and in a
// group. The other members of the group are stored nevertheless.
func TestAttemptIsOfItsStep(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	leased := leasedRuns(t, s, 4)
	insert := func(of *gatehouse.Step, run string) func() error {
		return func() error {
			return s.Update(context.Background(), of.Tenant, func(tx gatehouse.Tx) error {
				r, err := tx.OpenStep(of.RunID, of.ID)
				if err != nil {
					return err
				}
				now := tx.Now()
				return tx.InsertAttempt(
					&gatehouse.StepAttempt{Tenant: r.Tenant, RunID: run, StepID: of.ID, Attempt: 1, Generation: 1, Worker: "w",
						StartedAt: now, FinishedAt: now, Outcome: "succeeded"})
			})
		}
	}
	if err := insert(leased[0], leased[1].RunID)(); !errors.Is(err, gatehouse.ErrNotFound) {
		t.Errorf("alone, with another run: %v", err)
	}
	errs := together(t, s, insert(leased[0], leased[0].RunID), insert(leased[1], leased[0].RunID),
		insert(leased[2], leased[2].RunID), insert(leased[3], leased[3].RunID))
	for i, err := range errs {
		if (i == 1) != errors.Is(err, gatehouse.ErrNotFound) || i != 1 && err != nil {
			t.Errorf("member %d: %v", i, err)
		}
	}
}

// TestOrderedWrites: a member's writes about runs are sorted into the order in which groups write,
// unless the member writes a step twice or writes anything else.
func TestOrderedWrites(t *testing.T) {
	t.Parallel()
	step := func(id string) query { return updateSteps.row(new(tx), stepUpdate{Tenant: "t", ID: id}) }
	first, second, leaf := step("stp_1"), step("stp_2"), appendLeaves.row(new(tx), leafRow{Tenant: "t", Body: "{}"})
	pass, push := passSteps.row(new(tx), passedStep{ID: "stp_1"}), updatePushes.row(new(tx), pushUpdate{})
	other := passSteps.row(new(tx), passedStep{ID: "stp_3"})
	for _, c := range []struct{ writes, want []query }{
		{[]query{leaf, other, first, second}, []query{first, second, other, leaf}},
		{[]query{leaf, pass, first}, []query{leaf, pass, first}},
		{[]query{leaf, first, second, push}, []query{leaf, first, second, push}},
	} {
		got := sortByRank(c.writes)
		for i, q := range c.want {
			if got[i].rows[0] != q.rows[0] {
				t.Errorf("write %d of %d is %v", i, len(c.writes), got[i].rows[0])
			}
		}
	}
	output := setRunOutputs.row(new(tx), runOutput{ID: "run_1"})
	if !compatible([]query{first}, second) || compatible([]query{first}, first) || compatible([]query{output}, output) {
		t.Error("writes of one step go together, or writes of two do not")
	}
}

func abs(n int) int { return max(n, -n) }

// TestClaimTrips: a claim takes one round trip to claim and one to commit. It also returns the
// heads of the runs.
func TestClaimTrips(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record})
	var leased []*gatehouse.Step
	before := time.Now().Add(-time.Minute)
	if trips := counter.count(t, "claim", func() { leased = leasedRuns(t, s, 3) }); trips != 4 {
		t.Errorf("storing runs and claiming their steps took %d round trips, want 4", trips)
	}
	for _, step := range leased {
		err := s.View(t.Context(), "default", func(tx gatehouse.ReadTx) error {
			head, err := tx.FindRunHead(step.RunID)
			if diff := cmp.Diff(head, step.Head); diff != "" {
				t.Errorf("the head of %s:\n%s", step.RunID, diff)
			}
			if at := step.LeaseUntil.Add(-time.Minute); step.StartedAt == nil || !at.Equal(*step.StartedAt) ||
				at.Before(before) || at.After(tx.Now()) {
				t.Errorf("the step began at %v, and is leased until %v", step.StartedAt, step.LeaseUntil)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestRunPlansOfFullTables checks the plans of the queries for ready steps and of their claim
// after an ANALYZE with many runs, few of them ready, and empty other tables: no part reads all
// rows of a tenant.
func TestRunPlansOfFullTables(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	park(t, s, 2000)
	statement(t, s.config.URL, `SELECT set_config('gatehouse.tenant', '*', false);
INSERT INTO step (tenant, id, run_seq, run_id, key, position, parent, workflow, workspace, uses, tool, status,
  attempts, generation,
 skipped, event, lease_owner, created_at, ready_at)
SELECT tenant, 'stp_r' || seq, seq, id, 'r', 2, '', workflow, workspace, 'transform', '', 'ready', 0, 0, false, '',
  '', created_at, created_at + seq
FROM run WHERE seq % 7 = 0;
ANALYZE run; ANALYZE step; ANALYZE step_body`)
	plan := planner(t, s.config.URL)
	for sql, indexes := range map[string]string{
		dueLanes:   "step_lease step_ready step_ready step_ready",
		claimSteps: "run_pkey step_body_pkey step_pkey step_ready step_running",
	} {
		wantIndexes(t, sql, plan(sql), indexes)
	}
}
