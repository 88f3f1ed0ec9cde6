package runs

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// stopRun stops a run: no step starts any more, and the run ends when the work in progress has
// settled. It does not change a run that is stopping or has ended.
func (r *Runs) stopRun(
	ctx context.Context, tenant, id string, as gatehouse.RunStatus, why *gatehouse.Failure,
) error {
	return r.move(ctx, tenant, id, "", "system", func(m *runTx) error { return m.stopNow(as, why) })
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
		case m.run.Stop != "" && !m.run.Status.Final():
			return nil, gatehouse.E(gatehouse.CodeTooLate, "the run is stopping, because it has failed").
				With("current_status", m.run.Status)
		case m.run.Status.Final():
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
