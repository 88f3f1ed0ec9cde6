package app

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// bulkParallel is how many items of a bulk decision are under way at once, so
// that they share commits.
const bulkParallel = 32

// bulkPerMinute is how many bulk decisions one person takes in any minute, by
// whatever ways: more is no person's judgement.
const bulkPerMinute = 30

// countBulk counts a decision in bulk of the caller's person in the store, by the
// store's clock: whatever the replica, and whatever was restarted. It fails with
// code rate_limited when the last minute has all that it may.
func (g *Gate) countBulk(ctx context.Context, c *gatehouse.Caller) error {
	return g.update(ctx, nil, func(tx gatehouse.Tx) error {
		calls, err := tx.LockBulkCalls(c.Principal.Tenant, c.Principal.Person)
		if err != nil {
			return err
		}
		now := tx.Now()
		for len(calls) > 0 && now.Sub(calls[0]) >= time.Minute {
			calls = calls[1:]
		}
		if len(calls) >= bulkPerMinute {
			e := gatehouse.E(gatehouse.CodeRateLimited, "at most %d decisions in bulk a minute; wait a moment", bulkPerMinute)
			e.RetryAfter = max(1, int(math.Ceil(calls[0].Add(time.Minute).Sub(now).Seconds())))
			return e
		}
		return tx.PutBulkCalls(c.Principal.Tenant, c.Principal.Person, append(calls, now))
	})
}

// BulkDecide gives one answer to many actions. Each item is decided for
// itself, by the same path as Decide; an item that cannot be is skipped with
// the code of its reason. The answer is stored under the Idempotency-Key when
// all are through: after a crash in between, a retry finds the items that were
// decided standing, and says so.
func (g *Gate) BulkDecide(ctx context.Context, b gatehouse.BulkDecision) (*gatehouse.BulkAnswer, error) {
	out, err := g.bulkDecide(ctx, b)
	g.countBulkAnswer(ctx, out, err)
	return out, err
}

func (g *Gate) bulkDecide(ctx context.Context, b gatehouse.BulkDecision) (*gatehouse.BulkAnswer, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := mayVote(c); err != nil {
		return nil, err
	}
	if err := validateBulk(&b); err != nil {
		return nil, err
	}
	if c.Idempotency != nil {
		if err := g.store.View(ctx, func(tx gatehouse.ReadTx) error { return answered(tx, c) }); err != nil {
			return nil, err
		}
	}
	if err := g.countBulk(ctx, c); err != nil {
		return nil, err
	}
	each := *c
	each.Idempotency = nil
	if each.Session == nil {
		each.Via = gatehouse.ViaBulk // in the console it is the console's, however many
	}
	out := &gatehouse.BulkAnswer{Results: make([]gatehouse.BulkResult, len(b.Items))}
	itemCtx := gatehouse.NewContext(ctx, &each)
	slots := make(chan struct{}, bulkParallel)
	var wg sync.WaitGroup
	seen := make(map[string]bool, len(b.Items))
	for i, item := range b.Items {
		if seen[item.ActionID] {
			out.Results[i] = gatehouse.BulkResult{ActionID: item.ActionID, Skipped: "duplicate", Detail: "its first place in items counts"}
			continue
		}
		seen[item.ActionID] = true
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			// Nobody above this goroutine could recover.
			defer func() {
				if p := recover(); p != nil {
					g.log.Error("panic in a bulk item", "action", item.ActionID, "panic", p, "stack", string(debug.Stack()))
					out.Results[i] = gatehouse.BulkResult{ActionID: item.ActionID, Skipped: string(gatehouse.CodeInternal)}
				}
			}()
			out.Results[i] = g.bulkItem(itemCtx, b, item)
		})
	}
	wg.Wait()
	for _, r := range out.Results {
		switch {
		case r.Skipped != "":
			out.Skipped++
		case r.Result == gatehouse.Decided:
			out.Decided++
		case r.Result == gatehouse.VoteRecorded:
			out.Voted++
		default:
			out.Replayed++
		}
	}
	if c.Idempotency != nil {
		err = g.update(ctx, nil, func(tx gatehouse.Tx) error {
			if err := answered(tx, c); err != nil {
				return err
			}
			return remember(tx, c, out)
		})
	}
	return out, err
}

func (g *Gate) bulkItem(ctx context.Context, b gatehouse.BulkDecision, item gatehouse.BulkItem) gatehouse.BulkResult {
	res := gatehouse.BulkResult{ActionID: item.ActionID}
	a, err := g.FindAction(ctx, item.ActionID)
	if err == nil && a.RiskLevel.NeedsConfirmation() {
		res.Skipped = "individual_decision_required"
		res.Detail = a.RiskLevel.String() + " is decided one by one"
		return res
	}
	if err == nil && b.Decision == gatehouse.Approve && card.ClaimDiffers(a) {
		res.Skipped = card.ExcludedClaim
		res.Detail = "its proposer claims another amount than the change has: decide it by itself"
		return res
	}
	if err == nil {
		var ans *gatehouse.Answer
		ans, err = g.decide(ctx, a.ID, gatehouse.Decision{Decision: b.Decision, Notes: b.Notes, Digest: item.Digest})
		if err == nil {
			res.Result = ans.Code
			return res
		}
	}
	code := gatehouse.CodeOf(err)
	res.Skipped = string(code)
	if code != gatehouse.CodeInternal {
		res.Detail = err.Error()
	} else {
		g.log.Error("bulk item failed", "action", item.ActionID, "error", err)
	}
	return res
}

func validateBulk(b *gatehouse.BulkDecision) error {
	var v gatehouse.Violations
	if b.Decision != gatehouse.Approve && b.Decision != gatehouse.Reject {
		v.Add("/decision", "must be approved or rejected")
	}
	if len(b.Items) == 0 || len(b.Items) > gatehouse.MaxBulk {
		v.Add("/items", "must have 1 to %d items", gatehouse.MaxBulk)
		return v.Err()
	}
	v.CheckText("/notes", b.Notes, gatehouse.MaxNotesBytes)
	for i, item := range b.Items {
		if item.ActionID == "" {
			v.Add(fmt.Sprintf("/items/%d/action_id", i), "is required")
		}
		if b.Decision == gatehouse.Approve && item.Digest == "" {
			v.Add(fmt.Sprintf("/items/%d/digest", i), "is required to approve")
		}
	}
	return v.Err()
}
