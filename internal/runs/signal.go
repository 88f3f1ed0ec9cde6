package runs

import (
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// maxEventName bounds the name of an event, in bytes; maxSignals the events of a
// run, and maxSignalBytes their total data, since each new event reads the others.
const (
	maxEventName   = 128
	maxSignals     = 1000
	maxSignalBytes = 1 << 20
)

// SignalRun sends an event to a run. The first step that waits for it continues; if
// none waits, the event is kept for the next step that does.
func (r *Runs) SignalRun(ctx context.Context, id, name string, data gatehouse.JSON) (*gatehouse.Signal, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := gate.Require(c, gatehouse.RoleProposer, gatehouse.RoleOperator, gatehouse.RoleWorker); err != nil {
		return nil, r.refusal(ctx, id, err)
	}
	var v gatehouse.Violations
	if name == "" {
		v.Add("/name", "is required: the event's name")
	}
	v.CheckText("/name", name, maxEventName)
	if len(data) > gatehouse.MaxStepOutput {
		v.Add("/data", "has more than %d bytes", gatehouse.MaxStepOutput)
	}
	if err := v.Err(); err != nil {
		return nil, r.refusal(ctx, id, err)
	}
	var last *runTx
	out, err := usecase.Perform(ctx, r.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Signal, error) {
		m, err := r.begin(tx, c.Principal.Tenant, id, "", c.Principal.ID)
		if err != nil {
			return nil, err
		}
		last = m
		if err := m.maySend(c, name); err != nil {
			return nil, err
		}
		if m.run.Status.Final() {
			return nil, gatehouse.E(gatehouse.CodeTooLate, "the run is %s", m.run.Status).
				With("current_status", m.run.Status)
		}
		return m.signal(c, name, data)
	})
	if err == nil {
		r.notifyChanges(last)
	}
	return out, err
}

// signal stores an event, and gives it to the first step that waits for it.
func (m *runTx) signal(c *gatehouse.Caller, name string, data gatehouse.JSON) (*gatehouse.Signal, error) {
	if err := m.acceptsEvent(c.Principal, name); err != nil {
		return nil, err
	}
	known, err := m.tx.ListSignals(m.run.ID)
	if err != nil {
		return nil, err
	}
	if len(known) >= maxSignals {
		return nil, gatehouse.E(gatehouse.CodeTooLate, "the run has the maximum number of events, %d", maxSignals)
	}
	size := len(data)
	for _, s := range known {
		size += len(s.Data)
	}
	if size > maxSignalBytes {
		return nil, gatehouse.E(gatehouse.CodeTooLate, "the events of a run have at most %d bytes", maxSignalBytes)
	}

	s := &gatehouse.Signal{
		Tenant: m.run.Tenant, RunID: m.run.ID, ID: gate.NewID("sig"), Name: name, Data: orNull(data),
		By: c.Principal.Name, At: m.tx.Now(),
	}
	if err := m.tx.InsertSignal(s); err != nil {
		return nil, err
	}
	if err := m.addContributor(c.Principal.ID); err != nil {
		return nil, err
	}
	if err := m.leaf("run.signal", nil, string(m.run.Status), string(m.run.Status), member("name", name),
		member("signal", s.ID)); err != nil {
		return nil, err
	}

	step, err := m.listener(name)
	if err != nil {
		return nil, err
	}
	if step != nil {
		taken, err := m.tx.TakeSignal(m.run.ID, name)
		if err != nil {
			return nil, err
		}
		if err := m.closeWithEvent(step, taken); err != nil {
			return nil, err
		}
	}
	return s, m.advance()
}

// listener returns the first step or item that waits for the event; nil for none. If an
// item waits, listener adds the open items of the same for_each step to the run.
func (m *runTx) listener(event string) (*gatehouse.Step, error) {
	waits := func(s *gatehouse.Step) bool { return s.Status == gatehouse.StepWaiting && s.Event == event }
	for _, s := range m.run.Steps {
		if waits(s) {
			return s, nil
		}
		if !m.hasItems(s) || m.spec(s).Kind != workflow.KindWait {
			continue
		}
		items, err := m.tx.ListItems(s.ID, true)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(items, waits); i >= 0 {
			m.insertItems(s, items...)
			s.OpenItems = nil
			return m.run.StepByID(items[i].ID), nil
		}
	}
	return nil, nil
}
