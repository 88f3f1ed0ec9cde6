package app

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
)

// A hundred thousand expiries at once do not hold up a live decision: one
// transaction of the sweeper is short, and it rests between two of them for
// much longer than it works.
const (
	sweepBatch   = 32
	sweepRest    = 4 // times the work
	longestSweep = time.Second
)

// Sweep is SweepTimely and SweepExpired, with the rest that belongs after them.
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

// SweepExpired closes approvals past their expiry, one batch, and reports how
// many. The predicate "now >= expires_at" is the truth in every decision and
// read; the sweeper only writes it down, and tells.
func (g *Gate) SweepExpired(ctx context.Context) (int, error) {
	var swept []gatehouse.ActionRef
	err := g.store.Update(ctx, func(tx gatehouse.Tx) error {
		swept = swept[:0]
		due, err := tx.ExpiredActions(sweepBatch)
		if err != nil {
			return err
		}
		for _, ref := range due {
			a, err := tx.LockAction(ref.Tenant, ref.ID)
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
		g.hints.Notify(ref.ID)
	}
	if len(swept) > 0 {
		g.hints.Notify(TopicAudit)
	}
	return len(swept), nil
}

// expire writes down that nobody answered in time: the action expires, or, where the
// policy says so, is rejected by it. A decision that stands is not touched: the
// action was locked, and its moves are guarded.
func expire(tx gatehouse.Tx, a *gatehouse.Action) error {
	if a.Status != gatehouse.StatusPending || a.Approval == nil || tx.Now().Before(a.Approval.End()) {
		return nil
	}
	if a.Approval.OnTimeout == gatehouse.TimeoutReject {
		return rejectByTimeout(tx, a)
	}
	if err := tx.MoveApproval(a.Tenant, a.Approval.ID, gatehouse.ApprovalExpired); err != nil {
		return err
	}
	err := tx.MoveAction(gatehouse.ActionMove{
		Tenant: a.Tenant, ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusExpired,
		Decided: true, Finished: true,
	})
	if err != nil {
		return err
	}
	return record(tx, a, "hitl.expired", "system", gatehouse.StatusPending, gatehouse.StatusExpired,
		map[string]any{"expires_at": a.Approval.ExpiresAt})
}
