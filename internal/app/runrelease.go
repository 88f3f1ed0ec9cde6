package app

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// releasePatience bounds how long steps are put back for a caller who has gone.
const releasePatience = 5 * time.Second

// release puts back steps that were leased to a caller who has gone since, as
// one does whose server stops, and were not handed out: nobody has begun them. So
// that is no attempt, and the next caller need not wait for the leases' end. What
// cannot be put back, that brings back.
func (r *Runs) release(ctx context.Context, steps []*gatehouse.Step, owner string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
	defer cancel()
	for _, step := range steps {
		err := r.move(ctx, step.Tenant, step.RunID, step.ID, owner, func(m *moving) error {
			s, err := m.held(step.ID, step.Generation)
			if err != nil {
				return err
			}
			return m.putBack(s)
		})
		if err != nil && gatehouse.CodeOf(err) != gatehouse.CodeLeaseLost { // it has come to something
			r.log.ErrorContext(ctx, "a step that was not handed out was not put back", "step", step.ID, "error", err)
		}
	}
}

// putBack readies a step under whose lease nothing was done.
func (m *moving) putBack(s *gatehouse.Step) error {
	s.Attempts--
	s.DueAt = timePtr(m.tx.Now())
	if err := m.park(s, gatehouse.StepRetrying, member("code", "not_handed_out")); err != nil {
		return err
	}
	return m.ready(s)
}
