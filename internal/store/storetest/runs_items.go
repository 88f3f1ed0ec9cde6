package storetest

import (
	"fmt"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// runItems: a locked run contains one item at most; of the other items it contains only the states that are not
// final.
func (s *suite) runItems() {
	w := s.workflow(tenant, "triage", 1)
	r := s.newRun(w, "each", "nap", "after")
	s.insert(r)
	each, nap := r.Steps[0], r.Steps[1]
	items := make([]*gatehouse.Step, 12)
	for i := range items {
		items[i] = s.newStep(r, fmt.Sprintf("each[%d]", i), 0)
		items[i].Parent, items[i].Item = each.ID, gatehouse.JSON(fmt.Sprint(i))
	}
	s.moveStep(each, gatehouse.StepRunning)
	s.moveStep(each, gatehouse.StepWaiting)
	s.moveStep(nap, gatehouse.StepRunning)
	s.moveStep(nap, gatehouse.StepWaiting, func(n *gatehouse.Step) { n.DueAt = &r.CreatedAt })
	s.update(func(tx gatehouse.Tx) error { return tx.InsertSteps(items...) })
	open := func(what string, item *gatehouse.Step, want ...gatehouse.StepStatus) {
		s.Helper()
		id := ""
		if item != nil {
			id = item.ID
		}
		var locked *gatehouse.Run
		s.update(func(tx gatehouse.Tx) (err error) { locked, err = tx.LockRun(r.ID, id); return err })
		got := locked.StepByID(each.ID).OpenItems
		slices.Sort(got)
		slices.Sort(want)
		s.same(what+": the states of the other items", got, want)
		if n := len(locked.Steps); item == nil && n != 3 || item != nil && (n != 4 || locked.Steps[1].ID != id) {
			s.Errorf("%s: locked with %d steps", what, n)
		}
		for _, other := range []string{nap.Key, "after"} {
			if got := locked.StepOf(other).OpenItems; len(got) > 0 {
				s.Errorf("%s: the step %s has items in %v", what, other, got)
			}
		}
	}
	open("all ready", items[3], gatehouse.StepReady)
	s.moveStep(items[0], gatehouse.StepRunning)
	s.moveStep(items[0], gatehouse.StepWaiting)
	s.moveStep(items[1], gatehouse.StepRunning)
	s.moveStep(items[1], gatehouse.StepRetrying, func(n *gatehouse.Step) { n.DueAt = &r.CreatedAt })
	s.moveStep(items[2], gatehouse.StepRunning)
	s.moveStep(items[4], gatehouse.StepRunning)
	s.moveStep(items[4], gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID = "act_x" })
	open("one in each state", nil, gatehouse.StepReady, gatehouse.StepRunning, gatehouse.StepWaiting,
		gatehouse.StepWaitingApproval, gatehouse.StepRetrying)
	open("seen from the one that runs", items[2], gatehouse.StepReady, gatehouse.StepWaiting,
		gatehouse.StepWaitingApproval, gatehouse.StepRetrying)
	list := func(open bool) (keys []string, all []*gatehouse.Step) {
		s.view(func(tx gatehouse.ReadTx) (err error) { all, err = tx.ListItems(each.ID, open); return err })
		for _, item := range all {
			keys = append(keys, item.Key)
		}
		return keys, all
	}
	_, all := list(false)
	s.same("all items", all, items)
	end := func(i int, to gatehouse.StepStatus) {
		if items[i].Status == gatehouse.StepReady && to != gatehouse.StepCanceled {
			s.moveStep(items[i], gatehouse.StepRunning)
		}
		s.moveStep(items[i], to)
	}
	for i := 5; i < 12; i++ {
		end(i, []gatehouse.StepStatus{gatehouse.StepSucceeded, gatehouse.StepFailed, gatehouse.StepCanceled}[i%3])
	}
	keys, _ := list(true)
	s.same("the open ones", keys, []string{"each[0]", "each[1]", "each[2]", "each[3]", "each[4]"})
	for i := range 5 {
		end(i, gatehouse.StepCanceled)
	}
	open("all have ended", nil)
	keys, _ = list(true)
	s.same("none is open", keys, []string(nil))
	s.view(func(tx gatehouse.ReadTx) error {
		n, err := tx.CountSteps(r.ID)
		if err != nil || n != 15 {
			s.Errorf("%d steps, %v", n, err)
		}
		got, err := tx.FindStepOf(r.ID, "each[11]")
		s.same("found by its key", got, items[11])
		none, e := tx.ListItems("", false)
		if len(none) > 0 || e != nil {
			s.Errorf("%d items of no step, %v", len(none), e)
		}
		return err
	})
}

// runLineage: the lineage of a run is the run itself and its ancestors: the runs that started it and the runs that
// it retries, recursively.
func (s *suite) runLineage() {
	w := s.workflow(tenant, "triage", 1)
	run := func(parent, again *gatehouse.Run) *gatehouse.Run {
		r := s.newRun(w, "a")
		r.Output = `"x"`
		if parent != nil {
			r.ParentRun, r.ParentStep = parent.ID, parent.Steps[0].ID
		}
		if again != nil {
			r.RetryOf = again.ID
		}
		s.insert(r)
		return r
	}
	root := run(nil, nil)
	first := run(root, nil)
	retried := run(nil, root)
	run(root, nil) // siblings
	last := run(retried, first)
	run(last, nil) // descendants
	s.view(func(tx gatehouse.ReadTx) error {
		line, err := tx.ListLineage(last.ID)
		if err != nil {
			return err
		}
		if len(line) == 0 || line[0].ID != last.ID {
			s.Fatalf("the lineage begins with %v", runIDs(line))
		}
		want := *last
		want.Input, want.Output, want.Steps = "", "", nil
		s.same("the run itself", line[0], &want)
		got := runIDs(line)
		slices.Sort(got)
		all := []string{root.ID, first.ID, retried.ID, last.ID}
		slices.Sort(all)
		s.same("the lineage", got, all)
		head, err := tx.FindRunHead(last.ID)
		s.same("the head", head, &want)
		if err != nil {
			return err
		}
		input, output, err := tx.FindRunBodies(last.ID)
		if input != last.Input || output != last.Output {
			s.Errorf("the bodies are %s and %s", input, output)
		}
		none, e := tx.ListLineage("run_x")
		if len(none) > 0 || e != nil {
			s.Errorf("of no run: %d, %v", len(none), e)
		}
		return err
	})
	var head *gatehouse.Run
	s.update(func(tx gatehouse.Tx) (err error) {
		if head, err = tx.LockRunHead(root.ID); err != nil {
			return err
		}
		head.Writes++
		return tx.MoveRun(head, head.Status)
	})
	if got := s.findRun(tenant, root.ID); got.Writes != 1 || got.Output != root.Output {
		s.Errorf("moved by its head: %d writes, output %s", got.Writes, got.Output)
	}
}
