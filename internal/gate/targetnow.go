package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// CanReadTarget reports whether [Gate.ReadTarget] can read the target of an action.
// It makes no call.
func (g *Gate) CanReadTarget(a *gatehouse.Action) bool { return g.rebases(subject(a)) }

// ReadTarget reads the present state of a pending action's target, for approvers.
// It takes at most as long as the check at an approval, and changes nothing. When
// the target does not answer, the error has code busy; when it cannot be read,
// cannot_rebase.
func (g *Gate) ReadTarget(ctx context.Context, id string) (FreshState, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return FreshState{}, err
	}
	a, err := g.FindAction(ctx, id)
	if err != nil {
		return FreshState{}, err
	}
	if err := Require(c, gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator); err != nil {
		return FreshState{}, err
	}
	if !g.CanReadTarget(a) {
		return FreshState{}, cannotRebase(
			"unreadable",
			"the connector %s cannot read the state of this target",
			subject(a).Connector,
		)
	}
	ctx, cancel := context.WithTimeout(ctx, g.config.CheckTimeout)
	defer cancel()
	now, err := g.targets.(StateReader).ReadState(ctx, subject(a))
	if err != nil {
		return FreshState{}, g.notRead(a, err)
	}
	if now.CurrentState != "" && (len(now.CurrentState) > maxFreshState || !now.CurrentState.IsObject()) {
		return FreshState{}, cannotRebase("state_invalid", "the target's present state cannot stand beside a proposal")
	}
	return now, nil
}
