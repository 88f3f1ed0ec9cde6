package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// workflow stores a version of a workflow.
func (s *suite) workflow(tenant, name string, version int) *gatehouse.Workflow {
	s.Helper()
	w := &gatehouse.Workflow{
		ID: "wfl_" + s.next(), Tenant: tenant, Name: name, Version: version, Workspace: "support",
		Description: "d <" + name + ">",
		Source:      "name: " + name + "\nsteps: []\n", Digest: gatehouse.NewDigest(gatehouse.JSON(name)), CreatedBy: "ana",
		CreatedAt: s.now(),
	}
	s.as(tenant).update(func(tx gatehouse.Tx) error { return tx.InsertWorkflow(w) })
	return w
}

// newRun returns a queued run of a workflow with a ready step for each key.
func (s *suite) newRun(w *gatehouse.Workflow, keys ...string) *gatehouse.Run {
	s.Helper()
	now := s.now()
	r := &gatehouse.Run{
		ID: "run_" + s.next(), Tenant: w.Tenant, Workflow: w.Name, Version: w.Version, Workspace: w.Workspace,
		Status:  gatehouse.RunQueued,
		Trigger: gatehouse.TriggerAPI, Input: `{"n":1.10}`, StartedBy: "ana", StarterID: "prn_ana", CreatedAt: now,
	}
	for i, key := range keys {
		r.Steps = append(r.Steps, s.newStep(r, key, i))
	}
	return r
}

func (s *suite) newStep(r *gatehouse.Run, key string, index int) *gatehouse.Step {
	return &gatehouse.Step{
		ID: "stp_" + s.next(), Tenant: r.Tenant, RunID: r.ID, Key: key, Index: index, Workflow: r.Workflow,
		Workspace: r.Workspace,
		Uses:      "transform", Status: gatehouse.StepReady, CreatedAt: r.CreatedAt, ReadyAt: &r.CreatedAt,
	}
}

func (s *suite) insert(runs ...*gatehouse.Run) {
	s.Helper()
	s.updateQueues(func(q gatehouse.Queues) error {
		for _, r := range runs {
			if err := q.In(r.Tenant).InsertRun(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// one stores a run with one ready step.
func (s *suite) one(w *gatehouse.Workflow) (*gatehouse.Run, *gatehouse.Step) {
	s.Helper()
	r := s.newRun(w, "a")
	s.insert(r)
	return r, r.Steps[0]
}

func (s *suite) findRun(tenant, id string) *gatehouse.Run {
	s.Helper()
	var r *gatehouse.Run
	s.as(tenant).view(func(tx gatehouse.ReadTx) (err error) { r, err = tx.FindRun(id); return err })
	return r
}

func (s *suite) findStep(of *gatehouse.Step) *gatehouse.Step {
	s.Helper()
	var got *gatehouse.Step
	s.as(of.Tenant).view(func(tx gatehouse.ReadTx) (err error) { got, err = tx.FindStep(of.ID); return err })
	return got
}

// runPath returns the states after queued that lead to a state, by moves of the transition table.
func runPath(to gatehouse.RunStatus) []gatehouse.RunStatus {
	switch to {
	case gatehouse.RunQueued:
		return nil
	case gatehouse.RunRunning:
		return []gatehouse.RunStatus{to}
	}
	return []gatehouse.RunStatus{gatehouse.RunRunning, to}
}

// moveRun brings a run from its state to another.
func (s *suite) moveRun(r *gatehouse.Run, to gatehouse.RunStatus) {
	s.Helper()
	s.as(r.Tenant).update(func(tx gatehouse.Tx) error { return moveRun(tx, r, to) })
}

func moveRun(tx gatehouse.Tx, r *gatehouse.Run, to gatehouse.RunStatus) error {
	from, now := r.Status, tx.Now()
	next := *r
	if next.Status = to; to == gatehouse.RunRunning && next.StartedAt == nil {
		next.StartedAt = &now
	}
	if to.Final() {
		next.FinishedAt = &now
	}
	err := tx.MoveRun(&next, from)
	if err == nil {
		*r = next
	}
	return err
}

// stepPath returns the states after ready that lead to a state.
func stepPath(to gatehouse.StepStatus) []gatehouse.StepStatus {
	switch to {
	case gatehouse.StepReady:
		return nil
	case gatehouse.StepRunning, gatehouse.StepCanceled:
		return []gatehouse.StepStatus{to}
	}
	return []gatehouse.StepStatus{gatehouse.StepRunning, to}
}

// moveStep writes a step in another state, with the fields that the state
// requires.
func (s *suite) moveStep(st *gatehouse.Step, to gatehouse.StepStatus, change ...func(*gatehouse.Step)) {
	s.Helper()
	var next gatehouse.Step
	s.as(st.Tenant).update(func(tx gatehouse.Tx) error {
		next = *moved(st, to, tx.Now(), change...)
		return tx.UpdateStep(&next, st.Status, st.Generation)
	})
	*st = next
}

func moved(
	st *gatehouse.Step, to gatehouse.StepStatus, now time.Time, change ...func(*gatehouse.Step),
) *gatehouse.Step {
	next, later := *st, now.Add(time.Hour)
	next.Status, next.LeaseOwner, next.LeaseUntil, next.DueAt = to, "", nil, nil
	switch to {
	case gatehouse.StepReady:
		next.ReadyAt = &now
	case gatehouse.StepRunning:
		next.Generation++
		next.Attempts++
		next.LeaseOwner, next.LeaseUntil = "w", &later
	case gatehouse.StepRetrying:
		next.DueAt = &later
	case gatehouse.StepWaitingApproval:
		next.ActionID = "act_none"
	}
	if to.Final() {
		next.FinishedAt = &now
	}
	for _, c := range change {
		c(&next)
	}
	return &next
}

// inState stores a run whose only step is in a state.
func (s *suite) inState(w *gatehouse.Workflow, status gatehouse.StepStatus) *gatehouse.Step {
	s.Helper()
	r := s.newRun(w, "a")
	st := r.Steps[0]
	if status == gatehouse.StepBlocked {
		st.Status, st.ReadyAt = status, nil
	}
	s.insert(r)
	if status != gatehouse.StepBlocked {
		for _, to := range stepPath(status) {
			s.moveStep(st, to)
		}
	}
	return st
}

func (s *suite) workflows() {
	first, second := s.workflow(tenant, "triage", 1), s.workflow(tenant, "triage", 2)
	other := s.workflow(tenant, "alpha", 1)
	again := *second
	again.ID = "wfl_again"
	s.updateReturns(gatehouse.ErrConflict, "a version that exists",
		func(tx gatehouse.Tx) error { return tx.InsertWorkflow(&again) })
	before := s.now().Add(-time.Hour)
	ended, open, old := s.newRun(second), s.newRun(first), s.newRun(first)
	old.CreatedAt = before.Add(-time.Second)
	s.insert(ended, open, old)
	s.moveRun(ended, gatehouse.RunRunning)
	s.moveRun(ended, gatehouse.RunFailed)
	bare := func(w *gatehouse.Workflow) *gatehouse.Workflow {
		c := *w
		c.Source = ""
		return &c
	}
	s.view(func(tx gatehouse.ReadTx) error {
		for version, want := range map[int]*gatehouse.Workflow{0: second, 1: first, 2: second} {
			got, err := tx.FindWorkflow("triage", version)
			if err != nil {
				return err
			}
			s.same(fmt.Sprintf("version %d", version), got, want)
		}
		for name, version := range map[string]int{"triage": 3, "nobody": 0} {
			if _, err := tx.FindWorkflow(name, version); !errors.Is(err, gatehouse.ErrNotFound) {
				s.Errorf("%s version %d: error %v", name, version, err)
			}
		}
		versions, err := tx.ListWorkflowVersions("triage")
		if err != nil {
			return err
		}
		s.same("versions", versions, []*gatehouse.Workflow{bare(second), bare(first)})
		want := []*gatehouse.WorkflowSummary{
			{Workflow: bare(other), Versions: 1, Runs: map[gatehouse.RunStatus]int{}},
			{Workflow: bare(second), Versions: 2,
				Runs: map[gatehouse.RunStatus]int{gatehouse.RunFailed: 1, gatehouse.RunQueued: 1}},
		}
		page, err := tx.ListWorkflows(before, "", 0)
		if err != nil {
			return err
		}
		s.same("workflows", page, gatehouse.Page[*gatehouse.WorkflowSummary]{Items: want})
		one, err := tx.ListWorkflows(before, "", 1)
		if err != nil {
			return err
		}
		s.same("the first page", one.Items, want[:1])
		two, err := tx.ListWorkflows(before, one.NextCursor, 1)
		s.same("the second page", two, gatehouse.Page[*gatehouse.WorkflowSummary]{Items: want[1:]})
		if err != nil {
			return err
		}
		if _, err := tx.FindWorkflowSummary("nobody", before); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("the summary of an unknown workflow: error %v", err)
		}
		summary, err := tx.FindWorkflowSummary("triage", before)
		s.same("one by its name", summary, &gatehouse.WorkflowSummary{Workflow: second, Versions: 2, Runs: want[1].Runs})
		return err
	})
}

// fullRun returns a queued run with most fields set. Together, its steps set the fields that a new step can
// have.
func (s *suite) fullRun(w *gatehouse.Workflow) *gatehouse.Run {
	s.Helper()
	r := s.newRun(w, "zeta", "alpha")
	r.Trigger, r.TriggerRef, r.Input = gatehouse.TriggerWebhook, "INC0001",
		`{"n":1234567890123456789,"x":1.10,"s":"ü\u2028"}`
	r.ParentRun, r.ParentStep, r.RetryOf, r.Writes = "run_p", "stp_p", "run_o", 3
	r.Failure = &gatehouse.Failure{Code: "boom", Detail: `it "did"`}
	deadline := r.CreatedAt.Add(time.Hour)
	r.Deadline = &deadline
	// Steps are ordered by index and then by key, not by insertion.
	r.Steps[0].Index, r.Steps[1].Index = 4, 4
	first, skipped := s.newStep(r, "omega", 1), s.newStep(r, "tau", 2)
	first.Status, first.ReadyAt, first.Input = gatehouse.StepBlocked, nil, `{"big":1e400}`
	skipped.Status, skipped.Skipped, skipped.Output, skipped.FinishedAt = gatehouse.StepSucceeded, true, `null`,
		&r.CreatedAt
	skipped.Tool, skipped.IdempotencyKey, skipped.Event = "page", "k", "e"
	r.Steps = append(r.Steps, skipped, first)
	return r
}

func (s *suite) runRoundTrip() {
	w := s.workflow(tenant, "triage", 1)
	r := s.fullRun(w)
	s.insert(r)
	// FindRun returns items after their step, in numerical order: alpha[2] before alpha[10].
	var items []*gatehouse.Step
	for _, i := range []int{10, 2, 0} {
		item := s.newStep(r, fmt.Sprintf("alpha[%d]", i), 4)
		item.Parent, item.Item = r.Steps[1].ID, gatehouse.JSON(fmt.Sprintf(`{"i":%d}`, i))
		items = append(items, item)
	}
	s.update(func(tx gatehouse.Tx) error { return tx.InsertSteps(items...) })
	want := *r
	want.Steps = []*gatehouse.Step{r.Steps[3], r.Steps[2], r.Steps[1], items[2], items[1], items[0], r.Steps[0]}
	s.same("the run", s.findRun(tenant, r.ID), &want)
	s.view(func(tx gatehouse.ReadTx) error {
		byRef, err := tx.FindRunByRef("triage", "INC0001")
		s.same("by ref", byRef, &want)
		for _, st := range want.Steps {
			got, err := tx.FindStep(st.ID)
			if err != nil {
				return err
			}
			s.same("step "+st.Key, got, st)
		}
		return err
	})
	for what, err := range map[string]error{
		"FindRun": s.store.View(s.Context(), tenant,
			func(tx gatehouse.ReadTx) error { _, err := tx.FindRun("run_x"); return err }),
		"FindRunByRef": s.store.View(s.Context(), tenant,
			func(tx gatehouse.ReadTx) error { _, err := tx.FindRunByRef("triage", ""); return err }),
		"FindRunHead": s.store.View(s.Context(), tenant,
			func(tx gatehouse.ReadTx) error { _, err := tx.FindRunHead("run_x"); return err }),
		"FindRunBodies": s.store.View(s.Context(), tenant,
			func(tx gatehouse.ReadTx) error { _, _, err := tx.FindRunBodies("run_x"); return err }),
		"FindStepOf": s.store.View(s.Context(), tenant,
			func(tx gatehouse.ReadTx) error { _, err := tx.FindStepOf(r.ID, "x"); return err }),
		"LockRunHead": s.store.Update(s.Context(), tenant,
			func(tx gatehouse.Tx) error { _, err := tx.LockRunHead("run_x"); return err }),
		"FindStep": s.store.View(s.Context(), tenant,
			func(tx gatehouse.ReadTx) error { _, err := tx.FindStep("stp_x"); return err }),
		"FindStepByKey": s.store.View(s.Context(), tenant,
			func(tx gatehouse.ReadTx) error { _, err := tx.FindStepByKey(""); return err }),
		"FindStepByAction": s.store.View(s.Context(), tenant,
			func(tx gatehouse.ReadTx) error { _, err := tx.FindStepByAction(""); return err }),
		"LockRun": s.store.Update(s.Context(), tenant,
			func(tx gatehouse.Tx) error { _, err := tx.LockRun("run_x", ""); return err }),
	} {
		if !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("%s of nothing: error %v", what, err)
		}
	}
	// LockRun leaves out the inputs and outputs, and all items except the given one. An engine may also leave out the
	// fields of succeeded and canceled steps that no transition uses.
	used := func(st *gatehouse.Step) *gatehouse.Step {
		c := *st
		c.Input, c.Output, c.Item = "", "", ""
		if st.Status == gatehouse.StepSucceeded || st.Status == gatehouse.StepCanceled {
			c = gatehouse.Step{
				Tenant: c.Tenant, RunID: c.RunID, Workflow: c.Workflow, Workspace: c.Workspace, ID: c.ID, Key: c.Key,
				Index: c.Index, Parent: c.Parent, Uses: c.Uses, Tool: c.Tool, Status: c.Status, Attempts: c.Attempts,
				Generation: c.Generation, Skipped: c.Skipped,
			}
		}
		return &c
	}
	light := want
	light.Input, light.Output, light.Steps = "", "", nil
	for _, st := range want.Steps {
		if st.Parent == "" || st == items[1] {
			light.Steps = append(light.Steps, used(st))
		}
	}
	var locked *gatehouse.Run
	s.update(func(tx gatehouse.Tx) (err error) { locked, err = tx.LockRun(r.ID, items[1].ID); return err })
	for i, st := range locked.Steps {
		locked.Steps[i] = used(st)
	}
	s.same("the locked run", locked, &light)
	s.updateReturns(gatehouse.ErrNotFound, "items of no run", func(tx gatehouse.Tx) error {
		item := *items[0]
		item.ID, item.RunID = "stp_y", "run_x"
		return tx.InsertSteps(&item)
	})
	s.updateReturns(gatehouse.ErrNotFound, "a run of no workflow", func(tx gatehouse.Tx) error {
		return tx.InsertRun(
			&gatehouse.Run{ID: "run_z", Tenant: tenant, Workflow: "nobody", Version: 1, Status: gatehouse.RunQueued,
				Trigger: gatehouse.TriggerAPI, CreatedAt: r.CreatedAt})
	})
	// Runs and steps begin only in states that the transition table allows for new ones.
	for _, status := range gatehouse.RunStatuses() {
		fresh := s.newRun(w)
		fresh.Status, fresh.FinishedAt = status, &fresh.CreatedAt
		err := s.store.Update(s.Context(), fresh.Tenant, func(tx gatehouse.Tx) error { return tx.InsertRun(fresh) })
		if allowed := gatehouse.RunStatus("").CanMove(status); allowed != (err == nil) || err != nil &&
			!errors.Is(err, gatehouse.ErrConflict) {
			s.Errorf("a new run in %s: error %v", status, err)
		}
	}
	for _, status := range gatehouse.StepStatuses() {
		fresh := s.newRun(w, "a")
		fresh.Steps[0] = moved(fresh.Steps[0], status, fresh.CreatedAt)
		err := s.store.Update(s.Context(), fresh.Tenant, func(tx gatehouse.Tx) error { return tx.InsertRun(fresh) })
		if allowed := gatehouse.StepStatus("").CanMove(status); allowed != (err == nil) || err != nil &&
			!errors.Is(err, gatehouse.ErrConflict) {
			s.Errorf("a new step in %s: error %v", status, err)
		}
	}
}

func (s *suite) runKeys() {
	w, other := s.workflow(tenant, "triage", 1), s.workflow(tenant, "other", 1)
	named := func(w *gatehouse.Workflow, ref, key string) *gatehouse.Run {
		r := s.newRun(w, "a")
		r.TriggerRef, r.Steps[0].IdempotencyKey = ref, key
		return r
	}
	r := named(w, "INC1", "k1")
	s.insert(r, named(w, "", ""), named(w, "", "")) // an empty ref or key is none
	for what, known := range map[string]*gatehouse.Run{"trigger_ref": named(w, "INC1", "k2"),
		"idempotency key": named(w, "INC2", "k1")} {
		s.updateReturns(gatehouse.ErrConflict, "a known "+what, func(tx gatehouse.Tx) error { return tx.InsertRun(known) })
		if err := s.store.View(s.Context(), tenant,
			func(tx gatehouse.ReadTx) error {
				_, err := tx.FindRun(
					known.ID,
				)
				return err
			}); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("a run with a known %s is stored: %v", what, err)
		}
	}
	s.insert(named(other, "INC1", "k3")) // the same ref in another workflow
	item := s.newStep(r, "a[0]", 0)
	item.IdempotencyKey = "k1"
	s.updateReturns(gatehouse.ErrConflict, "an item with a known key",
		func(tx gatehouse.Tx) error { return tx.InsertSteps(item) })
	item.Key, item.IdempotencyKey = "a", ""
	s.updateReturns(gatehouse.ErrConflict, "a step that the run has",
		func(tx gatehouse.Tx) error { return tx.InsertSteps(item) })
	_, st := s.one(w)
	running := moved(st, gatehouse.StepRunning, s.now(), func(n *gatehouse.Step) { n.IdempotencyKey = "k1" })
	s.updateReturns(gatehouse.ErrConflict, "taking a known key",
		func(tx gatehouse.Tx) error { return tx.UpdateStep(running, st.Status, 0) })
	s.same("the step that was refused", s.findStep(st), st)
	holder := func() (got *gatehouse.Step, err error) {
		err = s.store.View(
			s.Context(),
			tenant,
			func(tx gatehouse.ReadTx) (err error) { got, err = tx.FindStepByKey("k1"); return err },
		)
		return got, err
	}
	if got, err := holder(); err != nil || got.ID != r.Steps[0].ID {
		s.Fatalf("the holder of the key: %v, %v", got, err)
	}
	// A failed or canceled step releases its key.
	s.moveStep(r.Steps[0], gatehouse.StepRunning)
	s.moveStep(r.Steps[0], gatehouse.StepFailed)
	if got, err := holder(); !errors.Is(err, gatehouse.ErrNotFound) {
		s.Errorf("after it has failed: %v, %v", got, err)
	}
	s.moveStep(st, gatehouse.StepRunning, func(n *gatehouse.Step) { n.IdempotencyKey = "k1" })
	if got, err := holder(); err != nil || got.ID != st.ID {
		s.Errorf("the new holder: %v, %v", got, err)
	}
	s.moveStep(st, gatehouse.StepSucceeded)
	if got, err := holder(); err != nil || got.ID != st.ID {
		s.Errorf("after it has succeeded: %v, %v", got, err)
	}
}

func (s *suite) runLists() {
	w, other := s.workflow(tenant, "triage", 1), s.workflow(tenant, "other", 1)
	var all []*gatehouse.Run
	inputs := make(map[string]gatehouse.JSON)
	for i := range 12 {
		of := w
		if i%3 == 2 {
			of = other
		}
		r := s.newRun(of, "a")
		r.Input = gatehouse.JSON(fmt.Sprintf(`{"customer":"C-%d","inner":{"customer":"C-9"},"n":1%d}`, i%4, i))
		inputs[r.ID] = r.Input
		if i%4 < 2 {
			r.CreatedAt = firstOr(all, r).CreatedAt // several with the same time
		}
		s.insert(r)
		if i%2 == 1 {
			s.moveRun(r, gatehouse.RunRunning)
		}
		r.Steps, r.Input = nil, ""
		all = append([]*gatehouse.Run{r}, all...)
	}
	slices.SortStableFunc(all, func(a, b *gatehouse.Run) int { return b.CreatedAt.Compare(a.CreatedAt) })
	walk := func(f gatehouse.RunFilter) (got []*gatehouse.Run) {
		f.Limit = 3
		for {
			var page gatehouse.Page[*gatehouse.Run]
			s.view(func(tx gatehouse.ReadTx) (err error) { page, err = tx.ListRuns(f); return err })
			got = append(got, page.Items...)
			if f.Cursor = page.NextCursor; f.Cursor == "" {
				return got
			}
		}
	}
	for _, f := range []gatehouse.RunFilter{
		{},
		{Status: gatehouse.RunRunning},
		{Workflow: "other"},
		{Status: gatehouse.RunQueued, Workflow: "triage"},
		{Status: gatehouse.RunFailed},
		{Since: all[4].CreatedAt},
		{Until: all[4].CreatedAt},
		{Since: all[8].CreatedAt, Until: all[2].CreatedAt},
		{Since: all[8].CreatedAt, Workflow: "triage"},
		{Until: all[2].CreatedAt, Status: gatehouse.RunQueued},
		{Since: all[9].CreatedAt, Status: gatehouse.RunQueued, Workflow: "triage"},
		{InputField: "customer", InputValue: "C-1"},
		{InputField: "customer", InputValue: "C-1", Workflow: "triage", Status: gatehouse.RunRunning},
		{InputField: "customer", InputValue: "C-9"}, // inside another member
		{InputField: "n", InputValue: "11"},         // also the beginning of 110 and 111
		{InputField: "inner", InputValue: "C-1"},
	} {
		var want []*gatehouse.Run
		for _, r := range all {
			if (f.Status == "" || r.Status == f.Status) && (f.Workflow == "" || r.Workflow == f.Workflow) &&
				!r.CreatedAt.Before(f.Since) && (f.Until.IsZero() || r.CreatedAt.Before(f.Until)) && f.HasInput(inputs[r.ID]) {
				want = append(want, r)
			}
		}
		s.same(fmt.Sprintf("runs by %+v", f), walk(f), want)
	}
	s.view(func(tx gatehouse.ReadTx) error {
		page, err := tx.ListRuns(gatehouse.RunFilter{Limit: 1})
		if err != nil {
			return err
		}
		_, err = tx.ListRuns(gatehouse.RunFilter{Limit: 1, Workflow: "triage", Cursor: page.NextCursor})
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			s.Errorf("another filter's cursor: error %v", err)
		}
		_, err = tx.ListRuns(gatehouse.RunFilter{Limit: 1, Since: all[4].CreatedAt, Cursor: page.NextCursor})
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			s.Errorf("the cursor of another time: error %v", err)
		}
		return nil
	})
}

// firstOr returns the first run of the list, or r if the list is empty.
func firstOr(list []*gatehouse.Run, r *gatehouse.Run) *gatehouse.Run {
	if len(list) > 0 {
		return list[0]
	}
	return r
}
