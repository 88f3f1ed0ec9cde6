package gatetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// FillRuns stores a workflow and a run in each state, after [World.Fill]. It
// calls only the store. The runs have steps in each state; one step waits for a
// pending action, one for an ended action, and one for an ended run. FillRuns
// also stores a row of every kind that a run leaves behind.
func (w *World) FillRuns() {
	w.t.Helper()
	var open, ended string
	w.must(w.Store.View(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		for status, id := range map[gatehouse.Status]*string{gatehouse.StatusPending: &open,
			gatehouse.StatusRejected: &ended} {
			page, err := tx.ListActions(gatehouse.ActionFilter{Status: status, Limit: 1})
			if err != nil || len(page.Items) == 0 {
				return fmt.Errorf("an action that is %s: %v, %w", status, page.Items, err)
			}
			*id = page.Items[0].ID
		}
		return nil
	}))
	w.must(w.Store.Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		return fillRuns(tx, open, ended)
	}))
}

func fillRuns(tx gatehouse.Tx, open, ended string) error {
	now := tx.Now()
	later := now.Add(time.Hour)
	flow := &gatehouse.Workflow{ID: "wfl_1", Tenant: gatehouse.DefaultTenant, Name: "triage", Version: 1,
		Workspace: "support", Source: "name: triage\n", CreatedBy: "ana", CreatedAt: now}
	flow.Digest = gatehouse.NewDigest(gatehouse.JSON(flow.Source))
	if err := tx.InsertWorkflow(flow); err != nil {
		return err
	}
	if err := tx.AppendLeaf(&gatehouse.Leaf{Tenant: flow.Tenant, Type: "workflow.applied", Subject: flow.ID, Actor: "ana",
		Digest: flow.Digest, Data: `{"name":"triage","version":1}`}); err != nil {
		return err
	}
	if err := tx.PutSchedule(&gatehouse.Schedule{Tenant: flow.Tenant, Workflow: flow.Name, Version: 1, NextAt: later},
		time.Time{}); err != nil {
		return err
	}
	n := 0
	// run stores a run, and moves it and its steps to the given states through the states before.
	run := func(status, stop gatehouse.RunStatus, steps ...gatehouse.Step) (*gatehouse.Run, error) {
		n++
		r := &gatehouse.Run{
			ID: fmt.Sprintf("run_%d", n), Tenant: flow.Tenant, Workflow: flow.Name, Version: 1, Workspace: flow.Workspace,
			Status:  gatehouse.RunQueued,
			Trigger: gatehouse.TriggerWebhook, TriggerRef: fmt.Sprint("INC", n), Input: `{"n":1.10}`, StartedBy: "ana",
			CreatedAt: now, Deadline: &later,
		}
		for i, want := range steps {
			st := &gatehouse.Step{
				ID: fmt.Sprintf("stp_%d_%d", n, i), Tenant: r.Tenant, RunID: r.ID, Key: fmt.Sprint("s", i), Index: i,
				Workflow:  r.Workflow,
				Workspace: r.Workspace, Uses: "transform", Status: gatehouse.StepReady, Input: `{}`, CreatedAt: now, ReadyAt: &now,
			}
			if want.Status == gatehouse.StepBlocked {
				st.Status, st.ReadyAt = want.Status, nil
			}
			r.Steps = append(r.Steps, st)
		}
		if err := tx.InsertRun(r); err != nil {
			return nil, err
		}
		for i, want := range steps {
			if err := bring(tx, r.Steps[i], want, now, later); err != nil {
				return nil, err
			}
		}
		if err := tx.AppendLeaf(
			&gatehouse.Leaf{Tenant: r.Tenant, Type: "run.created", Subject: r.ID, Actor: "ana",
				To: string(gatehouse.RunQueued)}); err != nil {
			return nil, err
		}
		r.Stop, r.StartedAt = stop, &now
		for _, to := range r.Status.PathTo(status) {
			from := r.Status
			if r.Status = to; to.Final() {
				r.FinishedAt, r.Output = &now, `{"ok":true}`
			}
			if err := tx.MoveRun(r, from); err != nil {
				return nil, err
			}
		}
		return r, nil
	}
	var done *gatehouse.Run
	for _, c := range []struct {
		status, stop gatehouse.RunStatus
		steps        []gatehouse.Step
	}{
		{gatehouse.RunSucceeded, "", []gatehouse.Step{{Status: gatehouse.StepSucceeded}, {Status: gatehouse.StepSucceeded}}},
		{gatehouse.RunQueued, "", []gatehouse.Step{{Status: gatehouse.StepBlocked}, {Status: gatehouse.StepBlocked}}},
		{gatehouse.RunRunning, "",
			[]gatehouse.Step{{Status: gatehouse.StepRunning}, {Status: gatehouse.StepReady}, {Status: gatehouse.StepBlocked}}},
		{gatehouse.RunWaitingApproval, "",
			[]gatehouse.Step{{Status: gatehouse.StepWaitingApproval, ActionID: open}, {Status: gatehouse.StepBlocked}}},
		{gatehouse.RunWaitingApproval, "", []gatehouse.Step{{Status: gatehouse.StepWaitingApproval, ActionID: ended}}},
		{gatehouse.RunWaiting, "",
			[]gatehouse.Step{{Status: gatehouse.StepWaiting, ChildRun: "run_1"},
				{Status: gatehouse.StepWaiting, Event: "go", DueAt: &later}}},
		{gatehouse.RunRetrying, "", []gatehouse.Step{{Status: gatehouse.StepRetrying, DueAt: &later}}},
		{gatehouse.RunFailed, "", []gatehouse.Step{{Status: gatehouse.StepFailed}, {Status: gatehouse.StepCanceled}}},
		{gatehouse.RunCanceled, gatehouse.RunCanceled,
			[]gatehouse.Step{{Status: gatehouse.StepSucceeded}, {Status: gatehouse.StepCanceled}}},
	} {
		r, err := run(c.status, c.stop, c.steps...)
		if err != nil {
			return fmt.Errorf("a run in %s: %w", c.status, err)
		}
		if done == nil {
			done = r
		}
	}
	return leave(tx, done)
}

// bring moves a step to a state, with a lease if the path has one.
func bring(tx gatehouse.Tx, st *gatehouse.Step, want gatehouse.Step, now, later time.Time) error {
	path := []gatehouse.StepStatus{gatehouse.StepRunning, want.Status}
	switch want.Status {
	case gatehouse.StepBlocked, gatehouse.StepReady:
		return nil
	case gatehouse.StepRunning, gatehouse.StepCanceled:
		path = path[1:]
	}
	for _, to := range path {
		from, generation := st.Status, st.Generation
		st.Status, st.LeaseOwner, st.LeaseUntil = to, "", nil
		switch {
		case to == gatehouse.StepRunning:
			st.Generation, st.Attempts, st.LeaseOwner, st.LeaseUntil, st.IdempotencyKey = 1, 1, "worker", &later,
				st.RunID+":"+st.Key
		case to.Final():
			st.FinishedAt, st.Output = &now, `{"ok":true}`
		default:
			st.ActionID, st.ChildRun, st.Event, st.DueAt = want.ActionID, want.ChildRun, want.Event, want.DueAt
		}
		if err := tx.UpdateStep(st, from, generation); err != nil {
			return err
		}
		if from != gatehouse.StepRunning {
			continue
		}
		err := tx.InsertAttempt(&gatehouse.StepAttempt{
			Tenant: st.Tenant, RunID: st.RunID, StepID: st.ID, Attempt: 1, Generation: 1, Worker: "worker", StartedAt: now,
			FinishedAt: now, Outcome: string(to),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// leave stores the rows that a run leaves behind.
func leave(tx gatehouse.Tx, r *gatehouse.Run) error {
	now, st := tx.Now(), r.Steps[0]
	archive := []byte("the archive of " + r.ID)
	sum := sha256.Sum256(archive)
	for _, insert := range []func() error{
		func() error {
			return tx.InsertUsage(
				&gatehouse.ModelUsage{Tenant: r.Tenant, RunID: r.ID, Workflow: r.Workflow, StepID: st.ID, Attempt: 1, Provider: "p",
					Model: "m", InputTokens: 9, OutputTokens: 2, Cost: "0.000015", Currency: "USD", At: now})
		},
		func() error {
			if err := tx.InsertRunContributor(r.ID, "prn_ana"); err != nil {
				return err
			}
			return tx.InsertSignal(
				&gatehouse.Signal{Tenant: r.Tenant, RunID: r.ID, ID: "sig_1", Name: "go", Data: `{}`, By: "ana", At: now})
		},
		func() error {
			return tx.InsertReflexion(
				&gatehouse.Reflexion{ID: "rfx_1", Tenant: r.Tenant, RunID: r.ID, Workflow: r.Workflow, Version: 1,
					Outcome: r.Status, Attempted: "a", Happened: "b", Otherwise: "c", At: now})
		},
		func() error {
			return tx.InsertBundle(
				&gatehouse.Bundle{Tenant: r.Tenant, RunID: r.ID, SHA256: hex.EncodeToString(sum[:]), Manifest: `{}`,
					Archive: archive, CreatedAt: now})
		},
	} {
		if err := insert(); err != nil {
			return err
		}
	}
	return nil
}
