package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// Reverse proposes the change that the receipt describes as undoing an applied
// action. It goes through the gate like any other: policy, people, dispatch. An
// action has at most one open reversal.
func (g *Gate) Reverse(ctx context.Context, id string, r gatehouse.ReverseRequest) (*gatehouse.Action, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	old, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator); err != nil {
		return nil, err
	}
	if err := g.AlreadyAnswered(ctx, c); err != nil {
		return nil, err
	}

	if old.Status != gatehouse.StatusApplied {
		return nil, notReversible(old, "only an applied action can be reversed; this one is "+string(old.Status))
	}
	if old.ArchivedAt != nil {
		return nil, notReversible(old, "the action is in the archive, and what is there stays as it is").With("archived_at", old.ArchivedAt)
	}

	var receipt *gatehouse.Receipt
	err = g.View(ctx, "receipt", func(tx gatehouse.ReadTx, _ *gatehouse.Caller) (err error) {
		receipt, err = tx.SuccessReceipt(old.IdempotencyKey)
		return err
	})
	if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		return nil, notReversible(old, "there is no receipt that says how")
	}
	if err != nil {
		return nil, err
	}
	if !receipt.Reversible || receipt.Reversal == nil {
		return nil, notReversible(old, "the receipt says that it cannot be undone")
	}

	rev := receipt.Reversal
	p := &gatehouse.Proposal{
		ActionType: old.ActionType, Connector: old.Connector, Operation: rev.Operation, Target: rev.Target,
		CurrentState: rev.CurrentState, ProposedChange: rev.ProposedChange, Magnitude: old.Magnitude,
		RiskLevel: old.RiskLevel, Rationale: r.Rationale,
	}
	if p.Rationale == "" {
		p.Rationale = "reversal of " + old.ID
	}
	a, _, err := g.propose(ctx, c, p, lineage{revision: 1, reverses: old})
	return a, err
}

func notReversible(a *gatehouse.Action, why string) *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeNotReversible, "%s", why).With("current_status", a.Status)
}

// claimReversal verifies, under the original's lock, that the original is still
// applied and that it has no other open reversal.
func claimReversal(tx gatehouse.Tx, a *gatehouse.Action) error {
	old, err := tx.LockAction(a.Reverses)
	if err != nil {
		return err
	}
	if old.Status != gatehouse.StatusApplied {
		return notReversible(old, "the action is "+string(old.Status))
	}
	if old.ArchivedAt != nil {
		return notReversible(old, "the action is in the archive")
	}
	open, err := tx.OpenReversal(old.ID)
	if err != nil {
		return err
	}
	if open != "" {
		return notReversible(old, "a reversal is open already").With("reversal", open)
	}
	return nil
}
