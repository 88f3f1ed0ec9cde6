package bench

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// maxPending is the largest number of pending actions in a filled store; all other actions have ended.
const maxPending = 100_000

// appliedOf sets the share of applied actions: one in appliedOf ended actions was approved and applied;
// the others were denied.
const appliedOf = 4

// fillScale fills the store, first with ended actions, then with pending ones that expire within a
// day, and sequences their leaves.
func (r *runner) fillScale(ctx context.Context, w *world) error {
	if err := w.propose(ctx); err != nil {
		return err
	}
	ended := max(0, r.Scale-maxPending)
	for done := 0; done < ended; {
		n := min(fillBatch, ended-done)
		batch := make([]*gatehouse.Action, n)
		for i := range batch {
			batch[i] = w.next()
		}
		err := w.Store.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			for i, a := range batch {
				var err error
				if (done+i)%appliedOf == 0 {
					err = w.insertApplied(tx, a)
				} else {
					err = w.insertDenied(tx, a)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if done += n; done%50_000 < fillBatch {
			r.say("filling: %d of %d", done, r.Scale)
			if err := w.sequence(ctx); err != nil {
				return err
			}
		}
	}
	w.expiry = 24 * time.Hour
	// The proposed template is one pending action already.
	for todo := min(r.Scale, maxPending) - 1; todo > 0; {
		list, err := w.fill(ctx, min(20*fillBatch, todo))
		if err != nil {
			return err
		}
		todo -= len(list)
		r.say("filling: %d of %d", r.Scale-todo, r.Scale)
		if err := w.sequence(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) insertDenied(tx gatehouse.Tx, a *gatehouse.Action) error {
	now := tx.Now()
	a.Status, a.Approval, a.ProposedAt, a.DecidedAt, a.FinishedAt = gatehouse.StatusDenied, nil, now, &now, &now
	a.DecidedBy, a.DecidedVia = "policy", gatehouse.ViaPolicy
	a.Policy.Outcome = gatehouse.OutcomeDeny
	if err := tx.InsertAction(a); err != nil {
		return err
	}
	return w.append(tx, a, "hitl.denied", "", string(a.Status))
}

// insertApplied stores an action that a person approved, with all its state transitions.
func (w *world) insertApplied(tx gatehouse.Tx, a *gatehouse.Action) error {
	now := tx.Now()
	if err := w.insert(tx, a); err != nil {
		return err
	}
	vote := gatehouse.Vote{
		Person: "prn_reviewer", PrincipalID: "prn_reviewer", Name: "reviewer", Decision: gatehouse.Approve,
		Via: gatehouse.ViaAPI, Digest: a.Digest, At: now,
	}
	if err := tx.PutVote(a.Approval.ID, vote); err != nil {
		return err
	}
	if err := tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalApproved); err != nil {
		return err
	}
	p := &gatehouse.Push{
		ID: gate.NewID("psh"), Tenant: a.Tenant, ActionID: a.ID, Connector: a.Connector,
		IdempotencyKey: a.IdempotencyKey,
		Digest:         a.Digest, Status: gatehouse.PushQueued, NotBefore: now, CreatedAt: now,
	}
	until := now.Add(time.Minute)
	receipt := &gatehouse.Receipt{
		ID: gate.NewID("rcp"), Tenant: a.Tenant, ActionID: a.ID, PushID: p.ID, IdempotencyKey: a.IdempotencyKey,
		Attempt: 1, Generation: 1,
		Outcome: gatehouse.ReceiptApplied, ExternalID: a.Target.EntityRef, RequestMetadata: "{}", ResponseMetadata: "{}",
		Source: "call", At: now,
	}
	move := func(from, to gatehouse.Status) func() error {
		return func() error {
			m := gatehouse.ActionMove{ID: a.ID, From: from, To: to, Finished: to.Finished()}
			if from == gatehouse.StatusPending {
				m.DecidedBy, m.DecidedVia, m.Decided = "reviewer", gatehouse.ViaAPI, true
			}
			return tx.MoveAction(m)
		}
	}
	push := func(to gatehouse.PushStatus) func() error {
		return func() error {
			from, generation := p.Status, p.Generation
			if to == gatehouse.PushPicking {
				generation--
			}
			p.Status = to
			return tx.UpdatePush(p, from, generation)
		}
	}
	for _, step := range []func() error{
		move(gatehouse.StatusPending, gatehouse.StatusApproved),
		func() error { return tx.InsertPush(p) },
		func() error { return w.append(tx, a, "hitl.approved", "pending", "approved") },
		func() error { p.Generation, p.LeaseUntil, p.PickedAt = 1, &until, &now; return nil },
		push(gatehouse.PushPicking),
		func() error { p.Attempts, p.SentAt = 1, &now; return nil },
		push(gatehouse.PushSent), move(gatehouse.StatusApproved, gatehouse.StatusPushing),
		func() error { return w.append(tx, a, "push.sent", "approved", "pushing") },
		func() error { p.AppliedAt, p.FinishedAt, p.LeaseUntil = &now, &now, nil; return nil },
		push(gatehouse.PushApplied), move(gatehouse.StatusPushing, gatehouse.StatusApplied),
		func() error { return tx.InsertReceipt(receipt) },
		func() error {
			return tx.InsertMirror(&gatehouse.AppliedMirror{
				Tenant: a.Tenant, ActionID: a.ID, ActionType: a.ActionType, Connector: a.Connector, Operation: a.Operation,
				Target: a.Target,
				Before: a.CurrentState, After: a.ProposedChange, Digest: a.Digest, ExternalID: receipt.ExternalID,
				ReceiptID: receipt.ID, AppliedAt: now,
			})
		},
		func() error { return w.append(tx, a, "push.applied", "pushing", "applied") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// append stores another leaf of an action.
func (w *world) append(tx gatehouse.Tx, a *gatehouse.Action, event, from, to string) error {
	l := w.leaf
	l.ID, l.At, l.Subject, l.ActionID, l.Digest = "", tx.Now(), a.ID, a.ID, a.Digest
	l.Type, l.From, l.To = event, from, to
	return tx.AppendLeaf(&l)
}

// sequence sequences the waiting leaves; background work may do the same concurrently.
func (w *world) sequence(ctx context.Context) error {
	s := &audit.Sequencer{Store: w.Store}
	for {
		n, err := s.Once(ctx)
		switch {
		case errors.Is(err, gatehouse.ErrConflict): // another sequencer was first; try again
		case err != nil || n == 0:
			return err
		}
	}
}

// background does the background work of a server: it sequences the waiting leaves and indexes the actions.
func (w *world) background(ctx context.Context) error {
	if err := w.sequence(ctx); err != nil {
		return err
	}
	for {
		if more, err := w.App.IndexActions(ctx); err != nil || !more {
			return err
		}
	}
}
