package gate

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
)

// Reverse proposes the change that undoes an applied action, as the action's receipt
// describes it. The proposal goes through the gate like any other: policy, people,
// dispatch. An action has at most one open reversal.
func (g *Gate) Reverse(ctx context.Context, id string, r gatehouse.ReverseRequest) (*gatehouse.Action, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	old, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := MayReverse(c.Principal, old); err != nil {
		return nil, err
	}
	if err := g.AlreadyAnswered(ctx, c); err != nil {
		return nil, err
	}
	from := lineage{revision: 1, reverses: old}
	if old.Connector == PolicyConnector && old.Operation == ConnectorOperation {
		if _, err := g.adminWithStepUp(ctx); err != nil { // as for ProposeConnectors
			return nil, err
		}
		from.own = true
	}

	if old.Status != gatehouse.StatusApplied {
		return nil, notReversible(old, "only an applied action can be reversed; this one is "+string(old.Status))
	}
	if old.ArchivedAt != nil {
		return nil, notReversible(old, "the action is in the archive, where nothing "+
			"changes").With("archived_at", old.ArchivedAt)
	}

	var receipt *gatehouse.Receipt
	err = g.View(ctx, "receipt", func(tx gatehouse.ReadTx, _ *gatehouse.Caller) (err error) {
		receipt, err = tx.SuccessReceipt(old.IdempotencyKey)
		return err
	})
	if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		return nil, notReversible(old, "no receipt says how to reverse it")
	}
	if err != nil {
		return nil, err
	}
	if !receipt.Reversible || receipt.Reversal == nil {
		return nil, notReversible(old, "the receipt says that the change cannot be undone")
	}

	p := reversalOf(old, receipt.Reversal)
	if r.Rationale != "" {
		p.Rationale = r.Rationale
	}
	if g.isGone(ctx, &gatehouse.Action{ID: old.ID, Tenant: old.Tenant, Proposal: *p}) {
		return nil, notReversible(old, "the target no longer exists, so the change cannot be undone").
			With("reason", "target_gone")
	}
	a, _, err := g.propose(ctx, c, p, from)
	return a, err
}

// MayReverse returns nil if p may propose the reversal of an action, as an approver, an operator or the action's
// proposer; otherwise it returns an error with code role_required.
func MayReverse(p *gatehouse.Principal, a *gatehouse.Action) error {
	if p.Has(gatehouse.RoleApprover) || p.Has(gatehouse.RoleOperator) ||
		p.Has(gatehouse.RoleProposer) && p.ID == a.ProposerID {
		return nil
	}
	return gatehouse.E(gatehouse.CodeRoleRequired,
		"only approvers, operators and the action's proposer can propose its reversal")
}

// reversalOf is the proposal that undoes an applied action.
func reversalOf(old *gatehouse.Action, r *gatehouse.Reversal) *gatehouse.Proposal {
	return &gatehouse.Proposal{
		ActionType: old.ActionType, Connector: old.Connector, Operation: r.Operation, Target: r.Target,
		CurrentState: r.CurrentState, ProposedChange: r.ProposedChange, Magnitude: old.Magnitude,
		RiskLevel: old.RiskLevel, Rationale: "reversal of " + old.ID,
	}
}

// restores reports whether a proposal makes the change that the receipt of the reversed action describes: only then
// does the policy judge the proposal as a reversal. A revision of a reversal can make another change. reversed is ""
// for a proposal that reverses nothing.
func restores(tx interface {
	gatehouse.ActionReader
	gatehouse.PushReader
}, reversed string, p *gatehouse.Proposal) (bool, error) {
	if reversed == "" {
		return false, nil
	}
	old, err := tx.FindAction(reversed)
	if err != nil {
		return false, err
	}
	receipt, err := tx.SuccessReceipt(old.IdempotencyKey)
	if errors.Is(err, gatehouse.ErrNotFound) || err == nil && receipt.Reversal == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	undo := receipt.Reversal
	want, is := undo.Target, p.Target
	want.Version, is.Version = "", ""
	return p.Operation == undo.Operation && p.ProposedChange.Equal(undo.ProposedChange) &&
		gatehouse.MustJSON(want) == gatehouse.MustJSON(is), nil
}

// isGone reports whether the connector says that the target does not exist. It is
// false when the target does not answer or cannot be read.
func (g *Gate) isGone(ctx context.Context, a *gatehouse.Action) bool {
	r, ok := g.targets.(StateReader)
	if !ok || !r.ReadsState(a) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, g.config.CheckTimeout)
	defer cancel()
	now, err := r.ReadState(ctx, a)
	if err != nil {
		g.Log.Warn("target not read for a reversal", "action", a.ID, "error", err)
	}
	return err == nil && now.Gone
}

// OpenReversal returns the id of the open reversal of an applied action, "" for none.
func (g *Gate) OpenReversal(ctx context.Context, id string) (open string, err error) {
	err = g.View(ctx, "action", func(tx gatehouse.ReadTx, _ *gatehouse.Caller) error {
		open, err = tx.OpenReversal(id)
		return err
	})
	return open, err
}

func notReversible(a *gatehouse.Action, why string) *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeNotReversible, "%s", why).With("current_status", a.Status)
}

// checkReversal verifies, under the original's lock, that the original is still
// applied and that it has no other open reversal.
func checkReversal(tx gatehouse.Tx, a *gatehouse.Action) error {
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
