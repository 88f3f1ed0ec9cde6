package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/aside"
)

// rescueBatch bounds the expired leases of one round.
const rescueBatch = 100

// Rescue frees up to a hundred pushes whose lease has ended, by the rules of
// the package comment, and returns their number.
func (d *Dispatcher) Rescue(ctx context.Context) (freed int, err error) {
	var expired []*gatehouse.Push
	var now time.Time
	if err := d.store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		now = q.Now()
		expired, err = q.ExpiredLeases(rescueBatch + d.asideRescues.Size())
		return err
	}); err != nil {
		return 0, err
	}
	id := func(p *gatehouse.Push) string { return p.ID }
	for _, p := range aside.Due(&d.asideRescues, expired, id, rescueBatch, now) {
		e := d.rescue(ctx, p)
		if errors.Is(e, errLost) {
			continue
		}
		// A push that cannot be moved is set aside, so that it blocks no others.
		d.asideRescues.Note(p.ID, e, now)
		if e == nil {
			freed++
		}
		err = errors.Join(err, e)
	}
	return freed, err
}

func (d *Dispatcher) rescue(ctx context.Context, p *gatehouse.Push) error {
	outcome := ""
	err := d.store.Update(ctx, p.Tenant, func(tx gatehouse.Tx) error {
		s, err := begin(tx, queryOf(p), d.owner)
		if err != nil {
			return err
		}
		q, now := s.push, tx.Now()
		if q.Generation != p.Generation || q.LeaseUntil == nil || q.LeaseUntil.After(now) {
			return errLost
		}
		outcome = outcomeRescued
		const code, detail = "lease_expired", "the worker's lease ended before it reported the outcome"
		next := now
		if q.Status == gatehouse.PushSent {
			n := q.Attempts - q.AttemptBase
			class := d.targets.Class(q.Tenant, q.Connector, s.action.Operation)
			retention := d.targets.retention(q.Tenant, q.Connector, s.action.Operation)
			if judge(class, connector.Ambiguous, false, d.config.spent(q, class, retention)) != verdictRetry {
				outcome = string(gatehouse.PushUnknown)
				s.end(false, code, detail, "")
				d.failpoint(PointRescue)
				return s.err
			}
			// The expired lease counts as part of the wait.
			if at := q.SentAt; at != nil {
				next = later(now, at.Add(backoff(d.config.Backoff, n, 0, d.random())))
			}
		}
		s.retry(next, code, detail)
		s.leaf("push.rescued", text("code", code))
		d.failpoint(PointRescue)
		return s.err
	})
	if err == nil {
		d.failpoint(PointRescued)
		d.log.WarnContext(ctx, "lease expired", "push", p.ID, "action", p.ActionID, "tenant", p.Tenant,
			"generation", p.Generation, "from", p.Status, "outcome", outcome)
		d.metrics.PushSettled(p.Connector, outcome, 0)
		d.committed(p.ActionID)
	}
	return err
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
