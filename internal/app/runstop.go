package app

import (
	"context"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// stopRun keeps a run from taking up anything new; it ends when what is under
// way has settled. Of one that stops already, or has ended, it changes nothing.
func (r *Runs) stopRun(ctx context.Context, tenant, id, actor string, as gatehouse.RunStatus, why *gatehouse.Failure) error {
	return r.move(ctx, tenant, id, "", actor, func(m *moving) error { return m.stopNow(as, why) })
}

func (m *moving) stopNow(as gatehouse.RunStatus, why *gatehouse.Failure) error {
	if m.run.Status.Final() || m.run.Stop != "" {
		return nil
	}
	m.stop(as, why)
	return m.leaf("run.stopping", nil, string(m.run.Status), string(as), member("code", why.Code), member("detail", why.Detail))
}

// CancelRun stops a run for an operator, or for who started it.
func (r *Runs) CancelRun(ctx context.Context, id, reason string) (*gatehouse.Run, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	run, err := r.head(ctx, id)
	if err != nil {
		return nil, err
	}
	if run.StarterID != c.Principal.ID || !c.Principal.Has(gatehouse.RoleProposer) {
		if err := require(c, gatehouse.RoleOperator); err != nil {
			return nil, err
		}
	}
	var v gatehouse.Violations
	v.CheckText("/reason", reason, gatehouse.MaxNotesBytes)
	if err := v.Err(); err != nil {
		return nil, err
	}
	detail := "canceled by " + c.Principal.Name
	if reason != "" {
		detail += ": " + reason
	}
	var last *moving
	var out *gatehouse.Run
	err = r.gate.update(ctx, nil, func(tx gatehouse.Tx) error {
		last, out = nil, nil
		if err := answered(tx, c); err != nil {
			return err
		}
		m, err := r.begin(tx, run.Tenant, run.ID, "", c.Principal.ID)
		if err != nil {
			return err
		}
		last = m
		switch {
		case m.run.Status == gatehouse.RunCanceled, m.run.Stop == gatehouse.RunCanceled:
		case m.run.Status.Final(), m.run.Stop != "":
			return gatehouse.E(gatehouse.CodeTooLate, "the run is %s", m.run.Status).With("current_status", m.run.Status)
		default:
			if err := m.stopNow(gatehouse.RunCanceled, &gatehouse.Failure{Code: "canceled", Detail: detail}); err != nil {
				return err
			}
			if err := m.advance(); err != nil {
				return err
			}
		}
		if out, err = tx.FindRun(run.Tenant, run.ID); err != nil {
			return err
		}
		return remember(tx, c, out)
	})
	if err != nil {
		return nil, err
	}
	r.tell(last)
	return out, nil
}

// RetryRun begins a run again that failed or was canceled, in the version that
// it had. What succeeded in it is taken over.
func (r *Runs) RetryRun(ctx context.Context, id string) (*gatehouse.Run, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	old, err := r.FindRun(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := require(c, gatehouse.RoleOperator); err != nil {
		return nil, err
	}
	if old.Status != gatehouse.RunFailed && old.Status != gatehouse.RunCanceled {
		return nil, gatehouse.E(gatehouse.CodeTooLate, "only a run that failed or was canceled is retried: this one is %s", old.Status).
			With("current_status", old.Status)
	}
	from := origin{trigger: gatehouse.TriggerRetry, ref: "retry:" + old.ID, by: c.Principal, actor: c.Principal.ID, again: old}
	var out *gatehouse.Run
	err = r.gate.update(ctx, nil, func(tx gatehouse.Tx) error {
		out = nil
		if err := answered(tx, c); err != nil {
			return err
		}
		w, err := tx.FindWorkflow(old.Tenant, old.Workflow, old.Version)
		if err != nil {
			return err
		}
		def, err := r.definition(tx, old.Tenant, old.Workflow, old.Version)
		if err != nil {
			return err
		}
		draft := newRun(w, def, old.Input, from)
		known, err := r.known(tx, draft)
		if err != nil {
			return err
		}
		if out = known; out == nil {
			if out, err = r.insert(tx, draft, def, from); err != nil {
				return err
			}
		}
		return remember(tx, c, out)
	})
	if err != nil {
		return nil, err
	}
	r.tellStarted(out)
	return out, nil
}

// maxEventName bounds the name of an event, in bytes, maxSignals how many a run
// takes, and maxSignalBytes what all of them say: each event reads the others.
const (
	maxEventName   = 128
	maxSignals     = 1000
	maxSignalBytes = 1 << 20
)

// SignalRun sends an event to a run: the step that waits for it goes on, or
// the next one that will.
func (r *Runs) SignalRun(ctx context.Context, id, name string, data gatehouse.JSON) (*gatehouse.Signal, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := require(c, gatehouse.RoleProposer, gatehouse.RoleOperator, gatehouse.RoleWorker); err != nil {
		return nil, r.refusal(ctx, id, err)
	}
	var v gatehouse.Violations
	if name == "" {
		v.Add("/name", "is required: the event's name")
	}
	v.CheckText("/name", name, maxEventName)
	if len(data) > MaxStepOutput {
		v.Add("/data", "has more than %d bytes", MaxStepOutput)
	}
	if err := v.Err(); err != nil {
		return nil, r.refusal(ctx, id, err)
	}
	var out *gatehouse.Signal
	var last *moving
	err = r.gate.update(ctx, nil, func(tx gatehouse.Tx) error {
		out = nil
		if err := answered(tx, c); err != nil {
			return err
		}
		m, err := r.begin(tx, c.Principal.Tenant, id, "", c.Principal.ID)
		if err != nil {
			return err
		}
		last = m
		if err := m.mayAddress(c, name); err != nil {
			return err
		}
		if m.run.Status.Final() {
			return gatehouse.E(gatehouse.CodeTooLate, "the run is %s", m.run.Status).With("current_status", m.run.Status)
		}
		if out, err = m.signal(c, name, data); err != nil {
			return err
		}
		return remember(tx, c, out)
	})
	if err == nil {
		r.tell(last)
	}
	return out, err
}

// signal stores an event, and gives it to the first step that waits for it.
func (m *moving) signal(c *gatehouse.Caller, name string, data gatehouse.JSON) (*gatehouse.Signal, error) {
	if err := m.takesFrom(c.Principal, name); err != nil {
		return nil, err
	}
	known, err := m.tx.ListSignals(m.run.Tenant, m.run.ID)
	if err != nil {
		return nil, err
	}
	if len(known) >= maxSignals {
		return nil, gatehouse.E(gatehouse.CodeTooLate, "the run has taken %d events, and takes no more", maxSignals)
	}
	size := len(data)
	for _, s := range known {
		size += len(s.Data)
	}
	if size > maxSignalBytes {
		return nil, gatehouse.E(gatehouse.CodeTooLate, "the events of a run have at most %d bytes", maxSignalBytes)
	}
	s := &gatehouse.Signal{
		Tenant: m.run.Tenant, RunID: m.run.ID, ID: NewID("sig"), Name: name, Data: orNull(data), By: c.Principal.Name, At: m.tx.Now(),
	}
	if err := m.tx.InsertSignal(s); err != nil {
		return nil, err
	}
	if err := m.hand(c.Principal.ID); err != nil {
		return nil, err
	}
	if err := m.leaf("run.signal", nil, string(m.run.Status), string(m.run.Status), member("name", name), member("signal", s.ID)); err != nil {
		return nil, err
	}
	step, err := m.listener(name)
	if err != nil {
		return nil, err
	}
	if step != nil {
		taken, err := m.tx.TakeSignal(m.run.Tenant, m.run.ID, name)
		if err != nil {
			return nil, err
		}
		if err := m.heard(step, taken); err != nil {
			return nil, err
		}
	}
	return s, m.advance()
}

// listener is the first step that waits for an event; nil for none. Items that
// wait are read where a for_each has such.
func (m *moving) listener(event string) (*gatehouse.Step, error) {
	waits := func(s *gatehouse.Step) bool { return s.Status == gatehouse.StepWaiting && s.Event == event }
	for _, s := range m.run.Steps {
		if waits(s) {
			return s, nil
		}
		if !m.hasItems(s) || m.spec(s).Kind != workflow.KindWait {
			continue
		}
		items, err := m.tx.ListItems(s.Tenant, s.ID, true)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(items, waits); i >= 0 {
			m.take(s, items...)
			s.OpenItems = nil
			return m.run.StepByID(items[i].ID), nil
		}
	}
	return nil, nil
}

// head returns a run of the caller's tenant without its steps.
func (r *Runs) head(ctx context.Context, id string) (run *gatehouse.Run, err error) {
	err = r.gate.view(ctx, "run", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if run, err = tx.FindRunHead(c.Principal.Tenant, id); err != nil {
			return err
		}
		return r.gate.readRun(tx, c, run)
	})
	return run, err
}

// refusal is not_found where the caller may not read the run, else err.
func (r *Runs) refusal(ctx context.Context, id string, err error) error {
	if _, gone := r.head(ctx, id); gone != nil {
		return gone
	}
	return err
}

// FindRun returns a run of the caller's tenant with its steps.
func (r *Runs) FindRun(ctx context.Context, id string) (run *gatehouse.Run, err error) {
	err = r.gate.view(ctx, "run", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if run, err = tx.FindRun(c.Principal.Tenant, id); err != nil {
			return err
		}
		return r.gate.readRun(tx, c, run)
	})
	if err != nil {
		return nil, err
	}
	return run.Positioned(), nil
}

// ListRuns returns a page of the caller's tenant.
func (r *Runs) ListRuns(ctx context.Context, f gatehouse.RunFilter) (page gatehouse.Page[*gatehouse.Run], err error) {
	err = r.gate.view(ctx, "run", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		f.ReadBy = r.gate.readsAs(c.Principal)
		page, err = tx.ListRuns(c.Principal.Tenant, f)
		return err
	})
	return page, err
}

// WaitRun returns when the run has ended or its state has changed, or with the
// run as it is when the time is over.
func (r *Runs) WaitRun(ctx context.Context, id string, wait time.Duration) (*gatehouse.Run, error) {
	return r.WatchRun(ctx, id, "", wait)
}

// maxPosition bounds what a caller gives as a position, in bytes.
const maxPosition = 64

// WatchRun is WaitRun from a position on.
func (r *Runs) WatchRun(ctx context.Context, id, since string, wait time.Duration) (*gatehouse.Run, error) {
	var v gatehouse.Violations
	v.CheckText("/since", since, maxPosition)
	if err := v.Err(); err != nil {
		return nil, err
	}
	first, err := r.FindRun(ctx, id)
	if err != nil || first.Status.Final() || wait <= 0 || since != "" && since != first.Position {
		return first, err
	}
	hint, cancel := r.gate.hints.Subscribe(first.ID)
	defer cancel()
	deadline := time.NewTimer(min(wait, gatehouse.MaxWait))
	defer deadline.Stop()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		// What moved before the subscription was hinted at to nobody here.
		now, err := r.FindRun(ctx, id)
		if ctx.Err() != nil {
			return first, nil
		}
		if err != nil || now.Status.Final() || now.Position != first.Position {
			return now, err
		}
		select {
		case <-hint:
		case <-poll.C:
		case <-deadline.C:
			return first, nil
		case <-ctx.Done():
			return first, nil
		}
	}
}
