package runs

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// releasePatience bounds the time for putting back the steps of a disconnected caller.
const releasePatience = 5 * time.Second

// release puts back steps that were leased for a caller that has disconnected, for instance because its server
// stops. No worker has started them, so the lease does not count as an attempt, and the next caller need not wait
// until it expires. The attempt of a step that cannot be put back fails when the lease expires.
func (r *Runs) release(ctx context.Context, steps []*gatehouse.Step, owner string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
	defer cancel()
	for _, step := range steps {
		err := r.move(ctx, step.Tenant, step.RunID, step.ID, owner, func(m *runTx) error {
			s, err := m.held(step.ID, step.Generation)
			if err != nil {
				return err
			}
			return m.putBack(s)
		})
		if err != nil && gatehouse.CodeOf(err) != gatehouse.CodeLeaseLost { // after a lost lease, the step has moved on
			r.Log.ErrorContext(ctx, "an unused lease of a step was not released", "step", step.ID, "error", err)
		}
	}
}

// putBack makes a step with an unused lease ready again.
func (m *runTx) putBack(s *gatehouse.Step) error {
	s.Attempts--
	s.DueAt = new(m.tx.Now())
	counted := len(m.outcomes)
	if err := m.park(s, gatehouse.StepRetrying, member("code", "not_handed_out")); err != nil {
		return err
	}
	m.outcomes = m.outcomes[:counted] // no attempt has ended
	return m.ready(s)
}
