package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// runWalls fills one tenant with a run and its rows, then reads and writes them
// as another tenant.
func (s *suite) runWalls() {
	const other = "acme"
	s.newTenants(other)
	w := s.workflow(tenant, "triage", 1)
	a := s.pending()
	r := s.newRun(w, "parked", "ready")
	r.TriggerRef, r.Steps[0].IdempotencyKey = "INC1", "k"
	s.insert(r)
	parked, ready := r.Steps[0], r.Steps[1]
	s.moveStep(parked, gatehouse.StepRunning)
	s.moveStep(parked, gatehouse.StepWaitingApproval, func(n *gatehouse.Step) { n.ActionID = a.ID })
	now := s.now()
	signal := &gatehouse.Signal{Tenant: tenant, RunID: r.ID, ID: "sig_1", Name: "go", At: now}
	s.update(func(tx gatehouse.Tx) error {
		return errors.Join(
			tx.PutSchedule(&gatehouse.Schedule{Tenant: tenant, Workflow: w.Name, Version: 1, NextAt: now}, time.Time{}),
			tx.InsertAttempt(
				&gatehouse.StepAttempt{Tenant: tenant, RunID: r.ID, StepID: parked.ID, Attempt: 1, Generation: 1, StartedAt: now,
					FinishedAt: now, Outcome: "x"}),
			tx.InsertUsage(
				&gatehouse.ModelUsage{Tenant: tenant, RunID: r.ID, Workflow: w.Name, StepID: parked.ID, Cost: "1", Currency: "USD",
					At: now}),
			tx.InsertSignal(signal),
			tx.InsertRunContributor(r.ID, "prn_ana"),
			tx.InsertReflexion(
				&gatehouse.Reflexion{ID: "rfx_1", Tenant: tenant, RunID: r.ID, Workflow: w.Name, Version: 1,
					Outcome: gatehouse.RunFailed, At: now}),
			tx.InsertBundle(
				&gatehouse.Bundle{Tenant: tenant, RunID: r.ID, SHA256: strings.Repeat("0", 64), Archive: []byte{1},
					CreatedAt: now}),
			tx.AppendLeaf(&gatehouse.Leaf{Tenant: tenant, Type: "run.created", Subject: r.ID}),
		)
	})
	waiting := s.waiting(10)
	s.update(func(tx gatehouse.Tx) error {
		list, hashes, err := numbered(tx, 0, waiting)
		return errors.Join(err, tx.NumberLeaves(0, list, hashes))
	})
	before := s.findRun(tenant, r.ID)
	for what, there := range s.lookAtRun(tenant, r, parked, ready, a) {
		if !there {
			s.Errorf("%s does not show the tenant its own row: the test proves nothing", what)
		}
	}
	for what, there := range s.lookAtRun(other, r, parked, ready, a) {
		if there {
			s.Errorf("%s shows another tenant's row", what)
		}
	}
	theirs := func(st *gatehouse.Step) *gatehouse.Step {
		c := *st
		c.Tenant = other
		return &c
	}
	for what, write := range map[string]func(tx gatehouse.Tx) error{
		"InsertRun of its workflow": func(tx gatehouse.Tx) error {
			c := *r
			c.Tenant, c.Steps = other, nil
			return tx.InsertRun(&c)
		},
		"MoveRun": func(tx gatehouse.Tx) error {
			c := *r
			c.Tenant, c.Status = other, gatehouse.RunRunning
			return tx.MoveRun(&c, gatehouse.RunQueued)
		},
		"InsertSteps": func(tx gatehouse.Tx) error {
			c := theirs(ready)
			c.ID, c.Key = "stp_x", "x"
			return tx.InsertSteps(c)
		},
		"UpdateStep": func(tx gatehouse.Tx) error {
			return tx.UpdateStep(moved(theirs(ready), gatehouse.StepCanceled, now), gatehouse.StepReady, 0)
		},
		"PassStep": func(tx gatehouse.Tx) error {
			c := theirs(ready)
			c.Status, c.Attempts, c.Generation, c.ReadyAt, c.StartedAt, c.FinishedAt = gatehouse.StepSucceeded, 1, 1, &now, &now,
				&now
			return tx.PassStep(c, "w")
		},
		"UpdateStep of what is parked": func(tx gatehouse.Tx) error {
			return tx.UpdateStep(moved(theirs(parked), gatehouse.StepSucceeded, now), parked.Status, parked.Generation)
		},
		"InsertAttempt": func(tx gatehouse.Tx) error {
			return tx.InsertAttempt(
				&gatehouse.StepAttempt{Tenant: other, RunID: r.ID, StepID: parked.ID, Attempt: 2, Generation: 2, StartedAt: now,
					FinishedAt: now, Outcome: "x"})
		},
		"InsertUsage": func(tx gatehouse.Tx) error {
			return tx.InsertUsage(
				&gatehouse.ModelUsage{Tenant: other, RunID: r.ID, Workflow: w.Name, StepID: parked.ID, Currency: "USD", At: now})
		},
		"InsertSignal": func(tx gatehouse.Tx) error {
			c := *signal
			c.Tenant = other
			return tx.InsertSignal(&c)
		},
		"InsertRunContributor": func(tx gatehouse.Tx) error { return tx.InsertRunContributor(r.ID, "prn_ana") },
		"TakeSignal":           func(tx gatehouse.Tx) error { _, err := tx.TakeSignal(r.ID, "go"); return err },
		"InsertReflexion": func(tx gatehouse.Tx) error {
			return tx.InsertReflexion(
				&gatehouse.Reflexion{ID: "rfx_2", Tenant: other, RunID: r.ID, Outcome: gatehouse.RunFailed, At: now})
		},
		"InsertBundle": func(tx gatehouse.Tx) error {
			return tx.InsertBundle(
				&gatehouse.Bundle{Tenant: other, RunID: r.ID, SHA256: strings.Repeat("1", 64), Archive: []byte{1}, CreatedAt: now})
		},
		"PutSchedule": func(tx gatehouse.Tx) error {
			return tx.PutSchedule(&gatehouse.Schedule{Tenant: other, Workflow: w.Name, Version: 1, NextAt: now}, time.Time{})
		},
		"PutSchedule from": func(tx gatehouse.Tx) error {
			return tx.PutSchedule(&gatehouse.Schedule{Tenant: other, Workflow: w.Name, Version: 1}, now)
		},
	} {
		err := s.store.Update(s.Context(), other, write)
		if !errors.Is(err, gatehouse.ErrNotFound) && !errors.Is(err, gatehouse.ErrConflict) {
			s.Errorf("%s on another tenant's row: error %v", what, err)
		}
	}
	s.as(other).update(func(tx gatehouse.Tx) error {
		return tx.PutSchedule(&gatehouse.Schedule{Tenant: other, Workflow: w.Name}, time.Time{})
	})
	s.same("after it all", s.findRun(tenant, r.ID), before)
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		due, err := q.DueSchedules(10)
		if len(due) != 1 {
			s.Error("another tenant has removed the schedule")
		}
		return err
	})
	// The end of another tenant's action wakes no step here, even with the same
	// id.
	s.as(other).update(func(tx gatehouse.Tx) error {
		b := *a
		b.Tenant = other
		return tx.InsertAction(&b)
	})
	s.as(other).update(func(tx gatehouse.Tx) error {
		b := *a
		b.Tenant = other
		return tx.MoveAction(move(&b, gatehouse.StatusPending, gatehouse.StatusRejected))
	})
	s.wakes("another tenant's action", parked, false)
	// The other tenant can use the same names, refs and keys.
	v := s.workflow(other, "triage", 1)
	c := s.newRun(v, "parked")
	c.TriggerRef, c.Steps[0].IdempotencyKey = r.TriggerRef, "k"
	s.insert(c)
}

// lookAtRun calls methods that read workflows, runs and their rows, for one tenant, and reports which of them returned
// something.
func (s *suite) lookAtRun(
	tenant string, r *gatehouse.Run, parked, ready *gatehouse.Step, a *gatehouse.Action,
) map[string]bool {
	seen := make(map[string]bool)
	s.updateQueues(func(q gatehouse.Queues) error {
		tx := q.In(tenant)
		clear(seen)
		found := func(what string, err error) {
			seen[what] = err == nil
			if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
				s.Errorf("%s: %v", what, err)
			}
		}
		some := func(what string, n int, err error) {
			found(what, err)
			seen[what] = n > 0
		}
		_, err := tx.FindWorkflow(r.Workflow, 0)
		found("FindWorkflow", err)
		_, err = tx.FindWorkflow(r.Workflow, 1)
		found("FindWorkflow by version", err)
		workflows, err := tx.ListWorkflows(time.Time{}, "", 0)
		some("ListWorkflows", len(workflows.Items), err)
		versions, err := tx.ListWorkflowVersions(r.Workflow)
		some("ListWorkflowVersions", len(versions), err)
		_, err = tx.FindRun(r.ID)
		found("FindRun", err)
		_, err = tx.LockRun(r.ID, "")
		found("LockRun", err)
		_, err = tx.LockRunHead(r.ID)
		found("LockRunHead", err)
		_, err = tx.FindRunHead(r.ID)
		found("FindRunHead", err)
		_, _, err = tx.FindRunBodies(r.ID)
		found("FindRunBodies", err)
		line, err := tx.ListLineage(r.ID)
		some("ListLineage", len(line), err)
		_, err = tx.FindStepOf(r.ID, parked.Key)
		found("FindStepOf", err)
		steps, err := tx.CountSteps(r.ID)
		some("CountSteps", steps, err)
		_, err = tx.FindRunByRef(r.Workflow, r.TriggerRef)
		found("FindRunByRef", err)
		for name, f := range map[string]gatehouse.RunFilter{
			"": {}, " by status": {Status: r.Status}, " by workflow": {Workflow: r.Workflow},
			" by both": {Status: r.Status, Workflow: r.Workflow},
		} {
			page, err := tx.ListRuns(f)
			some("ListRuns"+name, len(page.Items), err)
		}
		_, err = tx.FindStep(parked.ID)
		found("FindStep", err)
		_, err = tx.FindStepByKey("k")
		found("FindStepByKey", err)
		_, err = tx.FindStepByAction(a.ID)
		found("FindStepByAction", err)
		attempts, err := tx.ListAttempts(r.ID)
		some("ListAttempts", len(attempts), err)
		usage, err := tx.ListUsage(r.ID)
		some("ListUsage", len(usage), err)
		signals, err := tx.ListSignals(r.ID)
		some("ListSignals", len(signals), err)
		contributors, err := tx.ListRunContributors(r.ID)
		some("ListRunContributors", len(contributors), err)
		for name, workflow := range map[string]string{"": "", " of a workflow": r.Workflow} {
			sum, err := tx.Spent(workflow, "USD", time.Unix(0, 0))
			some("Spent"+name, sum.Cmp("0"), err)
			page, err := tx.ListReflexions(workflow, "", "", 0)
			some("ListReflexions"+name, len(page.Items), err)
		}
		_, err = tx.FindReflexion(r.ID)
		found("FindReflexion", err)
		_, err = tx.FindWorkflowSummary(r.Workflow, time.Unix(0, 0))
		found("FindWorkflowSummary", err)
		_, err = tx.FindBundle(r.ID)
		found("FindBundle", err)
		entries, err := tx.ListRunEntries(r.ID)
		some("ListRunEntries", len(entries), err)
		lanes, err := q.DueLanes(tenant, ready.Tool, gatehouse.Lane{}, 10, 1)
		some("DueLanes", len(lanes), err)
		queued, err := tx.OldestQueued(r.Workflow, 10)
		some("OldestQueued", len(queued), err)
		return nil
	})
	return seen
}
