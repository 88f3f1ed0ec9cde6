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

// closeWithOwnKey closes a leased step under a key that the workflow defines: an own key.
func closeWithOwnKey(t testing.TB, s *Store, leased *gatehouse.Step, key string, to gatehouse.StepStatus) func() error {
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

// passStep closes the second step of a run under its generated key, which consists of run and step.
func passStep(t testing.TB, s *Store, of *gatehouse.Step) func() error {
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

// holder returns the id of the step that holds a key, "" if none does.
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

// TestKeysOfSteps: at most one step holds a key, even if one step has it as its generated key,
// which no index contains, and another as its own key.
func TestKeysOfSteps(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	leased := leasedRuns(t, s, 8)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, gatehouse.ErrConflict) {
			t.Errorf("%s: got %v, want a conflict", what, err)
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
	// The generated key is stored first, the same own key second.
	done(closeStep(s, leased[0], false)())
	held("run_00:s0", "stp_00_0")
	refused("the generated key of a closed step", closeWithOwnKey(t, s, leased[1], "run_00:s0", gatehouse.StepSucceeded)())
	done(passStep(t, s, leased[2])())
	held("run_02:s1", "stp_02_1")
	refused("the generated key of a passed step", closeWithOwnKey(t, s, leased[1], "run_02:s1", gatehouse.StepSucceeded)())
	// The own key is stored first.
	done(closeWithOwnKey(t, s, leased[1], "run_03:s0", gatehouse.StepSucceeded)())
	held("run_03:s0", "stp_01_0")
	refused("a generated key that another run has as its own", closeStep(s, leased[3], false)())
	done(closeWithOwnKey(t, s, leased[3], "run_04:s1", gatehouse.StepSucceeded)())
	refused("a passed step whose key another run has as its own", passStep(t, s, leased[4])())
	held("run_04:s1", "stp_03_0")
	// An own key that begins with or equals a generated key of the same run.
	done(closeWithOwnKey(t, s, leased[4], "run_04:s0:other", gatehouse.StepSucceeded)())
	held("run_04:s0:other", "stp_04_0")
	done(closeWithOwnKey(t, s, leased[5], "run_05:s1", gatehouse.StepSucceeded)())
	refused("a passed step whose key another step of the run has", passStep(t, s, leased[5])())
	// A failed step holds no key.
	done(closeWithOwnKey(t, s, leased[6], "run_07:s0", gatehouse.StepFailed)())
	held("run_07:s0", "")
	done(closeStep(s, leased[7], false)())
	held("run_07:s0", "stp_07_0")
	held("run_99:s0", "")
	held("none", "")
}

// TestKeysAtOnce: if two Updates write the same key concurrently, one as a generated key and one
// as an own key, exactly one of them gets it.
func TestKeysAtOnce(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	const n = 24
	leased := leasedRuns(t, s, 2*n)
	won := map[bool]int{}
	for i := range n {
		generated := closeStep(s, leased[i], false)
		if i%2 == 0 {
			generated = passStep(t, s, leased[i])
		}
		key := fmt.Sprintf("run_%02d:s%d", i, (i+1)%2)
		own := closeWithOwnKey(t, s, leased[n+i], key, gatehouse.StepSucceeded)
		var both sync.WaitGroup
		var first, second error
		both.Go(func() { first = generated() })
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
	t.Logf("the generated key was stored %d times, the own key %d times", won[true], won[false])
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

// TestKeysInOneGroup: if two members of a group write the same key in one statement, exactly one of
// them gets it, although the statement does not see its own writes.
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

// TestOwnKeyWaitsForRun: an own key with the text of another run's generated key is not written
// while an Update holds the lock of that run.
func TestOwnKeyWaitsForRun(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	leased := leasedRuns(t, s, 2)
	written := make(chan error, 1)
	err := s.Update(t.Context(), "default", func(tx gatehouse.Tx) error {
		r, err := tx.LockRun("run_00", leased[0].ID)
		if err != nil {
			return err
		}
		go func() { written <- closeWithOwnKey(t, s, leased[1], "run_00:s0", gatehouse.StepSucceeded)() }()
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
		t.Errorf("the own key: got %v, want a conflict", err)
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
		t.Errorf("of %d updated steps, %d were updated in place: %v", all, inPlace, err)
	}
}
