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

// Sweep runs SweepTimely and SweepExpired, and rests after a full batch.
func (g *Gate) Sweep(ctx context.Context) (int, error) {
	began := time.Now()
	told, err := g.SweepTimely(ctx)
	if err != nil {
		return 0, err
	}
	n, err := g.SweepExpired(ctx)
	if n = max(n, told); n == sweepBatch {
		select {
		case <-ctx.Done():
		case <-time.After(min(sweepRest*time.Since(began), longestSweep)):
		}
	}
	return n, err
}

// SweepExpired closes one batch of approvals past their expiry, and returns their
// number. The predicate "now >= expires_at" is authoritative in every decision and
// read; the sweeper only stores and announces the result.
func (g *Gate) SweepExpired(ctx context.Context) (int, error) {
	var swept []gatehouse.ActionRef
	err := g.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		swept = swept[:0]
		due, err := q.ExpiredActions(sweepBatch)
		if err != nil {
			return err
		}
		for _, ref := range due {
			tx := q.In(ref.Tenant)
			a, err := tx.LockAction(ref.ID)
			if err != nil {
				return err
			}
			if err := expire(tx, a); err != nil {
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
