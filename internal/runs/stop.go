package runs

import (
	"context"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// stopRun stops a run: no step starts any more, and the run ends when the work in progress has
// settled. It does not change a run that is stopping or has ended.
func (r *Runs) stopRun(
	ctx context.Context, tenant, id, actor string, as gatehouse.RunStatus, why *gatehouse.Failure,
) error {
	return r.move(ctx, tenant, id, "", actor, func(m *runTx) error { return m.stopNow(as, why) })
}

func (m *runTx) stopNow(as gatehouse.RunStatus, why *gatehouse.Failure) error {
	if m.run.Status.Final() || m.run.Stop != "" {
		return nil
	}
	m.stop(as, why)
	return m.leaf("run.stopping", nil, string(m.run.Status), string(as), member("code", why.Code),
		member("detail", why.Detail))
}

// maySteer refuses a caller that may not cancel and retry the run.
func maySteer(c *gatehouse.Caller, run *gatehouse.Run) error {
	if c.Principal.MaySteer(run) {
		return nil
	}
	return gate.Require(c, gatehouse.RoleOperator)
}

// CancelRun stops a run for an operator or for the run's starter.
func (r *Runs) CancelRun(ctx context.Context, id, reason string) (*gatehouse.Run, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	run, err := r.head(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := maySteer(c, run); err != nil {
		return nil, err
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

	var last *runTx
	out, err := usecase.Perform(ctx, r.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Run, error) {
		last = nil
		m, err := r.begin(tx, run.Tenant, run.ID, "", c.Principal.ID)
		if err != nil {
			return nil, err
		}
		last = m
		switch {
		case m.run.Status == gatehouse.RunCanceled, m.run.Stop == gatehouse.RunCanceled:
		case m.run.Status.Final(), m.run.Stop != "":
			return nil, gatehouse.E(gatehouse.CodeTooLate, "the run is %s", m.run.Status).
				With("current_status", m.run.Status)
		default:
			if err := m.stopNow(gatehouse.RunCanceled, &gatehouse.Failure{Code: "canceled", Detail: detail}); err != nil {
				return nil, err
			}
			if err := m.advance(); err != nil {
				return nil, err
			}
		}
		return tx.FindRun(run.ID)
	})
	if err != nil {
		return nil, err
	}
	r.notifyChanges(last)
	return out, nil
}

// RetryRun retries a failed or canceled run as a new run of the same version, and
// copies its succeeded steps.
func (r *Runs) RetryRun(ctx context.Context, id string) (*gatehouse.Run, error) {
	return r.retry(ctx, id, "")
}

// RetryRunFrom retries an ended run as a new run. It executes the step and its
// dependents again, and copies the other succeeded steps.
func (r *Runs) RetryRunFrom(ctx context.Context, id, step string) (*gatehouse.Run, error) {
	if step == "" {
		return nil, gatehouse.Violations{{Pointer: "/from", Detail: "is required"}}.Err()
	}
	return r.retry(ctx, id, step)
}

func (r *Runs) retry(ctx context.Context, id, step string) (*gatehouse.Run, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	old, err := r.FindRun(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := maySteer(c, old); err != nil {
		return nil, err
	}
	switch {
	case step != "" && !old.Status.Final():
		return nil, gatehouse.E(gatehouse.CodeTooLate,
			"only a run that has ended is retried from a step: this one is %s", old.Status).
			With("current_status", old.Status)
	case step == "" && old.Status != gatehouse.RunFailed && old.Status != gatehouse.RunCanceled:
		return nil, gatehouse.E(gatehouse.CodeTooLate, "only a run that failed or was canceled is retried: this one is %s",
			old.Status).
			With("current_status", old.Status)
	}
	from := origin{trigger: gatehouse.TriggerRetry, ref: retryRef(old.ID, step), by: c.Principal, actor: c.Principal.ID,
		again: old}
	out, err := usecase.Perform(ctx, r.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Run, error) {
		w, err := tx.FindWorkflow(old.Workflow, old.Version)
		if err != nil {
			return nil, err
		}
		def, err := r.definition(tx, old.Tenant, old.Workflow, old.Version)
		if err != nil {
			return nil, err
		}
		if step != "" {
			if err := mayRedo(old, def, step); err != nil {
				return nil, err
			}
		}
		draft := newRun(w, def, old.Input, from)
		known, err := r.known(tx, draft)
		if err != nil || known != nil {
			return known, err
		}
		return r.insert(tx, draft, def, from)
	})
	if err != nil {
		return nil, err
	}
	r.notifyStarted(out)
	return out, nil
}

// maxEventName bounds the name of an event, in bytes; maxSignals the events of a
// run, and maxSignalBytes their total data, since each new event reads the others.
const (
	maxEventName   = 128
	maxSignals     = 1000
	maxSignalBytes = 1 << 20
)

// SignalRun sends an event to a run. The step that waits for it continues;
// otherwise the event is kept for the next step that waits for it.
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

// listener returns the first step that waits for the event; nil for none. It reads
// the waiting items of for_each steps.
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

// head returns a run of the caller's tenant without its steps.
func (r *Runs) head(ctx context.Context, id string) (run *gatehouse.Run, err error) {
	err = r.View(ctx, "run", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if run, err = tx.FindRunHead(id); err != nil {
			return err
		}
		return r.gate.ReadRun(tx, c, run)
	})
	return run, err
}

// refusal returns not_found when the caller may not read the run, else err.
func (r *Runs) refusal(ctx context.Context, id string, err error) error {
	if _, gone := r.head(ctx, id); gone != nil {
		return gone
	}
	return err
}

// FindRun returns a run of the caller's tenant with its steps.
func (r *Runs) FindRun(ctx context.Context, id string) (run *gatehouse.Run, err error) {
	err = r.View(ctx, "run", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if run, err = tx.FindRun(id); err != nil {
			return err
		}
		return r.gate.ReadRun(tx, c, run)
	})
	if err != nil {
		return nil, err
	}
	return run.Positioned(), nil
}

// ListRuns returns a page of the tenant's runs that the caller may read.
func (r *Runs) ListRuns(ctx context.Context, f gatehouse.RunFilter) (page gatehouse.Page[*gatehouse.Run], err error) {
	err = r.View(ctx, "run", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		f.ReadBy = r.gate.ReadsAs(c.Principal)
		page, err = tx.ListRuns(f)
		return err
	})
	return page, err
}

// WaitRun returns when the run has ended or its state has changed, or after the given time, with
// the present state of the run.
func (r *Runs) WaitRun(ctx context.Context, id string, wait time.Duration) (*gatehouse.Run, error) {
	return r.WatchRun(ctx, id, "", wait)
}

// maxPosition bounds a caller's position, in bytes.
const maxPosition = 64

// WatchRun is WaitRun starting from a position.
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
	last := first
	// A change before the subscription sent no hint to this caller: Poll reads at once.
	err = usecase.Poll(ctx, r.Hints, min(wait, gatehouse.MaxWait), []string{first.ID}, func() (bool, error) {
		now, err := r.FindRun(ctx, id)
		if err != nil {
			return true, err
		}
		last = now
		return now.Status.Final() || now.Position != first.Position, nil
	})
	if err != nil {
		return nil, err
	}
	return last, nil
}
