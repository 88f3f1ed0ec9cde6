package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// ReplayDeadLetters puts dead letters back into the queue under their old
// idempotency keys, after the checks of prepareReplay. A dead letter that fails a check is
// skipped with a code: resolve_first if a replay could double its effect. A request
// for a single dead letter that was discarded fails with too_late.
func (g *Gate) ReplayDeadLetters(ctx context.Context, r gatehouse.ReplayRequest) (*gatehouse.ReplayAnswer, error) {
	c, err := deadLetterCaller(ctx, gatehouse.RoleAdmin)
	if err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return usecase.PerformParts(ctx, g.Runner, c, func() (*gatehouse.ReplayAnswer, error) {
		return g.replayEach(ctx, c, r)
	})
}

func (g *Gate) replayEach(
	ctx context.Context, c *gatehouse.Caller, r gatehouse.ReplayRequest,
) (*gatehouse.ReplayAnswer, error) {
	generations := make(map[string]int)
	results, err := g.eachDeadLetter(ctx, c, r.Selection(), r.All,
		func(tx gatehouse.Tx, p *gatehouse.Push, a *gatehouse.Action, res *gatehouse.DeadLetterResult) (err error) {
			if res.Skipped, res.Detail, err = g.prepareReplay(tx, p, a); err != nil || res.Skipped != "" {
				return err
			}
			res.Result = string(gatehouse.PushQueued)
			generations[p.ID] = p.Generation
			return requeue(tx, c, p, a)
		})
	if err != nil {
		return nil, err
	}
	if len(r.IDs) == 1 && results[0].Skipped == string(gatehouse.CodeTooLate) {
		return nil, gatehouse.E(gatehouse.CodeTooLate, "%s", results[0].Detail)
	}
	out := &gatehouse.ReplayAnswer{DryRun: r.DryRun, Results: results}
	for _, res := range results {
		if res.Skipped != "" {
			out.Skipped++
		} else {
			out.Replayed++
			if !r.DryRun {
				g.HintPush(res.ID, generations[res.ID])
			}
		}
	}
	return out, nil
}

// prepareReplay checks that a dead letter can be replayed: the dead letter is open, a second call is harmless or a late
// answer has made it needless, and bytes, definition and authority still hold. For a failed push it also reserves the
// ceilings again, and claims the reversal again. skip is the code of the obstacle, "" for none; detail explains the
// obstacle.
func (g *Gate) prepareReplay(tx gatehouse.Tx, p *gatehouse.Push, a *gatehouse.Action) (skip, detail string, err error) {
	switch {
	case p.ClosedAt != nil:
		return string(gatehouse.CodeTooLate), fmt.Sprintf("discarded by %s: %s", p.ClosedBy, p.ClosedReason), nil
	case p.Status == gatehouse.PushApplied:
		return gatehouse.SkippedApplied, "", nil
	case !p.DeadLetter() || string(a.Status) != string(p.Status):
		return gatehouse.SkippedNotFailed, "the push is " + string(p.Status), nil
	}
	s, err := g.replaySafety(tx, p, a)
	switch {
	case err != nil:
		return "", "", err
	case !s.safe:
		return s.skip, s.reason, nil
	}
	if err := g.Recheck(tx, a, nil); err != nil {
		return "", "", err
	}
	if p.Status == gatehouse.PushUnknown {
		return "", "", nil // its ceilings and its claim on a reversal are still held
	}
	if a.Reverses != "" {
		if err := checkReversal(tx, a); err != nil {
			return "", "", err
		}
	}
	return "", "", reserve(tx, a)
}

// safety says whether a dead letter can be replayed without doubling its effect. skip
// is the code of the obstacle; reason explains either result.
type safety struct {
	safe         bool
	skip, reason string
}

func (g *Gate) replaySafety(tx pushFacts, p *gatehouse.Push, a *gatehouse.Action) (safety, error) {
	_, err := tx.SuccessReceipt(p.IdempotencyKey)
	late := err == nil
	if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
		return safety{}, err
	}
	if late && p.Status == gatehouse.PushFailed {
		return safety{skip: gatehouse.SkippedApplied, reason: "a late answer says that it was applied"}, nil
	}
	fingerprint, _, retention, err := g.targets.Describe(a.Tenant, &a.Proposal)
	if err != nil {
		return safety{skip: "connector_missing", reason: err.Error()}, nil //nolint:nilerr // the error is the reason
	}
	if fingerprint != a.Fingerprint || a.ComputeDigest() != a.Digest || p.Digest != a.Digest {
		return safety{
			skip:   string(gatehouse.CodeDigestMismatch),
			reason: "the connector's definition or the bytes differ from what was approved",
		}, nil
	}
	if p.Status == gatehouse.PushFailed {
		return failedSafety(tx.Now(), p, retention), nil
	}
	if late {
		return safety{safe: true, reason: "a late answer says that it was applied: a replay settles it without a call"}, nil
	}
	receipts, err := tx.ListReceipts(p.ActionID)
	if err != nil {
		return safety{}, err
	}
	if gatehouse.WithoutEffect(receipts, p.Attempts) {
		return safety{safe: true, reason: "every attempt is proven to have had no effect"}, nil
	}
	return g.unknownSafety(tx.Now(), p, a, retention), nil
}

func failedSafety(now time.Time, p *gatehouse.Push, retention time.Duration) safety {
	switch {
	case retention > 0 && age(now, p) > retention:
		return safety{
			skip:   gatehouse.SkippedTooOld,
			reason: fmt.Sprintf("the target keeps idempotency keys for %s only", gatehouse.Duration(retention)),
		}
	case p.ErrorCode == "resolved_failed":
		return safety{safe: true, reason: "an operator found that it had no effect"}
	}
	return safety{safe: true, reason: "every attempt is proven to have had no effect"}
}

// unknownSafety judges a push with an attempt that may have had its effect. The operation's class says
// how a second call is prevented from doubling the effect.
func (g *Gate) unknownSafety(now time.Time, p *gatehouse.Push, a *gatehouse.Action, retention time.Duration) safety {
	switch g.class(a) {
	case "A":
		if retention == 0 {
			return safety{safe: true, reason: "class A: the target carries out a call with one idempotency key only once"}
		}
		left := p.FirstDue().Add(retention).Sub(now)
		if left <= 0 {
			return safety{
				skip: gatehouse.SkippedResolveFirst,
				reason: fmt.Sprintf("class A, but the target keeps idempotency keys for %s only: look there, then resolve it",
					gatehouse.Duration(retention)),
			}
		}
		return safety{safe: true, reason: fmt.Sprintf(
			"class A: the target carries out a call with one idempotency key only once, and knows this key until %s",
			p.FirstDue().Add(retention).UTC().Format(time.RFC3339))}
	case "B":
		if g.conditional(a) {
			return safety{safe: true, reason: "class B: the write's condition holds for one call only"}
		}
		return safety{
			skip:   gatehouse.SkippedResolveFirst,
			reason: "class B, but the write may have no condition: look at the target, then resolve it",
		}
	}
	return safety{
		skip:   gatehouse.SkippedResolveFirst,
		reason: "class C: a second call could double the effect; look at the target, then resolve it",
	}
}

// Conditional is an optional ability of Targets: it tells whether an action's write
// has a condition on the target's version or pre-image, so that the write fails after
// another change, or after an earlier call for the same action.
type Conditional interface {
	Conditional(a *gatehouse.Action) bool
}

// conditional reports whether the action's write is known to have a condition.
func (g *Gate) conditional(a *gatehouse.Action) bool {
	c, ok := g.targets.(Conditional)
	return ok && c.Conditional(a)
}

// class returns the operation's class, "C" when it is unknown.
func (g *Gate) class(a *gatehouse.Action) string {
	if g.drainer == nil {
		return "C"
	}
	return g.drainer.Class(a.Tenant, a.Connector, a.Operation)
}

// requeue puts a dead letter back into the queue, with a new retry budget.
func requeue(tx pushMover, c *gatehouse.Caller, p *gatehouse.Push, a *gatehouse.Action) error {
	now, from := tx.Now(), p.Status
	p.Status, p.NextAttempt, p.FinishedAt = gatehouse.PushQueued, &now, nil
	p.AttemptBase = p.Attempts
	p.Replays++
	p.LeaseOwner, p.LeaseUntil = "", nil
	if err := tx.UpdatePush(p, from, p.Generation); err != nil {
		return err
	}
	was := a.Status
	err := tx.MoveAction(gatehouse.ActionMove{ID: a.ID, From: was, To: gatehouse.StatusApproved})
	if err != nil {
		return err
	}
	return record(tx, a, "push.replayed", c.Principal.ID, was, gatehouse.StatusApproved,
		map[string]any{"push": p.ID, "attempts": p.Attempts})
}
