package gate

import (
	"context"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// bulkParallel is how many items of a bulk decision are decided concurrently, so
// that they share commits.
const bulkParallel = 32

// bulkPerMinute bounds the bulk decisions of one person in any minute, over all
// channels: nobody can judge more.
const bulkPerMinute = 30

// countBulk counts a bulk decision of the caller's person in the store, by the
// store's clock, so that the count holds across replicas and restarts. It fails
// with code rate_limited when the last minute is full.
func (g *Gate) countBulk(ctx context.Context, c *gatehouse.Caller) error {
	return g.Update(ctx, c.Principal.Tenant, nil, func(tx gatehouse.Tx) error {
		calls, err := tx.LockBulkCalls(c.Principal.Person)
		if err != nil {
			return err
		}
		now := tx.Now()
		for len(calls) > 0 && now.Sub(calls[0]) >= time.Minute {
			calls = calls[1:]
		}
		if len(calls) >= bulkPerMinute {
			e := gatehouse.E(gatehouse.CodeRateLimited, "at most %d bulk decisions per minute; retry later", bulkPerMinute)
			e.RetryAfter = max(1, int(math.Ceil(calls[0].Add(time.Minute).Sub(now).Seconds())))
			return e
		}
		return tx.PutBulkCalls(c.Principal.Person, append(calls, now))
	})
}

// BulkDecide gives one answer to many actions. Each item is decided separately, by
// the same path as Decide; an item that cannot be decided is skipped with the code
// of its reason. The answer is stored under the Idempotency-Key after the last
// item: after a crash in between, a retry reports the items decided before as
// replayed.
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
	if err := b.Validate(); err != nil {
		return nil, err
	}
	return usecase.PerformParts(ctx, g.Runner, c, func() (*gatehouse.BulkAnswer, error) {
		return g.decideEach(ctx, c, b)
	})
}

// decideEach decides the items of a bulk decision, up to bulkParallel at a time.
func (g *Gate) decideEach(
	ctx context.Context,
	c *gatehouse.Caller,
	b gatehouse.BulkDecision,
) (*gatehouse.BulkAnswer, error) {
	if err := g.countBulk(ctx, c); err != nil {
		return nil, err
	}

	each := *c
	each.Idempotency = nil
	if each.Session == nil {
		each.Via = gatehouse.ViaBulk // in a session the channel stays console
	}

	out := &gatehouse.BulkAnswer{Results: make([]gatehouse.BulkResult, len(b.Items))}
	itemCtx := gatehouse.NewContext(ctx, &each)
	slots := make(chan struct{}, bulkParallel)
	var wg sync.WaitGroup
	seen := make(map[string]bool, len(b.Items))
	for i, item := range b.Items {
		if seen[item.ActionID] {
			out.Results[i] = gatehouse.BulkResult{ActionID: item.ActionID, Skipped: "duplicate",
				Detail: "the action is listed twice; only its first item counts"}
			continue
		}
		seen[item.ActionID] = true
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			// Nothing else recovers a panic of this goroutine.
			defer func() {
				if p := recover(); p != nil {
					g.Log.Error("panic in a bulk item", "action", item.ActionID, "panic", p, "stack",
						string(debug.Stack()))
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
	return out, nil
}

func (g *Gate) bulkItem(ctx context.Context, b gatehouse.BulkDecision, item gatehouse.BulkItem) gatehouse.BulkResult {
	res := gatehouse.BulkResult{ActionID: item.ActionID}
	a, err := g.FindAction(ctx, item.ActionID)
	switch {
	case err != nil:
	case a.RiskLevel.NeedsConfirmation():
		res.Skipped = "individual_decision_required"
		res.Detail = "actions of " + a.RiskLevel.String() + " cannot be decided in bulk"
		return res
	case b.Decision == gatehouse.Approve && card.ClaimDiffers(a):
		res.Skipped = card.ExcludedClaim
		res.Detail = "the amount that its proposer claims differs from the amount of the change: " +
			"decide this action on its own"
		return res
	default:
		var ans *gatehouse.Answer
		ans, err = g.decide(ctx, a.ID, gatehouse.Decision{
			Decision: b.Decision, Notes: b.Notes, Digest: item.Digest, Hold: b.Hold,
		})
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
		g.Log.Error("bulk item failed", "action", item.ActionID, "error", err)
	}
	return res
}
