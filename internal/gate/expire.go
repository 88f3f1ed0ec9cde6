package gate

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// The sweeper's pace: even a hundred thousand simultaneous expiries must not delay
// a live decision. One transaction is short, and the sweeper rests much longer than
// it works.
const (
	sweepBatch   = 32
	sweepRest    = 4 // multiple of the time worked
	longestSweep = time.Second
)

// Sweep runs SweepTimely, SweepHeld and SweepExpired, and rests after a full batch.
func (g *Gate) Sweep(ctx context.Context) (most int, err error) {
	began := time.Now()
	for _, sweep := range []func(context.Context) (int, error){g.SweepTimely, g.SweepHeld, g.SweepExpired} {
		n, err := sweep(ctx)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	if most == sweepBatch {
		select {
		case <-ctx.Done():
		case <-time.After(min(sweepRest*time.Since(began), longestSweep)):
		}
	}
	return most, nil
}

// SweepExpired closes one batch of approvals past their expiry, and returns their
// number. The predicate "now >= expires_at" is authoritative in every decision and
// read; the sweeper only stores and announces the result.
func (g *Gate) SweepExpired(ctx context.Context) (int, error) {
	due := func(q gatehouse.Queues) ([]gatehouse.ActionRef, error) { return q.ExpiredActions(sweepBatch) }
	return g.sweepEach(ctx, due, expire)
}

// sweepEach calls settle with each action of a due batch, in one transaction, and returns
// their number.
func (g *Gate) sweepEach(
	ctx context.Context, due func(gatehouse.Queues) ([]gatehouse.ActionRef, error),
	settle func(gatehouse.Tx, *gatehouse.Action) error,
) (int, error) {
	var swept []gatehouse.ActionRef
	err := g.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		swept = swept[:0]
		list, err := due(q)
		if err != nil {
			return err
		}
		for _, ref := range list {
			tx := q.In(ref.Tenant)
			a, err := tx.LockAction(ref.ID)
			if err != nil {
				return err
			}
			if err := settle(tx, a); err != nil {
				return err
			}
			swept = append(swept, ref)
			failpoint.Here("sweep/moved")
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, ref := range swept {
		failpoint.Here("sweep/committed")
		g.Hints.Notify(ref.ID)
	}
	if len(swept) > 0 {
		g.Hints.Notify(usecase.TopicAudit)
	}
	return len(swept), nil
}

// expire stores that nobody answered in time: the action expires or, if the policy says
// so, is rejected. A decided action is not touched: the action is locked, and its moves
// are guarded.
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
