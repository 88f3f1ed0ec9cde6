package app

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// CanReadTarget reports whether [Gate.ReadTarget] can ask the target of an action.
// It makes no call.
func (g *Gate) CanReadTarget(a *gatehouse.Action) bool { return g.rebases(a) }

// ReadTarget reads the target of a pending action as it is now, for people who
// decide: it takes at most the time of a check at an approval, and changes
// nothing. A target that did not answer is an error with code busy; one that
// cannot be read, with code cannot_rebase.
func (g *Gate) ReadTarget(ctx context.Context, id string) (FreshState, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return FreshState{}, err
	}
	a, err := g.FindAction(ctx, id)
	if err != nil {
		return FreshState{}, err
	}
	if err := require(c, gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator); err != nil {
		return FreshState{}, err
	}
	if !g.CanReadTarget(a) {
		return FreshState{}, cannotRebase(
			"unreadable",
			"the connector %s cannot read the state of this target",
			a.Connector,
		)
	}
	ctx, cancel := context.WithTimeout(ctx, g.config.CheckTimeout)
	defer cancel()
	now, err := g.targets.(StateReader).ReadState(ctx, a)
	if err != nil {
		return FreshState{}, g.notRead(a, err)
	}
	if now.CurrentState != "" && (len(now.CurrentState) > maxFreshState || !now.CurrentState.IsObject()) {
		return FreshState{}, cannotRebase("state_invalid", "the target's present state cannot stand beside a proposal")
	}
	return now, nil
}
