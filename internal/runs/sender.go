package runs

import (
	"errors"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// acceptsEvent fails with sender_not_allowed when the run does not accept an event of this name
// from the principal. The workflow's `from` decides. Without a `from`, an agent may send events only
// to the runs that the agent started (see startedBy). The check is made when an event is sent, whether or not its step
// is waiting, so stored events need no second check.
func (m *runTx) acceptsEvent(p *gatehouse.Principal, event string) error {
	from := m.def.Senders(event)
	starter, err := m.startedBy(p)
	if err != nil {
		return err
	}
	if len(from) == 0 {
		if p.Kind != gatehouse.KindAgent || starter {
			return nil
		}
		return gatehouse.E(gatehouse.CodeSenderNotAllowed,
			"an agent may send the event %s only to a run that the agent started", gatehouse.Quote(event))
	}
	names := make([]string, len(from))
	for i, s := range from {
		if s.Is(p, starter) {
			return nil
		}
		names[i] = s.String()
	}
	return gatehouse.E(gatehouse.CodeSenderNotAllowed, "the run accepts the event %s from other senders "+
		"only", gatehouse.Quote(event)).With("from", names)
}

// maySend fails with not_found unless the principal may read the run, or the workflow's
// `from` lets it send the event. Sending does not require reading.
func (m *runTx) maySend(c *gatehouse.Caller, event string) error {
	err := m.runs.gate.CheckMayReadRun(m.tx, c, m.run)
	if !errors.Is(err, gatehouse.ErrNotFound) {
		return err
	}
	if len(m.def.Senders(event)) > 0 && m.acceptsEvent(c.Principal, event) == nil {
		return nil
	}
	return usecase.NotFound(err, "run")
}

// startedBy reports whether a principal started the run, a run that it retries, or
// one of their ancestors.
func (m *runTx) startedBy(p *gatehouse.Principal) (bool, error) {
	if m.run.StarterID == p.ID {
		return true, nil
	}
	if m.run.RetryOf == "" && m.run.ParentRun == "" {
		return false, nil
	}
	line, err := m.tx.ListLineage(m.run.ID)
	return slices.ContainsFunc(line, func(r *gatehouse.Run) bool { return r.StarterID == p.ID }), err
}
