package storetest

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func refIDs(refs []gatehouse.StepRef) (ids []string) {
	for _, r := range refs {
		ids = append(ids, r.StepID)
	}
	return ids
}

func runIDs(runs []*gatehouse.Run) (ids []string) {
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids
}

func (s *suite) dueSteps() {
	w := s.workflow(tenant, "triage", 1)
	base := s.now()
	due := func(status gatehouse.StepStatus, at time.Time) *gatehouse.Step {
		st := s.inState(w, gatehouse.StepRunning)
		s.moveStep(st, status, func(n *gatehouse.Step) { n.DueAt = &at })
		return st
	}
	third := due(gatehouse.StepWaitingApproval, base.Add(-time.Second))
	first := due(gatehouse.StepRetrying, base.Add(-time.Hour))
	second := due(gatehouse.StepWaiting, base.Add(-time.Minute))
	later := due(gatehouse.StepWaiting, base.Add(time.Hour))
	s.inState(w, gatehouse.StepReady)
	for _, status := range []gatehouse.StepStatus{gatehouse.StepSucceeded, gatehouse.StepFailed, gatehouse.StepCanceled} {
		due(status, base.Add(-time.Hour)) // has ended
	}
	s.moveStep(s.inState(w, gatehouse.StepRunning), gatehouse.StepRunning, func(n *gatehouse.Step) { n.DueAt = &base })
	s.updateQueues(func(q gatehouse.Queues) error {
		tx := q.In(first.Tenant)
		refs, err := q.DueSteps(10)
		if err != nil {
			return err
		}
		s.same("due", refIDs(refs), []string{first.ID, second.ID, third.ID})
		s.same("the first ref", refs[0], gatehouse.StepRef{Tenant: tenant, RunID: first.RunID, StepID: first.ID})
		refs, err = q.DueSteps(2)
		if err != nil {
			return err
		}
		s.same("the first two", refIDs(refs), []string{first.ID, second.ID})
		// A step that is due exactly now is due.
		now := tx.Now()
		if err := tx.UpdateStep(moved(later, gatehouse.StepWaiting, now, func(n *gatehouse.Step) { n.DueAt = &now }),
			gatehouse.StepWaiting, later.Generation); err != nil {
			return err
		}
		refs, err = q.DueSteps(10)
		s.same("with what is due now", refIDs(refs), []string{first.ID, second.ID, third.ID, later.ID})
		return err
	})
}

func (s *suite) expiredSteps() {
	w := s.workflow(tenant, "triage", 1)
	base := s.now()
	lease := func(until time.Time) *gatehouse.Step {
		st := s.inState(w, gatehouse.StepReady)
		s.moveStep(st, gatehouse.StepRunning, func(n *gatehouse.Step) { n.LeaseUntil = &until })
		return st
	}
	second, first, later := lease(base.Add(-time.Second)), lease(base.Add(-time.Minute)), lease(base.Add(time.Hour))
	gone := lease(base.Add(-time.Minute))
	s.moveStep(gone, gatehouse.StepSucceeded, func(n *gatehouse.Step) { n.LeaseUntil = &base })
	s.updateQueues(func(q gatehouse.Queues) error {
		tx := q.In(first.Tenant)
		refs, err := q.ExpiredSteps(10)
		if err != nil {
			return err
		}
		got := refIDs(refs)
		slices.Sort(got)
		want := []string{first.ID, second.ID}
		slices.Sort(want)
		s.same("expired", got, want)
		refs, err = q.ExpiredSteps(1)
		if err != nil || len(refs) != 1 {
			s.Errorf("one of them: %v, %v", refs, err)
		}
		now := tx.Now()
		if err := tx.UpdateStep(moved(later, gatehouse.StepRunning, now, func(n *gatehouse.Step) { n.LeaseUntil = &now }),
			gatehouse.StepRunning, later.Generation); err != nil {
			return err
		}
		refs, err = q.ExpiredSteps(10)
		if len(refs) != 3 {
			s.Errorf("with the one that ends now: %v", refs)
		}
		return err
	})
}

func (s *suite) overdueRuns() {
	w := s.workflow(tenant, "triage", 1)
	base := s.now()
	var want []string
	for i, status := range gatehouse.RunStatuses() {
		deadline := base.Add(time.Duration(i-20) * time.Second)
		for _, stop := range []gatehouse.RunStatus{"", gatehouse.RunCanceled} {
			r := s.newRun(w, "a")
			r.Deadline = &deadline
			s.insert(r)
			r.Stop = stop
			for _, to := range runPath(status) {
				s.moveRun(r, to)
			}
			if status == gatehouse.RunQueued {
				s.update(func(tx gatehouse.Tx) error { return tx.MoveRun(r, r.Status) })
			}
			if stop == "" && !status.Final() {
				want = append(want, r.ID)
			}
		}
	}
	later, none := s.newRun(w), s.newRun(w)
	at := base.Add(time.Hour)
	later.Deadline = &at
	s.insert(later, none)
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		got, err := q.OverdueRuns(20)
		if err != nil {
			return err
		}
		s.same("overdue", runIDs(got), want)
		if len(got[0].Steps) > 0 || got[0].Deadline == nil || got[0].Workflow != w.Name {
			s.Errorf("an overdue run: %+v", got[0])
		}
		got, err = q.OverdueRuns(2)
		s.same("two of them", runIDs(got), want[:2])
		return err
	})
}

// workTies: entries with the same time come in the order of creation, whatever
// was written last.
func (s *suite) workTies() {
	w := s.workflow(tenant, "triage", 1)
	at := s.now().Add(-time.Minute)
	var ends, due, overdue []string
	var steps []*gatehouse.Step
	var runs []*gatehouse.Run
	for range 3 {
		steps = append(steps, s.inState(w, gatehouse.StepReady), s.inState(w, gatehouse.StepRunning))
		r := s.newRun(w, "a")
		r.Deadline = &at
		s.insert(r)
		runs = append(runs, r)
		ends, due, overdue = append(ends, steps[len(steps)-2].ID), append(due, steps[len(steps)-1].ID), append(overdue, r.ID)
	}
	for _, i := range []int{4, 0, 2} {
		s.moveStep(steps[i], gatehouse.StepRunning, func(n *gatehouse.Step) { n.LeaseUntil = &at })
		s.moveStep(steps[i+1], gatehouse.StepWaiting, func(n *gatehouse.Step) { n.DueAt = &at })
		s.moveRun(runs[i/2], gatehouse.RunRunning)
	}
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		expired, err := q.ExpiredSteps(10)
		s.same("what ends at one moment", refIDs(expired), ends)
		if err != nil {
			return err
		}
		found, err := q.DueSteps(10)
		s.same("what is due at one moment", refIDs(found), due)
		if err != nil {
			return err
		}
		late, err := q.OverdueRuns(10)
		s.same("what is overdue from one moment on", runIDs(late), overdue)
		return err
	})
}

func (s *suite) nextRunWork() {
	w := s.workflow(tenant, "triage", 1)
	next := func() (at time.Time) {
		s.Helper()
		s.viewQueues(func(q gatehouse.ReadQueues) (err error) { at, err = q.NextRunWorkAt(); return err })
		return at
	}
	_, st := s.one(w)
	if at := next(); !at.IsZero() {
		s.Errorf("with only a ready step, the next time is %s", at)
	}
	base := s.now()
	in := func(minutes int) time.Time { return base.Add(time.Duration(minutes) * time.Minute) }
	deadline := in(90)
	d := s.newRun(w)
	d.Deadline = &deadline
	s.insert(d)
	s.same("a deadline", next(), in(90))
	s.update(func(tx gatehouse.Tx) error {
		return tx.PutSchedule(&gatehouse.Schedule{Tenant: tenant, Workflow: w.Name, Version: 1, NextAt: in(80)}, time.Time{})
	})
	s.same("a schedule", next(), in(80))
	until, due := in(70), in(60)
	s.moveStep(st, gatehouse.StepRunning, func(n *gatehouse.Step) { n.LeaseUntil = &until })
	s.same("a lease", next(), in(70))
	other := s.inState(w, gatehouse.StepRunning)
	s.moveStep(other, gatehouse.StepWaiting, func(n *gatehouse.Step) { n.DueAt = &due })
	s.same("what is due", next(), in(60))
	s.moveStep(other, gatehouse.StepSucceeded, func(n *gatehouse.Step) { n.DueAt = &due })
	s.same("what was due", next(), in(70))
	s.moveStep(st, gatehouse.StepSucceeded)
	s.same("after the lease", next(), in(80))
	s.update(func(tx gatehouse.Tx) error {
		return tx.PutSchedule(&gatehouse.Schedule{Tenant: tenant, Workflow: w.Name}, time.Time{})
	})
	s.same("after the schedule", next(), in(90))
	d.Stop = gatehouse.RunFailed
	s.update(func(tx gatehouse.Tx) error { return tx.MoveRun(d, d.Status) })
	if at := next(); !at.IsZero() {
		s.Errorf("with all work done, the next time is %s", at)
	}
	parked, a := s.inState(w, gatehouse.StepRunning), s.in(gatehouse.StatusApplied)
	s.moveStep(parked, gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID = a.ID })
	if at := next(); at.IsZero() || at.After(base) {
		s.Errorf("with a step that can continue: %s", at)
	}
}

func (s *suite) queuedRuns() {
	s.newTenants("acme")
	a, b, c := s.workflow("acme", "a", 1), s.workflow("acme", "b", 1), s.workflow(tenant, "a", 1)
	since := s.now()
	var queued []*gatehouse.Run
	for i := range 4 {
		r := s.newRun(a, "x")
		r.CreatedAt = since.Add(-time.Duration(i) * time.Second)
		s.insert(r)
		queued = append([]*gatehouse.Run{r}, queued...)
	}
	started := func(w *gatehouse.Workflow, at time.Time) {
		r := s.newRun(w)
		s.insert(r)
		r.StartedAt = &at
		s.moveRun(r, gatehouse.RunRunning)
	}
	started(a, since.Add(time.Second))
	started(a, since) // not after since
	started(a, since.Add(-time.Hour))
	started(b, since.Add(time.Second))
	s.insert(s.newRun(c))
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		tx := q.In("acme")
		lanes, err := q.QueuedLanes(gatehouse.QueuedLane{}, 10, 3, since)
		if err != nil {
			return err
		}
		slices.SortFunc(lanes, func(x, y gatehouse.QueuedLane) int { return x.Queued - y.Queued })
		s.same("queued", lanes, []gatehouse.QueuedLane{
			{Tenant: tenant, Workspace: "support", Workflow: "a", Queued: 1},
			{Tenant: "acme", Workspace: "support", Workflow: "a", Queued: 3, WorkflowStarted: 1, TenantStarted: 2},
		})
		first, err := q.QueuedLanes(gatehouse.QueuedLane{}, 1, 3, since)
		if err != nil || len(first) != 1 || first[0].Tenant != "acme" {
			s.Errorf("one workflow: %v, %v", first, err)
			return err
		}
		rest, err := q.QueuedLanes(first[0], 10, 3, since)
		if err != nil || len(rest) != 1 || rest[0].Tenant != tenant {
			s.Errorf("the workflows after it: %v, %v", rest, err)
		}
		got, err := tx.OldestQueued("a", 3)
		if err != nil {
			return err
		}
		s.same("the oldest", runIDs(got), runIDs(queued[:3]))
		if len(got[0].Steps) > 0 {
			s.Error("the runs contain their steps")
		}
		ofWorkflow, ofTenant, err := tx.StartedRuns("a", since)
		if err != nil || ofWorkflow != 1 || ofTenant != 2 {
			s.Errorf("started of workflow and tenant: %d, %d, %v", ofWorkflow, ofTenant, err)
		}
		none, err := tx.OldestQueued("b", 3)
		if len(none) > 0 {
			s.Errorf("started runs are listed as queued: %v", runIDs(none))
		}
		return err
	})
}

func (s *suite) schedules() {
	w := s.workflow(tenant, "triage", 1)
	v := s.workflow(tenant, "other", 1)
	base := s.now()
	at := func(w *gatehouse.Workflow, d time.Duration) *gatehouse.Schedule {
		return &gatehouse.Schedule{Tenant: tenant, Workflow: w.Name, Version: w.Version, NextAt: base.Add(d)}
	}
	put := func(sc *gatehouse.Schedule, from time.Time) error {
		return s.store.Update(s.Context(), sc.Tenant, func(tx gatehouse.Tx) error { return tx.PutSchedule(sc, from) })
	}
	due := func(want ...*gatehouse.Schedule) {
		s.Helper()
		s.viewQueues(func(q gatehouse.ReadQueues) error {
			got, err := q.DueSchedules(10)
			s.same("due schedules", got, want)
			return err
		})
	}
	gone := gatehouse.Schedule{Tenant: tenant, Workflow: w.Name}
	must := func(err error) {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
	}
	must(put(&gone, time.Time{})) // no schedule exists
	must(put(at(w, -time.Minute), time.Time{}))
	must(put(at(v, time.Hour), time.Time{}))
	due(at(w, -time.Minute))
	must(put(at(v, -time.Second), base.Add(time.Hour)))
	must(put(at(w, -2*time.Minute), time.Time{})) // replaces the stored one
	due(at(w, -2*time.Minute), at(v, -time.Second))
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		got, err := q.DueSchedules(1)
		if len(got) != 1 {
			s.Errorf("one schedule: %v", got)
		}
		return err
	})
	for _, sc := range []*gatehouse.Schedule{at(w, time.Hour), &gone} {
		s.updateReturns(gatehouse.ErrConflict, "a schedule that has moved",
			func(tx gatehouse.Tx) error { return tx.PutSchedule(sc, base) })
	}
	s.updateReturns(gatehouse.ErrNotFound, "a schedule of no workflow", func(tx gatehouse.Tx) error {
		return tx.PutSchedule(&gatehouse.Schedule{Tenant: tenant, Workflow: "x", Version: 1, NextAt: base}, time.Time{})
	})
	due(at(w, -2*time.Minute), at(v, -time.Second))
	must(put(&gone, base.Add(-2*time.Minute)))
	due(at(v, -time.Second))
	s.updateQueues(func(q gatehouse.Queues) error {
		tx := q.In(tenant)
		now := tx.Now()
		if err := tx.PutSchedule(&gatehouse.Schedule{Tenant: tenant, Workflow: v.Name, Version: 1, NextAt: now},
			time.Time{}); err != nil {
			return err
		}
		got, err := q.DueSchedules(10)
		if len(got) != 1 || !got[0].NextAt.Equal(now) {
			s.Errorf("at its time: %v", got)
		}
		return err
	})
}

func (s *suite) runCounts() {
	s.newTenants("acme")
	mine, theirs := s.workflow(tenant, "triage", 1), s.workflow("acme", "triage", 1)
	want := map[gatehouse.RunStatus]int{}
	for i, status := range gatehouse.RunStatuses() {
		for n := range i%3 + 1 {
			r := s.newRun([]*gatehouse.Workflow{mine, theirs}[n%2])
			s.insert(r)
			for _, to := range runPath(status) {
				s.moveRun(r, to)
			}
			if !status.Final() {
				want[status]++
			}
		}
	}
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		got, err := q.RunCounts()
		s.same("counts", got, want)
		return err
	})
}
