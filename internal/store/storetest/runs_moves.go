package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *suite) runMoves() {
	w := s.workflow(tenant, "triage", 1)
	for _, from := range gatehouse.RunStatuses() {
		for _, to := range gatehouse.RunStatuses() {
			r, _ := s.one(w)
			for _, next := range runPath(from) {
				s.moveRun(r, next)
			}
			err := s.store.Update(
				s.Context(),
				r.Tenant,
				func(tx gatehouse.Tx) error { c := *r; return moveRun(tx, &c, to) },
			)
			allowed := from == to || from.CanMove(to)
			if allowed != (err == nil) || err != nil && !errors.Is(err, gatehouse.ErrConflict) {
				s.Errorf("%s to %s: error %v", from, to, err)
			}
			want := from
			if allowed {
				want = to
			}
			if got := s.findRun(tenant, r.ID).Status; got != want {
				s.Errorf("%s to %s: it is %s", from, to, got)
			}
		}
	}
	// MoveRun refuses a move from another state than the stored one, even if the transition table has the move.
	r, _ := s.one(w)
	s.moveRun(r, gatehouse.RunRunning)
	stale := *r
	stale.Status = gatehouse.RunRunning
	s.updateReturns(gatehouse.ErrConflict, "from another state",
		func(tx gatehouse.Tx) error { return tx.MoveRun(&stale, gatehouse.RunQueued) })
	// All mutable fields change; the output stays unless a new one is given.
	r.Stop, r.Writes, r.Failure, r.Output = gatehouse.RunCanceled, 7, &gatehouse.Failure{Code: "c", Detail: "d"},
		`{"x":1.0}`
	s.moveRun(r, gatehouse.RunWaiting)
	s.same("the moved run", s.findRun(tenant, r.ID), r)
	r.Failure, r.Output = nil, ""
	s.moveRun(r, gatehouse.RunRunning)
	r.Output = `{"x":1.0}`
	s.same("with its output", s.findRun(tenant, r.ID), r)
	// Nothing else changes.
	other := *r
	other.Workspace, other.StartedBy, other.Input, other.Writes = "x", "x", `{}`, 8
	s.update(func(tx gatehouse.Tx) error { return tx.MoveRun(&other, gatehouse.RunRunning) })
	r.Writes = 8
	s.same("what stays", s.findRun(tenant, r.ID), r)
}

func (s *suite) stepMoves() {
	w := s.workflow(tenant, "triage", 1)
	for _, from := range gatehouse.StepStatuses() {
		for _, to := range gatehouse.StepStatuses() {
			st := s.inState(w, from)
			err := s.store.Update(s.Context(), st.Tenant, func(tx gatehouse.Tx) error {
				return tx.UpdateStep(moved(st, to, tx.Now()), from, st.Generation)
			})
			allowed := from == to || from.CanMove(to)
			if allowed != (err == nil) || err != nil && !errors.Is(err, gatehouse.ErrConflict) {
				s.Errorf("%s to %s: error %v", from, to, err)
			}
			want := from
			if allowed {
				want = to
			}
			if got := s.findStep(st).Status; got != want {
				s.Errorf("%s to %s: it is %s", from, to, got)
			}
		}
	}
}

// stepColumns checks which columns UpdateStep writes and keeps, and its guards.
func (s *suite) stepColumns() {
	w := s.workflow(tenant, "triage", 1)
	_, st := s.one(w)
	s.moveStep(st, gatehouse.StepRunning)
	at := s.now().Add(time.Minute)
	full := *st
	full.Attempts, full.Generation, full.IdempotencyKey, full.Input, full.Output = 1, 3, "k", `{"i":1.0}`, `[1e400]`
	full.Failure, full.ActionID, full.ChildRun, full.Event = &gatehouse.Failure{Code: "c", Detail: ""}, "act_1", "run_1",
		"ev"
	full.DueAt, full.LeaseOwner, full.LeaseUntil, full.ReadyAt, full.StartedAt, full.FinishedAt = &at, "w2", &at, &at, &at,
		&at
	s.update(func(tx gatehouse.Tx) error { return tx.UpdateStep(&full, gatehouse.StepRunning, 1) })
	s.same("all that may change", s.findStep(st), &full)
	// Absent bodies are kept; one may be written without the other.
	bare := *st
	bare.Generation, bare.Attempts, bare.Status, bare.Skipped = 3, 2, gatehouse.StepSucceeded, true
	s.update(func(tx gatehouse.Tx) error { return tx.UpdateStep(&bare, gatehouse.StepRunning, 3) })
	bare.Input, bare.Output = full.Input, full.Output
	s.same("what is cleared, and what stays", s.findStep(st), &bare)
	out := bare
	out.Input, out.Output = "", `{"o":2}`
	s.update(func(tx gatehouse.Tx) error { return tx.UpdateStep(&out, gatehouse.StepSucceeded, 3) })
	out.Input = full.Input
	s.same("another output", s.findStep(st), &out)
	frozen := out
	frozen.Key, frozen.Index, frozen.Tool, frozen.Workflow, frozen.Uses, frozen.Item = "x", 9, "x", "x", "x", `1`
	s.update(func(tx gatehouse.Tx) error { return tx.UpdateStep(&frozen, gatehouse.StepSucceeded, 3) })
	s.same("what never changes", s.findStep(st), &out)

	_, st = s.one(w)
	s.moveStep(st, gatehouse.StepRunning)
	for what, try := range map[string]func(tx gatehouse.Tx) error{
		"an older generation": func(tx gatehouse.Tx) error { return tx.UpdateStep(st, gatehouse.StepRunning, 0) },
		"a later generation": func(tx gatehouse.Tx) error {
			c := *st
			c.Generation = 2
			return tx.UpdateStep(&c, gatehouse.StepRunning, 2)
		},
		"a generation that falls": func(tx gatehouse.Tx) error {
			c := *st
			c.Generation, c.Attempts = 0, 0
			return tx.UpdateStep(&c, gatehouse.StepRunning, 1)
		},
		"another state": func(tx gatehouse.Tx) error {
			return tx.UpdateStep(moved(st, gatehouse.StepReady, tx.Now()), gatehouse.StepWaiting, 1)
		},
		"another id": func(tx gatehouse.Tx) error {
			c := *st
			c.ID = "stp_x"
			return tx.UpdateStep(&c, gatehouse.StepRunning, 1)
		},
	} {
		s.updateReturns(gatehouse.ErrConflict, what, try)
	}
	s.same("after all that was refused", s.findStep(st), st)
}

// stepPass checks PassStep, which moves a blocked step through ready and running to succeeded in one write, and stores
// its attempt.
func (s *suite) stepPass() {
	w := s.workflow(tenant, "triage", 1)
	r := s.newRun(w, "a", "b", "c")
	for _, st := range r.Steps {
		st.Status, st.ReadyAt = gatehouse.StepBlocked, nil
	}
	s.insert(r)
	at := s.now()
	passed := func(st *gatehouse.Step) *gatehouse.Step {
		c := *st
		c.Status, c.Attempts, c.Generation = gatehouse.StepSucceeded, 1, 1
		c.ReadyAt, c.StartedAt, c.FinishedAt = &at, &at, &at
		return &c
	}
	whole := passed(r.Steps[0])
	whole.Input, whole.Output, whole.IdempotencyKey = `{"i":1.0}`, `{"o":2}`, "k"
	s.update(func(tx gatehouse.Tx) error { return tx.PassStep(whole, "w") })
	s.same("a step that has passed", s.findStep(whole), whole)
	attempts := func(want ...*gatehouse.StepAttempt) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) error {
			got, err := tx.ListAttempts(r.ID)
			s.same("its attempts", got, want)
			return err
		})
	}
	first := &gatehouse.StepAttempt{Tenant: tenant, RunID: r.ID, StepID: whole.ID, Attempt: 1, Generation: 1, Worker: "w",
		StartedAt:  at,
		FinishedAt: at, Outcome: "succeeded"}
	attempts(first)
	st := r.Steps[1]
	for what, change := range map[string]func(c *gatehouse.Step){
		"another state":         func(c *gatehouse.Step) { c.Status = gatehouse.StepRunning },
		"a lease":               func(c *gatehouse.Step) { c.LeaseOwner, c.LeaseUntil = "w", &at },
		"no attempt":            func(c *gatehouse.Step) { c.Attempts = 0 },
		"no generation":         func(c *gatehouse.Step) { c.Generation = 0 },
		"another generation":    func(c *gatehouse.Step) { c.Generation = 2 },
		"no beginning":          func(c *gatehouse.Step) { c.StartedAt = nil },
		"no end":                func(c *gatehouse.Step) { c.FinishedAt = nil },
		"a key that is known":   func(c *gatehouse.Step) { c.IdempotencyKey = "k" },
		"a step that has ended": func(c *gatehouse.Step) { c.ID = whole.ID },
		"another id":            func(c *gatehouse.Step) { c.ID = "stp_x" },
	} {
		c := passed(st)
		change(c)
		s.updateReturns(gatehouse.ErrConflict, what, func(tx gatehouse.Tx) error { return tx.PassStep(c, "w") })
	}
	s.same("after all that was refused", s.findStep(st), st)
	s.update(func(tx gatehouse.Tx) error {
		return tx.UpdateStep(moved(st, gatehouse.StepReady, at), gatehouse.StepBlocked, 0)
	})
	attempts(first)
	s.updateReturns(gatehouse.ErrConflict, "a step that is ready already",
		func(tx gatehouse.Tx) error { return tx.PassStep(passed(st), "w") })
	skipped := passed(r.Steps[2])
	skipped.Skipped, skipped.Output = true, "null"
	s.update(func(tx gatehouse.Tx) error { return tx.PassStep(skipped, "w") })
	s.same("a step that was skipped", s.findStep(skipped), skipped)
	second := *first
	second.StepID = skipped.ID
	attempts(first, &second)
}

// stepOfAction: FindStepByAction finds the step that stored the action's id last, even if that step was made first.
func (s *suite) stepOfAction() {
	w := s.workflow(tenant, "triage", 1)
	_, first := s.one(w)
	_, second := s.one(w)
	find := func() (got *gatehouse.Step) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) (err error) { got, err = tx.FindStepByAction("act_1"); return err })
		return got
	}
	take := func(n *gatehouse.Step) { n.ActionID = "act_1" }
	for _, st := range []*gatehouse.Step{second, first} {
		s.moveStep(st, gatehouse.StepRunning)
		s.moveStep(st, gatehouse.StepWaitingApproval, take)
		s.same("the step that took it up", find(), st)
	}
	s.moveStep(second, gatehouse.StepSucceeded) // a write that does not change the step's action
	s.same("the step that took it up last", find(), first)
}

// runLock: each transaction that locks a run sees what the previous one has written.
func (s *suite) runLock() {
	w := s.workflow(tenant, "triage", 1)
	r, _ := s.one(w)
	const holders, times = 4, 6
	var group sync.WaitGroup
	for range holders {
		group.Go(func() {
			for range times {
				err := s.store.Update(context.Background(), tenant, func(tx gatehouse.Tx) error {
					locked, err := tx.LockRun(r.ID, "")
					if err != nil {
						return err
					}
					locked.Writes++
					return tx.MoveRun(locked, locked.Status)
				})
				if err != nil {
					s.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := s.findRun(tenant, r.ID).Writes; got != holders*times {
		s.Errorf("%d writes, want %d", got, holders*times)
	}
}
