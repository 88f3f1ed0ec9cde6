package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// settled returns the ids of the steps that can continue.
func (s *suite) settled() map[string]bool {
	s.Helper()
	ids := make(map[string]bool)
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		refs, err := q.SettledSteps(1000)
		for _, r := range refs {
			ids[r.StepID] = true
		}
		return err
	})
	return ids
}

// wakes checks whether SettledSteps lists a step.
func (s *suite) wakes(what string, st *gatehouse.Step, want bool) {
	s.Helper()
	if got := s.settled()[st.ID]; got != want {
		s.Errorf("%s: settled %v, want %v", what, got, want)
	}
}

func ended(status gatehouse.Status) bool {
	switch status {
	case gatehouse.StatusPending, gatehouse.StatusApproved, gatehouse.StatusPushing, gatehouse.StatusUnknown:
		return false
	}
	return true
}

// actionWakes parks steps before and after their action reaches each state.
func (s *suite) actionWakes() {
	w := s.workflow(tenant, "triage", 1)
	park := func(a *gatehouse.Action) *gatehouse.Step {
		st := s.inState(w, gatehouse.StepRunning)
		s.moveStep(st, gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID = a.ID })
		return st
	}
	for _, status := range gatehouse.Statuses() {
		after := park(s.in(status))
		s.wakes("parked on what is "+string(status), after, ended(status))
		if status == gatehouse.StatusDenied {
			continue // the policy denies at proposal time
		}
		a := s.pending()
		st := park(a)
		from := gatehouse.StatusPending
		for _, to := range path(status) {
			s.wakes("an action that is "+string(from), st, ended(from))
			s.update(func(tx gatehouse.Tx) error { return tx.MoveAction(move(a, from, to)) })
			from = to
		}
		s.wakes("an action that became "+string(status), st, ended(status))
	}
}

// wakesGo checks that a wake disappears when its step moves on or waits for
// another action.
func (s *suite) wakesGo() {
	w := s.workflow(tenant, "triage", 1)
	for _, to := range []gatehouse.StepStatus{gatehouse.StepReady, gatehouse.StepSucceeded, gatehouse.StepFailed,
		gatehouse.StepCanceled} {
		st := s.inState(w, gatehouse.StepRunning)
		a := s.in(gatehouse.StatusRejected)
		s.moveStep(st, gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID = a.ID })
		s.wakes("before", st, true)
		s.moveStep(st, gatehouse.StepWaitingApproval)
		s.wakes("parked on another action", st, false)
		s.moveStep(st, gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID = a.ID })
		s.wakes("parked on the first one again", st, true)
		s.moveStep(st, gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID, n.DueAt = a.ID, &st.CreatedAt })
		s.wakes("written as it was", st, true)
		s.moveStep(st, to)
		s.wakes("in "+string(to), st, false)
		// A step that no longer waits is not woken.
		b := s.pending()
		other := s.inState(w, gatehouse.StepRunning)
		s.moveStep(other, gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID = b.ID })
		s.moveStep(other, to)
		s.update(func(tx gatehouse.Tx) error {
			return tx.MoveAction(move(b, gatehouse.StatusPending, gatehouse.StatusRejected))
		})
		s.wakes("in "+string(to)+" before the end", other, false)
	}
	// No more than the limit.
	for range 3 {
		st := s.inState(w, gatehouse.StepRunning)
		a := s.in(gatehouse.StatusApplied)
		s.moveStep(st, gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID = a.ID })
	}
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		refs, err := q.SettledSteps(2)
		if len(refs) != 2 || refs[0].Tenant != tenant || refs[0].RunID == "" {
			s.Errorf("refs: %v", refs)
		}
		return err
	})
}

// childWakes parks steps on child runs, before and after these have ended.
func (s *suite) childWakes() {
	w := s.workflow(tenant, "triage", 1)
	for _, status := range gatehouse.RunStatuses() {
		before, _ := s.one(w)
		st := s.inState(w, gatehouse.StepRunning)
		s.moveStep(st, gatehouse.StepWaiting, func(n *gatehouse.Step) { n.ChildRun = before.ID })
		for _, to := range runPath(status) {
			s.wakes("a child that is not yet "+string(status), st, false)
			s.moveRun(before, to)
		}
		s.wakes("a child that became "+string(status), st, status.Final())
		late := s.inState(w, gatehouse.StepRunning)
		s.moveStep(late, gatehouse.StepWaiting, func(n *gatehouse.Step) { n.ChildRun = before.ID })
		s.wakes("parked on a child that is "+string(status), late, status.Final())
		if status.Final() {
			s.moveStep(late, gatehouse.StepReady)
			s.wakes("on its way", late, false)
			s.moveRun(before, status) // written again, not ended again
			s.wakes("written again", late, false)
		}
	}
}

// wakeRace ends an action or a child run while the step that waits for it is being parked, or moves on. In whichever
// order the two commit, the step is settled in the end if it is parked, and only then.
func (s *suite) wakeRace() {
	const rounds = 24
	w := s.workflow(tenant, "triage", 1)
	for i := range rounds {
		st := s.inState(w, gatehouse.StepRunning)
		var end func(tx gatehouse.Tx) error
		var to gatehouse.StepStatus
		var on func(n *gatehouse.Step)
		if i%2 == 0 {
			a := s.pending()
			to, on = gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID = a.ID }
			end = func(tx gatehouse.Tx) error {
				return tx.MoveAction(move(a, gatehouse.StatusPending, gatehouse.StatusRejected))
			}
		} else {
			child, _ := s.one(w)
			s.moveRun(child, gatehouse.RunRunning)
			to, on = gatehouse.StepWaiting, func(n *gatehouse.Step) { n.ChildRun = child.ID }
			end = func(tx gatehouse.Tx) error { c := *child; return moveRun(tx, &c, gatehouse.RunFailed) }
		}
		leaves := i%4 >= 2
		if leaves {
			s.moveStep(st, to, on)
		}
		start := make(chan struct{})
		var group sync.WaitGroup
		for _, fn := range []func(tx gatehouse.Tx) error{
			end,
			func(tx gatehouse.Tx) error {
				next := to
				if leaves {
					next = gatehouse.StepCanceled
				}
				// Lock as the use cases do; this varies the order of the two.
				if _, err := tx.LockRun(st.RunID, ""); err != nil {
					return err
				}
				return tx.UpdateStep(moved(st, next, tx.Now(), on), st.Status, st.Generation)
			},
		} {
			group.Go(func() {
				<-start
				if err := s.store.Update(context.Background(), st.Tenant, fn); err != nil {
					s.Error(err)
				}
			})
		}
		close(start)
		group.Wait()
		s.wakes("in the end", st, !leaves)
	}
}

// wakeOrders ends an action in one transaction and parks its step in another, in both orders. The transaction that
// begins first stays open after its writes, so that the other one runs at the same time if the engine allows that.
func (s *suite) wakeOrders() {
	w := s.workflow(tenant, "triage", 1)
	for _, parkFirst := range []bool{true, false} {
		a := s.pending()
		st := s.inState(w, gatehouse.StepRunning)
		end := func(tx gatehouse.Tx) error {
			return tx.MoveAction(move(a, gatehouse.StatusPending, gatehouse.StatusRejected))
		}
		park := func(tx gatehouse.Tx) error {
			next := moved(st, gatehouse.StepWaitingApproval, tx.Now(), func(n *gatehouse.Step) { n.ActionID = a.ID })
			return tx.UpdateStep(next, st.Status, st.Generation)
		}
		first, second := end, park
		if parkFirst {
			first, second = park, end
		}
		written, through := make(chan struct{}), make(chan struct{})
		var once sync.Once
		done := make(chan error, 1)
		go func() {
			done <- s.store.Update(context.Background(), tenant, func(tx gatehouse.Tx) error {
				err := first(tx)
				if err == nil {
					_, err = tx.FindTenant() // flushes the writes
				}
				once.Do(func() { close(written) })
				select {
				case <-through: // the other transaction was not blocked
				case <-time.After(50 * time.Millisecond): // it waits for this one
				}
				return err
			})
		}()
		<-written
		s.update(second)
		close(through)
		if err := <-done; err != nil {
			s.Fatal(err)
		}
		s.wakes("parked on what ended at the same time", st, true)
	}
}
