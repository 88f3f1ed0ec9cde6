package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
)

// deadLetterBytes bounds what the payloads of one page hold together: a page of
// large ones ends early, with a cursor.
const deadLetterBytes = 4 << 20

// ListDeadLetters returns a page of the tenant's failed pushes.
func (g *Gate) ListDeadLetters(ctx context.Context, cursor string, limit int) (out gatehouse.Page[*gatehouse.DeadLetter], err error) {
	err = g.view(ctx, "push", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		own := g.readsAs(c.Principal)
		page, err := tx.ListPushes(c.Principal.Tenant, gatehouse.PushFilter{Status: gatehouse.PushFailed, ReadBy: own, Cursor: cursor, Limit: limit})
		if err != nil {
			return err
		}
		out.Items, out.NextCursor = make([]*gatehouse.DeadLetter, 0, len(page.Items)), page.NextCursor
		held := 0
		for i, p := range page.Items {
			a, err := tx.FindAction(p.Tenant, p.ActionID)
			if err != nil {
				return err
			}
			d := deadLetter(p, a)
			if held += len(d.Payload); held > deadLetterBytes && i > 0 {
				// The same page, cut here, for its cursor.
				page, err = tx.ListPushes(c.Principal.Tenant, gatehouse.PushFilter{Status: gatehouse.PushFailed, ReadBy: own, Cursor: cursor, Limit: i})
				out.NextCursor = page.NextCursor
				return err
			}
			out.Items = append(out.Items, d)
		}
		return nil
	})
	return out, err
}

func deadLetter(p *gatehouse.Push, a *gatehouse.Action) *gatehouse.DeadLetter {
	last := p.CreatedAt
	if p.FinishedAt != nil {
		last = *p.FinishedAt
	}
	return &gatehouse.DeadLetter{
		ID: p.ID, ActionID: a.ID, ActionType: a.ActionType, Connector: a.Connector, Payload: a.Canonical(),
		Error: p.LastError, ErrorCode: p.ErrorCode, Attempts: p.Attempts, LastAt: last, Advice: advice(p.ErrorCode),
	}
}

// ReplayDeadLetters puts failed pushes back into the queue under their old
// idempotency key, each after every check anew. Those that do not pass are
// skipped with the code of the reason.
func (g *Gate) ReplayDeadLetters(ctx context.Context, r gatehouse.ReplayRequest) (*gatehouse.ReplayAnswer, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := require(c, gatehouse.RoleAdmin); err != nil {
		return nil, err
	}
	switch {
	case r.All == (len(r.IDs) > 0):
		return nil, gatehouse.Violations{{Pointer: "/ids", Detail: "give either ids or all: true"}}.Err()
	case len(r.IDs) > 1000:
		return nil, gatehouse.Violations{{Pointer: "/ids", Detail: "has more than 1000 items"}}.Err()
	}
	if c.Idempotency != nil {
		if err := g.store.View(ctx, func(tx gatehouse.ReadTx) error { return answered(tx, c) }); err != nil {
			return nil, err
		}
	}
	ids := r.IDs
	if r.All {
		if ids, err = g.allDeadLetters(ctx); err != nil {
			return nil, err
		}
	}
	out := &gatehouse.ReplayAnswer{Results: make([]gatehouse.ReplayResult, 0, len(ids))}
	for _, id := range ids {
		res := g.replayOne(ctx, c, id)
		if res.Skipped != "" {
			out.Skipped++
		} else {
			out.Replayed++
		}
		out.Results = append(out.Results, res)
	}
	if out.Replayed > 0 {
		g.hints.Notify(TopicPush)
		g.hints.Notify(TopicAudit)
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

func (g *Gate) allDeadLetters(ctx context.Context) (ids []string, err error) {
	err = g.view(ctx, "push", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		ids = ids[:0]
		cursor := ""
		for {
			page, err := tx.ListPushes(c.Principal.Tenant, gatehouse.PushFilter{Status: gatehouse.PushFailed, Limit: gatehouse.MaxLimit, Cursor: cursor})
			if err != nil {
				return err
			}
			for _, p := range page.Items {
				ids = append(ids, p.ID)
			}
			if cursor = page.NextCursor; cursor == "" {
				return nil
			}
		}
	})
	return ids, err
}

func (g *Gate) replayOne(ctx context.Context, c *gatehouse.Caller, id string) gatehouse.ReplayResult {
	res := gatehouse.ReplayResult{ID: id}
	err := g.update(ctx, nil, func(tx gatehouse.Tx) error {
		res = gatehouse.ReplayResult{ID: id}
		p, a, err := lockPush(tx, c.Principal.Tenant, id)
		if err != nil {
			return notFound(err, "dead letter")
		}
		if res.Skipped, res.Detail, err = g.mayReplay(tx, p, a); err != nil || res.Skipped != "" {
			return err
		}
		res.Result = string(gatehouse.PushQueued)
		return requeue(tx, c, p, a)
	})
	if err == nil {
		return res
	}
	var e *gatehouse.Error
	if !errors.As(err, &e) {
		g.log.Error("replay failed", "push", id, "error", err)
		return gatehouse.ReplayResult{ID: id, Skipped: string(gatehouse.CodeInternal)}
	}
	return gatehouse.ReplayResult{ID: id, Skipped: string(e.Code), Detail: e.Detail}
}

// mayReplay runs every check again: nothing applied, still failed, the target
// still knows the key, the same bytes, the same definition, authority, ceilings.
func (g *Gate) mayReplay(tx gatehouse.Tx, p *gatehouse.Push, a *gatehouse.Action) (skip, detail string, err error) {
	_, err = tx.SuccessReceipt(p.Tenant, p.IdempotencyKey)
	switch {
	case err == nil || p.Status == gatehouse.PushApplied:
		return "already_applied", "", nil
	case !errors.Is(err, gatehouse.ErrNotFound):
		return "", "", err
	case p.Status != gatehouse.PushFailed || a.Status != gatehouse.StatusFailed:
		return "not_failed", "the push is " + string(p.Status), nil
	}
	fingerprint, _, retention, err := g.targets.Describe(a.Tenant, &a.Proposal)
	if err != nil {
		return "connector_missing", err.Error(), nil //nolint:nilerr // it is the reason for skipping
	}
	if retention > 0 && age(tx.Now(), p) > retention {
		return "too_old", fmt.Sprintf("the target keeps idempotency keys for %s only", retention), nil
	}
	if fingerprint != a.Fingerprint || a.ComputeDigest() != a.Digest || p.Digest != a.Digest {
		return string(gatehouse.CodeDigestMismatch), "the connector's definition or the bytes differ from what was approved", nil
	}
	if err := g.Recheck(tx, a); err != nil {
		return "", "", err
	}
	if a.Reverses != "" {
		if err := claimReversal(tx, a); err != nil {
			return "", "", err
		}
	}
	return "", "", reserve(tx, a)
}

func requeue(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Push, a *gatehouse.Action) error {
	now := tx.Now()
	p.Status, p.NextAttempt, p.FinishedAt = gatehouse.PushQueued, &now, nil
	p.AttemptBase = p.Attempts
	p.Replays++
	p.LeaseOwner, p.LeaseUntil = "", nil
	if err := tx.UpdatePush(p, gatehouse.PushFailed, p.Generation); err != nil {
		return err
	}
	err := tx.MoveAction(gatehouse.ActionMove{Tenant: a.Tenant, ID: a.ID, From: gatehouse.StatusFailed, To: gatehouse.StatusApproved})
	if err != nil {
		return err
	}
	return record(tx, a, "push.replayed", c.Principal.ID, gatehouse.StatusFailed, gatehouse.StatusApproved,
		map[string]any{"push": p.ID, "attempts": p.Attempts})
}
