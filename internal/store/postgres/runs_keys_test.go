package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
)

// ownKey closes a leased step under a key of the workflow's own.
func ownKey(t testing.TB, s *Store, leased *gatehouse.Step, key string, to gatehouse.StepStatus) func() error {
	return func() error {
		return s.Update(t.Context(), leased.Tenant, func(tx gatehouse.Tx) error {
			r, err := tx.LockRun(leased.RunID, leased.ID)
			if err != nil {
				return err
			}
			now := tx.Now()
			step := r.StepByID(leased.ID)
			step.Status, step.FinishedAt, step.LeaseOwner, step.LeaseUntil, step.IdempotencyKey = to, &now, "", nil, key
			return tx.UpdateStep(step, gatehouse.StepRunning, leased.Generation)
		})
	}
}

// pass closes the second step of a run under the key made of run and step.
func pass(t testing.TB, s *Store, of *gatehouse.Step) func() error {
	return func() error {
		return s.Update(t.Context(), of.Tenant, func(tx gatehouse.Tx) error {
			r, err := tx.LockRun(of.RunID, "")
			if err != nil {
				return err
			}
			now := tx.Now()
			step := r.Steps[1]
			step.Status, step.Attempts, step.Generation, step.IdempotencyKey = gatehouse.StepSucceeded, 1, 1, r.ID+":s1"
			step.ReadyAt, step.StartedAt, step.FinishedAt, step.Input, step.Output = &now, &now, &now, "{}", "{}"
			return tx.PassStep(step, "w")
		})
	}
}

func holder(t testing.TB, s *Store, key string) string {
	t.Helper()
	var id string
	err := s.View(t.Context(), "default", func(tx gatehouse.ReadTx) error {
		step, err := tx.FindStepByKey(key)
		if err == nil {
			id = step.ID
		}
		return err
	})
	if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
		t.Fatal(err)
	}
	return id
}

// TestKeysOfSteps: one step holds a key, whether the key is made of run and step, which no
// index contains, or is a workflow's own key with the same text.
func TestKeysOfSteps(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	leased := leasedRuns(t, s, 8)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, gatehouse.ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	held := func(key, want string) {
		t.Helper()
		if id := holder(t, s, key); id != want {
			t.Errorf("the key %s is held by %q, not by %q", key, id, want)
		}
	}
	done := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// The generated key first, then the step's own key.
	done(closeStep(s, leased[0], false)())
	held("run_00:s0", "stp_00_0")
	refused("a key that was made before", ownKey(t, s, leased[1], "run_00:s0", gatehouse.StepSucceeded)())
	done(pass(t, s, leased[2])())
	held("run_02:s1", "stp_02_1")
	refused("a key that was passed", ownKey(t, s, leased[1], "run_02:s1", gatehouse.StepSucceeded)())
	// The own key first.
	done(ownKey(t, s, leased[1], "run_03:s0", gatehouse.StepSucceeded)())
	held("run_03:s0", "stp_01_0")
	refused("a key that is somebody's own", closeStep(s, leased[3], false)())
	done(ownKey(t, s, leased[3], "run_04:s1", gatehouse.StepSucceeded)())
	refused("a step that is passed under somebody's own", pass(t, s, leased[4])())
	held("run_04:s1", "stp_03_0")
	// A step's own key that equals a generated key of its run.
	done(ownKey(t, s, leased[4], "run_04:s0:other", gatehouse.StepSucceeded)())
	held("run_04:s0:other", "stp_04_0")
	done(ownKey(t, s, leased[5], "run_05:s1", gatehouse.StepSucceeded)())
	refused("a step that is passed under its neighbour's", pass(t, s, leased[5])())
	// A failed step holds no key.
	done(ownKey(t, s, leased[6], "run_07:s0", gatehouse.StepFailed)())
	held("run_07:s0", "")
	done(closeStep(s, leased[7], false)())
	held("run_07:s0", "stp_07_0")
	held("run_99:s0", "")
	held("none", "")
}

// TestKeysAtOnce: if two Updates write the same key concurrently, one as a made key and one as
// an own key, exactly one gets it, whichever comes first.
func TestKeysAtOnce(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	const n = 24
	leased := leasedRuns(t, s, 2*n)
	won := map[bool]int{}
	for i := range n {
		made := closeStep(s, leased[i], false)
		if i%2 == 0 {
			made = pass(t, s, leased[i])
		}
		key := fmt.Sprintf("run_%02d:s%d", i, (i+1)%2)
		own := ownKey(t, s, leased[n+i], key, gatehouse.StepSucceeded)
		var both sync.WaitGroup
		var first, second error
		both.Go(func() { first = made() })
		both.Go(func() { second = own() })
		both.Wait()
		for _, err := range []error{first, second} {
			if err != nil && !errors.Is(err, gatehouse.ErrConflict) {
				t.Fatal(err)
			}
		}
		if (first == nil) == (second == nil) {
			t.Fatalf("%s was written by both, or by none: %v, %v", key, first, second)
		}
		won[first == nil]++
	}
	t.Logf("the key that was made of the two came first %d times, the other %d times", won[true], won[false])
}

// closeUnder closes a leased step under a key, as a worker's answer does, so that several can
// share a group.
func closeUnder(s *Store, leased *gatehouse.Step, key string, output gatehouse.JSON) func() error {
	return func() error {
		return s.Update(context.Background(), leased.Tenant, func(tx gatehouse.Tx) error {
			r, err := tx.OpenStep(leased.RunID, leased.ID)
			if err != nil {
				return err
			}
			now := tx.Now()
			step := r.StepByID(leased.ID)
			step.Status, step.FinishedAt, step.LeaseOwner, step.LeaseUntil = gatehouse.StepSucceeded, &now, "", nil
			step.IdempotencyKey, step.Output = key, output
			return tx.UpdateStep(step, gatehouse.StepRunning, leased.Generation)
		})
	}
}

// TestKeysInOneGroup: if two members write the same key in one statement, one of them gets it,
// although the statement does not see its own writes.
func TestKeysInOneGroup(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	leased := leasedRuns(t, s, 8)
	for i, output := range []gatehouse.JSON{"", "", `{"n":1}`, `{"n":1}`} {
		first, second := leased[2*i], leased[2*i+1]
		// A group sorts its runs by id.
		key := []string{second.RunID + ":s0", "own"}[i%2] + []string{"", fmt.Sprint(i)}[i%2]
		errs := together(t, s, closeUnder(s, first, key, output), closeUnder(s, second, key, output))
		for _, err := range errs {
			if err != nil && !errors.Is(err, gatehouse.ErrConflict) {
				t.Fatal(err)
			}
		}
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("%s was written by both, or by none: %v", key, errs)
		}
	}
}

// TestWhoHasALikeKeyWaits: a workflow's own key with the text of another run's made key is not
// written while that run is being moved.
func TestWhoHasALikeKeyWaits(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	leased := leasedRuns(t, s, 2)
	written := make(chan error, 1)
	err := s.Update(t.Context(), "default", func(tx gatehouse.Tx) error {
		r, err := tx.LockRun("run_00", leased[0].ID)
		if err != nil {
			return err
		}
		go func() { written <- ownKey(t, s, leased[1], "run_00:s0", gatehouse.StepSucceeded)() }()
		waitForLock(t, s)
		now := tx.Now()
		step := r.Steps[0]
		step.Status, step.FinishedAt, step.LeaseOwner, step.LeaseUntil, step.IdempotencyKey = gatehouse.StepSucceeded, &now,
			"", nil, "run_00:s0"
		return tx.UpdateStep(step, gatehouse.StepRunning, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-written; !errors.Is(err, gatehouse.ErrConflict) {
		t.Errorf("the other one: %v", err)
	}
}

// TestPassedStepsStayInPlace: closing a step that was never leased adds no entry to any index
// of its table.
func TestPassedStepsStayInPlace(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := openTest(t, Config{URL: url})
	leased := leasedRuns(t, s, 40)
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	// The counters of this transaction exclude unreported counts of other sessions.
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // the rollback is intended
	if _, err := tx.Exec(t.Context(), setTenant, "default"); err != nil {
		t.Fatal(err)
	}
	for i, step := range leased {
		at, key := time.UnixMicro(1), step.RunID+":s1"
		_, err := tx.Exec(t.Context(), passSteps.text, passSteps.arguments([]any{passedStep{
			Tenant: "default", ID: fmt.Sprintf("stp_%02d_1", i), Attempts: 1, Generation: 1, IdempotencyKey: &key,
			ReadyAt: &at, StartedAt: &at, FinishedAt: &at, Input: "{}", Output: "{}", Worker: "w",
		}})...)
		if err != nil {
			t.Fatal(err)
		}
	}
	var all, inPlace int
	err = tx.QueryRow(t.Context(),
		`SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'step'`).Scan(&all, &inPlace)
	if err != nil || all != len(leased) || inPlace != all {
		t.Errorf("of %d steps %d were written in place: %v", all, inPlace, err)
	}
}
