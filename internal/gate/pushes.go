package gate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// ListPushes returns a page of the tenant's pushes.
func (g *Gate) ListPushes(
	ctx context.Context, f gatehouse.PushFilter,
) (page gatehouse.Page[*gatehouse.Push], err error) {
	err = g.View(ctx, "push", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		f.ReadBy = g.ReadsAs(c.Principal)
		page, err = tx.ListPushes(f)
		return err
	})
	return page, err
}

// Drain lists the due pushes; unless it is a dry run, it sends them now.
func (g *Gate) Drain(ctx context.Context, r gatehouse.DrainRequest) (*gatehouse.DrainAnswer, error) {
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
	r.Limit = cmp.Or(r.Limit, 100)
	out := &gatehouse.DrainAnswer{DryRun: r.DryRun == nil || *r.DryRun, Items: []gatehouse.DrainItem{}}
	if !out.DryRun {
		items, err := g.drainer.Drain(ctx, c.Principal.Tenant, r.Limit)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, items...)
		return out, nil
	}
	err = g.View(ctx, "push", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		out.Items = out.Items[:0]
		return duePushes(tx, r.Limit, func(p *gatehouse.Push, a *gatehouse.Action) {
			out.Items = append(out.Items, gatehouse.DrainItem{
				PushID: p.ID, ActionID: a.ID, Connector: a.Connector, Operation: a.Operation, Target: a.Target,
				Change: a.ProposedChange, Digest: a.Digest, Key: p.IdempotencyKey, Outcome: "due", NotBefore: p.NotBefore,
				Class: g.class(a),
			})
		})
	})
	return out, err
}

// duePushes walks the tenant's queued pushes and yields the due ones.
func duePushes(tx pushFacts, limit int, yield func(*gatehouse.Push, *gatehouse.Action)) error {
	cursor := ""
	for found := 0; found < limit; {
		page, err := tx.ListPushes(
			gatehouse.PushFilter{Status: gatehouse.PushQueued, Limit: gatehouse.MaxLimit, Cursor: cursor},
		)
		if err != nil {
			return err
		}
		for _, p := range page.Items {
			if tx.Now().Before(p.NotBefore) || p.NextAttempt != nil && tx.Now().Before(*p.NextAttempt) || found == limit {
				continue
			}
			a, err := tx.FindAction(p.ActionID)
			if err != nil {
				return err
			}
			yield(p, a)
			found++
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
	return nil
}

// ResolvePush records an operator's statement about an unknown outcome.
func (g *Gate) ResolvePush(ctx context.Context, id string, r gatehouse.Resolution) (*gatehouse.Push, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.View(ctx, "push", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		return g.checkMayReadPush(tx, c, id)
	}); err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleOperator); err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	out, err := usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Push, error) {
		p, a, err := lockPush(tx, id)
		if err != nil {
			return nil, err
		}
		if p.Status != gatehouse.PushUnknown {
			return nil, gatehouse.E(gatehouse.CodeNotUnknown, "the push is %s; only an unknown outcome is resolved", p.Status).
				With("current_status", p.Status)
		}
		if err := resolve(tx, c, p, a, r); err != nil {
			return nil, err
		}
		return p, nil
	})
	if err != nil {
		return nil, usecase.NotFound(err, "push")
	}
	g.Hints.Notify(out.ActionID)
	return out, nil
}

// lockPush locks the action of a push, and then the push, in the order of all transactions.
func lockPush(tx pushMover, id string) (*gatehouse.Push, *gatehouse.Action, error) {
	p, err := tx.FindPush(id)
	if err != nil {
		return nil, nil, err
	}
	a, err := tx.LockAction(p.ActionID)
	if err != nil {
		return nil, nil, err
	}
	p, err = tx.LockPush(id)
	return p, a, err
}

// resolve records an operator's statement about an unknown outcome.
func resolve(
	tx pushMover, c *gatehouse.Caller, p *gatehouse.Push, a *gatehouse.Action, r gatehouse.Resolution,
) error {
	receipt := &gatehouse.Receipt{
		ID: NewID("rcp"), Tenant: p.Tenant, ActionID: a.ID, PushID: p.ID, IdempotencyKey: p.IdempotencyKey,
		Attempt: p.Attempts, Generation: p.Generation, Outcome: gatehouse.ReceiptApplied, Source: "operator", At: tx.Now(),
		ResponseMetadata: gatehouse.MustJSON(map[string]string{"resolved_by": c.Principal.Name, "reason": r.Reason}),
	}
	var failure *gatehouse.Failure
	if r.Outcome != "applied" {
		receipt.Outcome = gatehouse.ReceiptTerminal
		failure = &gatehouse.Failure{Code: "resolved_failed", Detail: r.Reason}
	}
	to, err := endUnknown(tx, c.Principal.ID, p, a, receipt, failure)
	if err != nil {
		return err
	}
	return record(tx, a, "push.resolved", c.Principal.ID, gatehouse.StatusUnknown, to,
		map[string]any{"push": p.ID, "outcome": r.Outcome, "reason": r.Reason})
}

// endUnknown ends a push with an unknown outcome and its action: as failed if failure is not nil, else as
// applied. It stores the receipt and returns the action's new status.
func endUnknown(
	tx pushMover, actor string, p *gatehouse.Push, a *gatehouse.Action, r *gatehouse.Receipt, failure *gatehouse.Failure,
) (gatehouse.Status, error) {
	now := tx.Now()
	m := gatehouse.ActionMove{
		ID: a.ID, From: gatehouse.StatusUnknown, To: gatehouse.StatusApplied, Finished: true, Failure: failure,
	}
	p.FinishedAt = &now
	if failure == nil {
		p.Status, p.AppliedAt = gatehouse.PushApplied, &now
		p.LastError, p.ErrorCode = "", ""
	} else {
		p.Status, m.To = gatehouse.PushFailed, gatehouse.StatusFailed
		p.ErrorCode, p.LastError = failure.Code, failure.Detail
		r.ErrorCode, r.Error = failure.Code, failure.Detail
		if err := tx.ReleaseCeilings(a.ID); err != nil {
			return "", err
		}
	}
	if err := tx.UpdatePush(p, gatehouse.PushUnknown, p.Generation); err != nil {
		return "", err
	}
	if err := tx.MoveAction(m); err != nil {
		return "", err
	}
	if err := tx.InsertReceipt(r); err != nil {
		return "", err
	}
	if failure == nil {
		if err := Applied(tx, a, r, actor); err != nil {
			return "", err
		}
	}
	return m.To, nil
}

// newPush makes the push of an approved action.
func (g *Gate) newPush(tx gatehouse.Tx, a *gatehouse.Action) *gatehouse.Push {
	now := tx.Now()
	due := now.Add(a.HoldFor.D())
	p := &gatehouse.Push{
		ID: NewID("psh"), Tenant: a.Tenant, ActionID: a.ID, Connector: a.Connector,
		IdempotencyKey: a.IdempotencyKey, Digest: a.Digest, Status: gatehouse.PushQueued,
		NotBefore: due, NextAttempt: &due, CreatedAt: now, Lane: g.targets.Lane(a.Tenant, a.Connector),
	}
	a.Push = p.Summary()
	return p
}

// Applied writes the consequences of an applied action, in the transaction that
// records it: the mirror row, the end of a dead letter with the same change, and, for a
// reversal, the original's new state. If the original is no longer applied, its state
// stays, and only the mirror row records the reversal.
func Applied(tx pushMover, a *gatehouse.Action, r *gatehouse.Receipt, actor string) error {
	err := tx.InsertMirror(&gatehouse.AppliedMirror{
		Tenant: a.Tenant, ActionID: a.ID, ActionType: a.ActionType, Connector: a.Connector, Operation: a.Operation,
		Target: a.Target, Before: a.CurrentState, After: a.ProposedChange, Digest: a.Digest,
		ExternalID: r.ExternalID, ReceiptID: r.ID, AppliedAt: tx.Now(),
	})
	if err == nil && a.Repeats != "" {
		err = closeRepeated(tx, a, actor)
	}
	if err != nil || a.Reverses == "" {
		return err
	}
	old, err := tx.LockAction(a.Reverses)
	if err != nil {
		return err
	}
	if old.Status != gatehouse.StatusApplied {
		return nil
	}
	err = tx.MoveAction(gatehouse.ActionMove{
		ID: old.ID, From: gatehouse.StatusApplied, To: gatehouse.StatusReversed,
		Finished: true, ReversedBy: a.ID,
	})
	if err != nil {
		return err
	}
	return record(tx, old, "action.reversed", actor, gatehouse.StatusApplied, gatehouse.StatusReversed,
		map[string]any{"reversed_by": a.ID})
}

// closeRepeated closes a failed dead letter whose change another action has now
// applied. A dead letter with an unknown outcome still needs a person.
func closeRepeated(tx pushMover, a *gatehouse.Action, actor string) error {
	old, err := tx.LockAction(a.Repeats)
	if err != nil || old.Status != gatehouse.StatusFailed || old.Push == nil || old.ArchivedAt != nil {
		return err
	}
	p, err := tx.LockPush(old.Push.ID)
	if err != nil || p.Status != gatehouse.PushFailed || p.ClosedAt != nil {
		return err
	}
	reason := "the same change was applied by " + a.ID
	if err := tx.ClosePush(p.ID, "gatehouse", reason); err != nil {
		return err
	}
	return record(tx, old, "push.discarded", actor, old.Status, old.Status, map[string]any{"push": p.ID, "reason": reason})
}

// age is the time since a push was last sent, or else created.
func age(now time.Time, p *gatehouse.Push) time.Duration {
	if p.SentAt != nil {
		return now.Sub(*p.SentAt)
	}
	return now.Sub(p.CreatedAt)
}

// advice tells an operator in one sentence how to handle a failure.
func advice(code string) string {
	switch code {
	case "target_changed":
		return "The target has changed since the approval: propose the change again for its present state."
	case "digest_mismatch":
		return "The connector's definition or the stored bytes differ from what was approved: " +
			"restore the definition, or propose the change again."
	case "authority_revoked":
		return "The policy or a voter no longer supports it: have it approved again."
	case "connector_missing":
		return "No connector of that name serves this tenant: restore it in the configuration, then retry."
	case "retries_exhausted", "timeout", "unreachable":
		return "The target did not answer: see that it is up, then retry."
	case "poison":
		return "The server stopped each time before it called the target: see the server's log, then retry."
	case "resolved_failed":
		return "An operator found that it had no effect: retry it, or propose it again."
	}
	return fmt.Sprintf("It failed with %s: fix the cause, then retry it, or correct and resend it.", code)
}
