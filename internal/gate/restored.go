package gate

import (
	"context"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

const restoredDetail = "the store was restored from a backup, and does not know whether this was sent since"

// MarkUnknown marks as unknown the pushes of the caller's tenant that a restored
// store would send again.
func (g *Gate) MarkUnknown(ctx context.Context, r gatehouse.MarkUnknownRequest) (*gatehouse.MarkUnknownAnswer, error) {
	c, err := admin(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if r.Limit == 0 {
		r.Limit = gatehouse.MaxMarked
	}

	own := c.Principal.Tenant
	if r.Tenant != "" && r.Tenant != own {
		return nil, gatehouse.E(gatehouse.CodeNotFound, "no such tenant")
	}

	out := &gatehouse.MarkUnknownAnswer{DryRun: r.DryRun == nil || *r.DryRun}
	if out.Items, err = g.restoredPushes(ctx, own, r); err != nil {
		return nil, err
	}
	if len(out.Items) > r.Limit {
		out.Items, out.More = out.Items[:r.Limit], true
	}
	if out.DryRun {
		return out, nil
	}

	marked := out.Items[:0]
	for _, m := range out.Items {
		ok, err := g.markRestored(ctx, c, m, r)
		if err != nil {
			if len(marked) == 0 {
				return nil, err
			}
			g.Log.ErrorContext(ctx, "push not marked unknown", "push", m.PushID, "error", err)
			out.More = true // the next call begins with this push
			break
		}
		if ok {
			marked = append(marked, m)
			g.Hints.Notify(m.ActionID)
		}
	}
	out.Items, out.Marked = marked, len(marked)
	return out, nil
}

// restoredPushes lists the pushes of a tenant to mark, at most one more than the limit. It leaves out
// approval steps of workflows, which have no external effect.
func (g *Gate) restoredPushes(
	ctx context.Context, tenant string, r gatehouse.MarkUnknownRequest,
) (list []gatehouse.MarkedPush, err error) {
	err = g.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) error {
		list = []gatehouse.MarkedPush{}
		for _, status := range []gatehouse.PushStatus{gatehouse.PushSent, gatehouse.PushPicking, gatehouse.PushQueued} {
			for f := (gatehouse.PushFilter{Status: status, Limit: gatehouse.MaxLimit}); ; {
				page, err := tx.ListPushes(f)
				if err != nil {
					return err
				}
				for _, p := range page.Items {
					if !p.CreatedAt.Before(r.Before) || p.Connector == workflow.ApprovalConnector ||
						r.Connector != "" && p.Connector != r.Connector {
						continue
					}
					a, err := tx.FindAction(p.ActionID)
					if err != nil {
						return err
					}
					class := g.class(a)
					if r.Class != "" && class != r.Class {
						continue
					}
					list = append(list, gatehouse.MarkedPush{
						Tenant: tenant, PushID: p.ID, ActionID: a.ID, Connector: a.Connector, Operation: a.Operation, Target: a.Target,
						Change: a.ProposedChange, Class: class, Was: p.Status, Attempts: p.Attempts, CreatedAt: p.CreatedAt,
					})
					if len(list) > r.Limit {
						return nil
					}
				}
				if f.Cursor = page.NextCursor; f.Cursor == "" {
					break
				}
			}
		}
		return nil
	})
	return list, err
}

// markRestored moves one push to unknown, unless the push has ended. The transition table allows unknown only
// after sent, so a push in an earlier state moves through picking and sent first, without a call. The raised
// generation fences a process that still holds the lease.
func (g *Gate) markRestored(
	ctx context.Context, c *gatehouse.Caller, m gatehouse.MarkedPush, r gatehouse.MarkUnknownRequest,
) (marked bool, err error) {
	err = g.Update(ctx, m.Tenant, nil, func(tx gatehouse.Tx) error {
		marked = false
		p, a, err := lockPush(tx, m.PushID)
		if err != nil {
			return err
		}
		switch p.Status {
		case gatehouse.PushQueued, gatehouse.PushPicking, gatehouse.PushSent:
		default:
			return nil
		}
		if !p.CreatedAt.Before(r.Before) {
			return nil
		}
		marked = true
		return markUnknown(tx, p, a, c.Principal.ID)
	})
	return marked, usecase.NotFound(err, "push")
}

func markUnknown(tx gatehouse.Tx, p *gatehouse.Push, a *gatehouse.Action, actor string) error {
	now, was, generation := tx.Now(), p.Status, p.Generation
	move := func(to gatehouse.PushStatus) error {
		from := p.Status
		p.Status = to
		return tx.UpdatePush(p, from, generation)
	}
	leaf := func(event string, from gatehouse.PushStatus, status gatehouse.Status) error {
		err := record(tx, a, event, actor, a.Status, status, map[string]any{
			"push": p.ID, "push_from": string(from), "push_to": string(p.Status), "attempt": p.Attempts,
			"generation": p.Generation,
			"code":       gatehouse.ErrorRestored,
		})
		a.Status = status
		return err
	}

	p.Generation++
	p.LeaseOwner, p.LeaseUntil = actor, &now
	if was == gatehouse.PushQueued {
		p.NextAttempt = nil
		if err := move(gatehouse.PushPicking); err != nil {
			return err
		}
		generation = p.Generation
	}
	if was != gatehouse.PushSent {
		p.Attempts++ // an attempt that the lost history may hold; no receipt covers it
		if err := move(gatehouse.PushSent); err != nil {
			return err
		}
		generation = p.Generation
		if a.Status == gatehouse.StatusApproved {
			m := gatehouse.ActionMove{ID: a.ID, From: gatehouse.StatusApproved, To: gatehouse.StatusPushing}
			if err := tx.MoveAction(m); err != nil {
				return err
			}
		}
		if err := leaf("push.picked", was, gatehouse.StatusPushing); err != nil {
			return err
		}
		was = gatehouse.PushSent
	}

	p.LeaseOwner, p.LeaseUntil = "", nil
	p.FinishedAt, p.NextAttempt = &now, nil
	p.ErrorCode, p.LastError = gatehouse.ErrorRestored, restoredDetail
	p.TargetSays = ""
	if err := move(gatehouse.PushUnknown); err != nil {
		return err
	}
	if err := tx.MarkDeadLetter(p, a.EffectHash()); err != nil {
		return err
	}

	err := tx.MoveAction(gatehouse.ActionMove{
		ID: a.ID, From: gatehouse.StatusPushing, To: gatehouse.StatusUnknown, Finished: true,
	})
	if err != nil {
		return fmt.Errorf("mark %s: %w", p.ID, err)
	}
	if err := PauseFailed(tx, a, actor); err != nil {
		return err
	}
	return leaf("push.unknown", was, gatehouse.StatusUnknown)
}
