package gate

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// deadLetterBytes bounds the total size of the payloads of one page. A page of
// large payloads ends early, with a cursor.
const deadLetterBytes = 4 << 20

// ListDeadLetters returns a page of the tenant's pushes that need a person. For a group, it reads
// about [gatehouse.MaxGrouped] of them at most: a page may be short, or empty, and still have a cursor.
func (g *Gate) ListDeadLetters(
	ctx context.Context, f gatehouse.DeadLetterFilter,
) (out gatehouse.Page[*gatehouse.DeadLetter], err error) {
	filter := pushFilter(f)
	if f.Group != "" {
		filter.Limit = gatehouse.MaxLimit
	}
	want := gatehouse.DefaultLimit
	if f.Limit > 0 {
		want = min(f.Limit, gatehouse.MaxLimit)
	}
	err = g.View(ctx, "push", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		filter.ReadBy, filter.Cursor = g.ReadsAs(c.Principal), f.Cursor
		out.Items = make([]*gatehouse.DeadLetter, 0, want)
		for held, read := 0, 0; ; {
			page, err := tx.ListPushes(filter)
			if err != nil {
				return err
			}
			read += len(page.Items)
			taken := len(page.Items)
			for i, p := range page.Items {
				if f.Group != "" && p.GroupKey() != f.Group {
					continue
				}
				d, err := g.deadLetter(tx, p)
				if err != nil {
					return err
				}
				if held += len(d.Payload); held > deadLetterBytes && len(out.Items) > 0 {
					taken = i
					break
				}
				if out.Items = append(out.Items, d); len(out.Items) == want {
					taken = i + 1
					break
				}
			}
			switch {
			case len(page.Items) == 0: // no dead letters, or those after the cursor were settled since
				out.NextCursor = ""
				return nil
			case taken == 0:
				out.NextCursor = filter.Cursor
				return nil
			case taken < len(page.Items):
				// Read the shortened page again for its cursor.
				filter.Limit = taken
				page, err = tx.ListPushes(filter)
				out.NextCursor = page.NextCursor
				return err
			}
			out.NextCursor = page.NextCursor
			if f.Group == "" || page.NextCursor == "" || len(out.Items) == want || read >= gatehouse.MaxGrouped {
				return nil
			}
			filter.Cursor = page.NextCursor
		}
	})
	return out, err
}

func pushFilter(f gatehouse.DeadLetterFilter) gatehouse.PushFilter {
	out := gatehouse.PushFilter{DeadLetters: true, Status: f.Status, Connector: f.Connector, Code: f.Code, Limit: f.Limit,
		Cursor: f.Cursor}
	if f.Since != nil {
		out.Since = *f.Since
	}
	return out
}

func (g *Gate) deadLetter(tx pushFacts, p *gatehouse.Push) (*gatehouse.DeadLetter, error) {
	a, err := tx.FindAction(p.ActionID)
	if err != nil {
		return nil, err
	}
	s, err := g.replaySafety(tx, p, a)
	if err != nil {
		return nil, err
	}
	acts := []gatehouse.DeadLetterAct{}
	if s.safe {
		acts = append(acts, gatehouse.ActReplay)
	}
	if p.Status == gatehouse.PushUnknown {
		acts = append(acts, gatehouse.ActResolve)
	} else {
		acts = append(acts, gatehouse.ActDiscard)
	}
	if Correctable(a) {
		acts = append(acts, gatehouse.ActCorrect)
	}
	return &gatehouse.DeadLetter{
		ID: p.ID, ActionID: a.ID, ActionType: a.ActionType, Connector: a.Connector, Operation: a.Operation, Target: a.Target,
		Status: p.Status, Class: g.class(a), Payload: a.Canonical(), Error: p.LastError, ErrorCode: p.ErrorCode,
		Attempts: p.Attempts, LastAt: lastAt(p), TargetSays: p.TargetSays,
		ReplaySafe: s.safe, ReplayReason: s.reason, Advice: deadLetterAdvice(p, s), Acts: acts, Group: p.GroupKey(),
	}, nil
}

// lastAt returns when a push ended, else when it was created.
func lastAt(p *gatehouse.Push) time.Time {
	if p.FinishedAt != nil {
		return *p.FinishedAt
	}
	return p.CreatedAt
}

func deadLetterAdvice(p *gatehouse.Push, s safety) string {
	switch {
	case p.Status == gatehouse.PushFailed:
		return advice(p.ErrorCode)
	case s.safe:
		return "A replay cannot double its effect: check that the target is up, then replay."
	}
	return "Nobody knows whether it had its effect: look at the target, then resolve it as applied or as failed."
}

// DiscardDeadLetters closes failed pushes permanently, with a reason.
func (g *Gate) DiscardDeadLetters(
	ctx context.Context, r gatehouse.DiscardRequest,
) (*gatehouse.DeadLetterAnswer, error) {
	c, err := deadLetterCaller(ctx, gatehouse.RoleOperator)
	if err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return g.closeDeadLetters(ctx, c, r.DeadLetterSelection,
		func(tx gatehouse.Tx, p *gatehouse.Push, a *gatehouse.Action, res *gatehouse.DeadLetterResult) error {
			switch {
			case p.ClosedAt != nil:
				res.Skipped, res.Detail = gatehouse.SkippedDiscarded, "closed by "+p.ClosedBy+": "+p.ClosedReason
				return nil
			case p.Status == gatehouse.PushUnknown:
				res.Skipped, res.Detail = gatehouse.SkippedResolveFirst, "its outcome is not known: resolve it first"
				return nil
			case p.Status != gatehouse.PushFailed:
				res.Skipped, res.Detail = gatehouse.SkippedNotFailed, "the push is "+string(p.Status)
				return nil
			}
			res.Result = "discarded"
			return discard(tx, c.Principal, p, a, r.Reason)
		})
}

func discard(tx pushMover, who *gatehouse.Principal, p *gatehouse.Push, a *gatehouse.Action, reason string) error {
	if err := tx.ClosePush(p.ID, who.Name, reason); err != nil {
		return err
	}
	return record(tx, a, "push.discarded", who.ID, a.Status, a.Status, map[string]any{"push": p.ID, "reason": reason})
}

// ResolveDeadLetters records an operator's statement about several unknown
// outcomes.
func (g *Gate) ResolveDeadLetters(
	ctx context.Context, r gatehouse.ResolveRequest,
) (*gatehouse.DeadLetterAnswer, error) {
	c, err := deadLetterCaller(ctx, gatehouse.RoleOperator)
	if err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return g.closeDeadLetters(ctx, c, r.DeadLetterSelection,
		func(tx gatehouse.Tx, p *gatehouse.Push, a *gatehouse.Action, res *gatehouse.DeadLetterResult) error {
			if p.Status != gatehouse.PushUnknown {
				res.Skipped, res.Detail = gatehouse.SkippedNotUnknown, "the push is "+string(p.Status)
				return nil
			}
			res.Result = r.Outcome
			return resolve(tx, c, p, a, r.Resolution)
		})
}

// closeDeadLetters runs an act on the selected dead letters, and counts the results.
func (g *Gate) closeDeadLetters(
	ctx context.Context, c *gatehouse.Caller, sel gatehouse.DeadLetterSelection, act deadLetterAct,
) (*gatehouse.DeadLetterAnswer, error) {
	return usecase.PerformParts(ctx, g.Runner, c, func() (*gatehouse.DeadLetterAnswer, error) {
		results, err := g.eachDeadLetter(ctx, c, sel, false, act)
		if err != nil {
			return nil, err
		}
		out := &gatehouse.DeadLetterAnswer{DryRun: sel.DryRun, Results: results}
		for _, r := range results {
			if r.Skipped != "" {
				out.Skipped++
			} else {
				out.Done++
			}
		}
		return out, nil
	})
}
