package gate

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// deadLetterAct acts on one locked dead letter, and fills in the result.
type deadLetterAct func(tx gatehouse.Tx, p *gatehouse.Push, a *gatehouse.Action, res *gatehouse.DeadLetterResult) error

func deadLetterCaller(ctx context.Context, role gatehouse.Role) (*gatehouse.Caller, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	return c, Require(c, role)
}

// selected lists the ids of a selection: its IDs or, without IDs, every dead letter if all is true, else the
// dead letters of its filter.
func (g *Gate) selected(ctx context.Context, s gatehouse.DeadLetterSelection, all bool) (ids []string, err error) {
	if len(s.IDs) > 0 {
		return s.IDs, nil
	}
	filter, most := gatehouse.DeadLetterFilter{}, 0
	if !all {
		filter, most = *s.Filter, s.Filter.Limit
		filter.Cursor = ""
		if most == 0 {
			most = gatehouse.MaxDeadLetterBatch
		}
	}
	err = g.walkDead(ctx, filter, "", func(p *gatehouse.Push) bool {
		ids = append(ids, p.ID)
		return len(ids) != most
	})
	return ids, err
}

// eachDeadLetter runs an act on each selected dead letter, each in its own
// transaction.
func (g *Gate) eachDeadLetter(
	ctx context.Context, c *gatehouse.Caller, s gatehouse.DeadLetterSelection, all bool, act deadLetterAct,
) ([]gatehouse.DeadLetterResult, error) {
	ids, err := g.selected(ctx, s, all)
	if err != nil {
		return nil, err
	}
	results := make([]gatehouse.DeadLetterResult, 0, len(ids))
	seen := make(map[string]bool, len(ids))
	for _, named := range ids {
		id, err := g.Resolve(ctx, "push", named)
		if err != nil {
			results = append(results, g.skipped(ctx, named, err))
			continue
		}
		if seen[id] {
			results = append(results, gatehouse.DeadLetterResult{ID: id, Skipped: gatehouse.SkippedDuplicate})
			continue
		}
		seen[id] = true
		res := g.oneDeadLetter(ctx, c, id, s.DryRun, act)
		if res.Skipped == "" && !s.DryRun {
			g.Hints.Notify(res.ActionID)
		}
		results = append(results, res)
	}
	return results, nil
}

func (g *Gate) oneDeadLetter(
	ctx context.Context, c *gatehouse.Caller, id string, dryRun bool, act deadLetterAct,
) gatehouse.DeadLetterResult {
	var res gatehouse.DeadLetterResult
	err := g.Update(ctx, c.Principal.Tenant, nil, func(tx gatehouse.Tx) error {
		res = gatehouse.DeadLetterResult{ID: id}
		p, a, err := lockPush(tx, id)
		if err != nil {
			return usecase.NotFoundAs(err, "dead letter", id)
		}
		res.ActionID = a.ID
		if err := act(tx, p, a, &res); err != nil {
			return err
		}
		if dryRun {
			return errDry
		}
		return nil
	})
	if err == nil || errors.Is(err, errDry) {
		return res
	}
	return g.skipped(ctx, id, err)
}

// skipped is the result of a dead letter that was not changed.
func (g *Gate) skipped(ctx context.Context, id string, err error) gatehouse.DeadLetterResult {
	var e *gatehouse.Error
	if !errors.As(err, &e) {
		g.Log.ErrorContext(ctx, "dead letter not changed", "push", id, "error", err)
		return gatehouse.DeadLetterResult{ID: id, Skipped: string(gatehouse.CodeInternal)}
	}
	return gatehouse.DeadLetterResult{ID: id, Skipped: string(e.Code), Detail: e.Detail}
}
