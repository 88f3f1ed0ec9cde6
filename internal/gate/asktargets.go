package gate

import (
	"context"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// maxReadBacks is the number of targets that are read back concurrently.
const maxReadBacks = 8

// readsBack is an optional ability of Targets: it looks for the effect of an earlier call.
type readsBack interface {
	// ReadBack returns a receipt of outcome applied or not_sent; nil when
	// nothing is proven.
	ReadBack(ctx context.Context, a *gatehouse.Action, attempts int) (*gatehouse.Receipt, error)
}

// AskTargets settles unknown pushes whose targets know the outcome.
func (g *Gate) AskTargets(ctx context.Context, r gatehouse.AskRequest) (*gatehouse.AskAnswer, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleOperator); err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if r.Limit == 0 {
		r.Limit = gatehouse.MaxAsked
	}
	out := &gatehouse.AskAnswer{}
	var ids []string
	for _, given := range r.IDs {
		id, err := g.Resolve(ctx, "push", given)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		page, err := g.ListPushes(ctx, gatehouse.PushFilter{Status: gatehouse.PushUnknown, Limit: r.Limit, Cursor: r.Cursor})
		if err != nil {
			return nil, err
		}
		for _, p := range page.Items {
			ids = append(ids, p.ID)
		}
		out.NextCursor = page.NextCursor
	}
	out.Results = make([]gatehouse.AskResult, len(ids))
	next := make(chan int)
	errs := make([]error, min(maxReadBacks, len(ids)))
	var work sync.WaitGroup
	for worker := range errs {
		work.Go(func() {
			for i := range next {
				var err error
				if out.Results[i], err = g.readBackPush(ctx, c, ids[i]); err != nil && errs[worker] == nil {
					errs[worker] = err
				}
			}
		})
	}
	for i := range ids {
		next <- i
	}
	close(next)
	work.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	for _, r := range out.Results {
		if r.Outcome == gatehouse.PushApplied || r.Outcome == gatehouse.PushFailed {
			out.Settled++
		}
	}
	return out, nil
}

// readBackPush reads back the outcome of one push. A failure of the target is a result, not an error.
func (g *Gate) readBackPush(ctx context.Context, c *gatehouse.Caller, id string) (gatehouse.AskResult, error) {
	res := gatehouse.AskResult{PushID: id}
	var p *gatehouse.Push
	var a *gatehouse.Action
	err := g.Store.View(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) (err error) {
		if p, err = tx.FindPush(id); err != nil {
			return err
		}
		a, err = tx.FindAction(p.ActionID)
		return err
	})
	if err != nil {
		return res, usecase.NotFoundAs(err, "push", id)
	}
	if res.Outcome = p.Status; p.Status != gatehouse.PushUnknown {
		return notUnknown(id, p), nil
	}
	reader, ok := g.targets.(readsBack)
	if !ok {
		res.Detail = "this server cannot read targets back"
		return res, nil
	}
	limited, cancel := context.WithTimeout(ctx, g.config.CheckTimeout)
	defer cancel()
	receipt, err := reader.ReadBack(limited, a, p.Attempts)
	switch {
	case err != nil:
		g.Log.WarnContext(ctx, "a target could not be read back", "push", id, "error", err)
		res.Detail = "the target did not answer"
		return res, nil
	case receipt == nil:
		res.Detail = "the target proves neither outcome: check the target, then resolve the push"
		return res, nil
	}
	err = g.Update(ctx, p.Tenant, nil, func(tx gatehouse.Tx) error {
		res = gatehouse.AskResult{PushID: id, Outcome: gatehouse.PushUnknown}
		locked, action, err := lockPush(tx, id)
		if err != nil {
			return err
		}
		if locked.Status != gatehouse.PushUnknown { // it was settled while the target was asked
			res = notUnknown(id, locked)
			return nil
		}
		if locked.Generation != p.Generation {
			res.Detail = "the push was sent again while the target was asked: ask again"
			return nil
		}
		status, err := settleUnknown(tx, c.Principal.ID, locked, action, *receipt)
		res.Outcome = status
		return err
	})
	if err == nil {
		g.Hints.Notify(a.ID)
	}
	return res, usecase.NotFoundAs(err, "push", id)
}

// notUnknown is the result of a push that is not in the state unknown.
func notUnknown(id string, p *gatehouse.Push) gatehouse.AskResult {
	return gatehouse.AskResult{PushID: id, Detail: "not_unknown: the push is " + string(p.Status)}
}

// settleUnknown records the result of a read-back.
func settleUnknown(
	tx pushMover, actor string, p *gatehouse.Push, a *gatehouse.Action, r gatehouse.Receipt,
) (gatehouse.PushStatus, error) {
	r.ID, r.PushID, r.Generation, r.At = NewID("rcp"), p.ID, p.Generation, tx.Now()
	event := "push.applied"
	var failure *gatehouse.Failure
	if r.Outcome != gatehouse.ReceiptApplied {
		event = "push.failed"
		failure = &gatehouse.Failure{
			Code: "not_applied", Detail: "the target proves that there was no effect and will be none",
		}
	}
	to, err := endUnknown(tx, actor, p, a, &r, failure)
	if err != nil {
		return "", err
	}
	return p.Status, record(tx, a, event, actor, gatehouse.StatusUnknown, to, map[string]any{
		"push": p.ID, "push_from": string(gatehouse.PushUnknown), "push_to": string(p.Status), "attempt": p.Attempts,
		"generation": p.Generation,
		"receipt":    r.ID, "source": r.Source,
	})
}
