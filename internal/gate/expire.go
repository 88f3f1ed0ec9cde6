package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/aside"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// The sweeper's pace: even a hundred thousand simultaneous expiries must not delay
// a live decision. One transaction is short, and the sweeper rests much longer than
// it works.
const (
	sweepBatch       = 32
	sweepRest        = 4 // multiple of the time worked
	longestSweepRest = time.Second
)

// Sweep runs SweepMoments, SweepHeld and SweepExpired, and rests after a full batch, up to longestSweepRest.
// most is the number of actions that the largest of the three batches settled.
func (g *Gate) Sweep(ctx context.Context) (most int, err error) {
	began := time.Now()
	for _, sweep := range []func(context.Context) (int, error){g.SweepMoments, g.SweepHeld, g.SweepExpired} {
		n, e := sweep(ctx)
		most, err = max(most, n), errors.Join(err, e)
	}
	if most == sweepBatch {
		select {
		case <-ctx.Done():
		case <-time.After(min(sweepRest*time.Since(began), longestSweepRest)):
		}
	}
	return most, err
}

// SweepExpired closes one batch of approvals past their expiry, and returns their
// number. The predicate "now is not before Approval.End" is authoritative in every decision and
// read; the sweeper only stores and announces the result.
func (g *Gate) SweepExpired(ctx context.Context) (int, error) {
	return g.sweepEach(ctx, &g.asideExpired, gatehouse.Queues.ExpiredActions, expire)
}

// sweepEach calls settle with each action of a due batch, in one transaction, and returns
// how many it settled. When the transaction fails, each action gets its own; an action that fails
// there is set aside, so that it blocks no others.
func (g *Gate) sweepEach(
	ctx context.Context, failed *aside.Set[gatehouse.ActionRef],
	due func(gatehouse.Queues, int) ([]gatehouse.ActionRef, error), settle func(gatehouse.Tx, *gatehouse.Action) error,
) (swept int, err error) {
	itself := func(ref gatehouse.ActionRef) gatehouse.ActionRef { return ref }
	var batch []gatehouse.ActionRef
	var now time.Time
	err = g.sweepTogether(ctx, func(q gatehouse.Queues) ([]gatehouse.ActionRef, error) {
		batch, now = nil, q.Now()
		list, err := due(q, sweepBatch+failed.Size())
		batch = aside.Due(failed, list, itself, sweepBatch, now)
		return batch, err
	}, settle)
	if err == nil || len(batch) == 0 {
		for _, ref := range batch {
			failed.Note(ref, nil, now)
		}
		return len(batch), err
	}
	err = nil
	for _, ref := range batch {
		e := g.sweepTogether(ctx, func(gatehouse.Queues) ([]gatehouse.ActionRef, error) {
			return []gatehouse.ActionRef{ref}, nil
		}, settle)
		if ctx.Err() != nil {
			return swept, errors.Join(err, e)
		}
		failed.Note(ref, e, now)
		if e == nil {
			swept++
			continue
		}
		err = errors.Join(err, fmt.Errorf("the action %s of %s: %w", ref.ID, ref.Tenant, e))
	}
	return swept, err
}

// sweepTogether calls settle with each listed action, in one transaction.
func (g *Gate) sweepTogether(
	ctx context.Context, list func(gatehouse.Queues) ([]gatehouse.ActionRef, error),
	settle func(gatehouse.Tx, *gatehouse.Action) error,
) error {
	var swept []gatehouse.ActionRef
	err := g.Store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
		if swept, err = list(q); err != nil {
			return err
		}
		for _, ref := range swept {
			tx := q.In(ref.Tenant)
			a, err := tx.LockAction(ref.ID)
			if err != nil {
				return err
			}
			if err := settle(tx, a); err != nil {
				return err
			}
			failpoint.Here("sweep/moved")
		}
		return nil
	})
	if err != nil || len(swept) == 0 {
		return err
	}
	for _, ref := range swept {
		failpoint.Here("sweep/committed")
		g.Hints.Notify(ref.ID)
	}
	g.Hints.Notify(usecase.TopicAudit)
	return nil
}

// expire stores that the question was not settled in time: the action expires or, if the policy says
// so, is rejected. If a rejection is held, it takes effect. A decided action is not
// changed: the action is locked, and its moves are guarded.
func expire(tx gatehouse.Tx, a *gatehouse.Action) error {
	if a.Status != gatehouse.StatusPending || a.Approval == nil || tx.Now().Before(a.Approval.End()) {
		return nil
	}
	if v, _ := a.HeldRejection(); v != nil {
		return rejectHeld(tx, a, v)
	}
	if a.Approval.OnTimeout == gatehouse.TimeoutReject {
		return rejectByTimeout(tx, a)
	}
	if err := tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalExpired); err != nil {
		return err
	}
	err := tx.MoveAction(gatehouse.ActionMove{
		ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusExpired,
		Decided: true, Finished: true,
	})
	if err != nil {
		return err
	}
	return record(tx, a, "hitl.expired", "system", gatehouse.StatusPending, gatehouse.StatusExpired,
		map[string]any{"expires_at": a.Approval.ExpiresAt})
}
