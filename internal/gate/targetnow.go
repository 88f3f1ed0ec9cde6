package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// CanReadTarget reports whether [Gate.ReadTarget] can read the target of an action.
// It makes no call.
func (g *Gate) CanReadTarget(a *gatehouse.Action) bool { return g.readable(a) != nil }

// readable returns the action whose target [Gate.ReadTarget] reads: the subject of a pending
// action, or the reversal of an applied one; nil when the target cannot be read.
func (g *Gate) readable(a *gatehouse.Action) *gatehouse.Action {
	switch {
	case a.Status == gatehouse.StatusApplied && a.ArchivedAt == nil && a.Receipt != nil && a.Receipt.Reversible &&
		a.Receipt.Reversal != nil:
		a = &gatehouse.Action{ID: a.ID, Tenant: a.Tenant, Proposal: *reversalOf(a, a.Receipt.Reversal)}
	case a.Status == gatehouse.StatusPending:
		a = targetSubject(a)
	default:
		return nil
	}
	if r, ok := g.targets.(StateReader); !ok || !r.ReadsState(a) {
		return nil
	}
	return a
}

// ReadTarget reads the target of a pending action, or of the reversal of an applied
// action, for proposers, approvers and operators. A program can read the targets of its
// own actions only. ReadTarget waits at most [Config.CheckTimeout], and changes nothing.
// When the target does not answer, the error has code busy; when the connector cannot
// read the target, cannot_rebase.
func (g *Gate) ReadTarget(ctx context.Context, id string) (*gatehouse.TargetState, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	a, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator); err != nil {
		return nil, err
	}
	if c.Principal.Kind != gatehouse.KindPerson && a.ProposerID != c.Principal.ID {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "a program can read only the targets of its own actions")
	}
	read := g.readable(a)
	switch {
	case read == nil && a.Status != gatehouse.StatusPending:
		return nil, cannotRebase("unreadable",
			"the target of an action that is %s cannot be read", a.Status)
	case read == nil:
		return nil, cannotRebase("unreadable", "the connector %s cannot read the state of this target",
			targetSubject(a).Connector)
	}
	ctx, cancel := context.WithTimeout(ctx, g.config.CheckTimeout)
	defer cancel()
	now, err := g.targets.(StateReader).ReadState(ctx, read)
	if err != nil {
		return nil, g.readFailed(a, err)
	}
	if now.CurrentState != "" && (len(now.CurrentState) > maxFreshState || !now.CurrentState.IsObject()) {
		return nil, cannotRebase("state_invalid", "the target's present state cannot be shown beside a proposal")
	}
	return &now, nil
}
