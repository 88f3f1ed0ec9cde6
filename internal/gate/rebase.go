package gate

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
)

// maxFreshState bounds a state that a rebase reads, in bytes: what is proposed on
// it must fit in the body of a proposal.
const maxFreshState = 512 << 10

// StateReader is what Targets may do besides: read the version and the pre-image
// of an action's target as they are now.
type StateReader interface {
	// ReadsState reports whether the target of an action can be read so. It makes
	// no call.
	ReadsState(a *gatehouse.Action) bool
	ReadState(ctx context.Context, a *gatehouse.Action) (gatehouse.TargetState, error)
}

// UnreadableError is an error of ReadState after which reading again cannot
// succeed. Detail is for people, without secrets.
type UnreadableError struct {
	Detail string
	Cause  error
}

func (e *UnreadableError) Error() string { return e.Detail }

// Unwrap returns the cause, for logs only.
func (e *UnreadableError) Unwrap() error { return e.Cause }

// Rebase replaces a pending action by the same change on the present state of its
// target, which the gate reads. The new revision stays the proposer's: the policy
// judges it as theirs, and whoever could not decide the old one cannot decide the
// new one. Whoever rebases adds nothing to the content, and may decide it.
//
// People were asked about the change, so people are asked again, whatever the
// policy says of the present state; it can still deny.
func (g *Gate) Rebase(ctx context.Context, id string) (*gatehouse.Action, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	old, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := mayRebase(c, old); err != nil {
		return nil, err
	}
	// The key of an earlier answer comes before the state that it made.
	if err := g.AlreadyAnswered(ctx, c); err != nil {
		return nil, err
	}
	if err := revisable(old); err != nil {
		return nil, err
	}
	p, err := g.rebased(ctx, old)
	if err != nil {
		return nil, err
	}

	from := lineage{
		revision: old.Revision + 1, supersedes: old, editedBy: old.EditedBy, edit: old.Edit, editors: old.Editors,
	}
	if from.required, from.starter, err = g.asked(ctx, old, p); err != nil {
		return nil, err
	}
	from.required = max(from.required, 1)
	if old.Reverses != "" {
		from.reverses = &gatehouse.Action{ID: old.Reverses}
	}
	if from.author, err = g.stillProposes(ctx, old, cannotRebase); err != nil {
		return nil, err
	}
	a, _, err := g.propose(ctx, c, p, from)
	return a, err
}

// mayRebase checks the right to ask for the present state: a person who proposes
// or approves, or the program that proposed the action.
func mayRebase(c *gatehouse.Caller, old *gatehouse.Action) error {
	if c.Principal.Kind == gatehouse.KindPerson {
		return Require(c, gatehouse.RoleProposer, gatehouse.RoleApprover)
	}
	if err := Require(c, gatehouse.RoleProposer); err != nil {
		return err
	}
	if old.ProposerID != c.Principal.ID {
		return gatehouse.E(gatehouse.CodeRoleRequired, "a program rebases its own actions only")
	}
	return nil
}

// stillProposes returns the principal whose proposal the action is, and the error of
// refuse for one that is disabled.
func (g *Gate) stillProposes(
	ctx context.Context, a *gatehouse.Action, refuse func(reason, format string, args ...any) *gatehouse.Error,
) (p *gatehouse.Principal, err error) {
	err = g.Store.View(ctx, a.Tenant, func(tx gatehouse.ReadTx) (err error) {
		p, err = tx.FindPrincipal(a.ProposerID)
		return err
	})
	if err == nil && p.Disabled {
		err = refuse("proposer_disabled", "its proposer, %s, is disabled: have somebody else propose it", p.Name)
	}
	return p, err
}

// rebased is the proposal of an action on the present state of its target.
func (g *Gate) rebased(ctx context.Context, old *gatehouse.Action) (*gatehouse.Proposal, error) {
	reader, ok := g.targets.(StateReader)
	if !ok || !reader.ReadsState(old) {
		return nil, cannotRebase("unreadable", "the connector %s cannot read the state of this target", old.Connector)
	}
	ctx, cancel := context.WithTimeout(ctx, g.config.CheckTimeout)
	defer cancel()
	now, err := reader.ReadState(ctx, old)
	if err != nil {
		return nil, g.notRead(old, err)
	}
	p := old.Proposal
	p.Target.Version, p.CurrentState = now.Version, now.CurrentState
	// The risk level is the server's own; the key is of the revision that it was given for.
	p.RiskLevel, p.IdempotencyKey = old.ClaimedRisk, ""
	switch {
	case now.Gone:
		return nil, cannotRebase("target_gone", "the target is not there any more: there is nothing to make the change to")
	case now.Matches:
		return nil, cannotRebase("unchanged", "the target is as it was proposed: there is nothing to rebase")
	case len(now.CurrentState) > maxFreshState:
		return nil, cannotRebase("state_too_large", "the target's present state is larger than %d KiB",
			maxFreshState>>10)
	}
	if err := p.Validate(); err != nil {
		return nil, cannotRebase("state_invalid", "the target's present state cannot stand in a proposal: %s", err)
	}
	return &p, nil
}

// notRead maps an error of reading a target to the outside's.
func (g *Gate) notRead(a *gatehouse.Action, err error) error {
	g.Log.Warn("target not read for a rebase", "action", a.ID, "error", err)
	var unreadable *UnreadableError
	if errors.As(err, &unreadable) {
		return cannotRebase("unreadable", "%s", unreadable.Detail).Because(err)
	}
	e := gatehouse.E(gatehouse.CodeBusy, "the target did not tell its present state; try again").Because(err)
	e.RetryAfter = 30
	return e
}

// cannotRebase is the error of a rebase that makes no revision; reason is for
// programs.
func cannotRebase(reason, format string, args ...any) *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeCannotRebase, format, args...).With("reason", reason)
}

// rebases reports whether a pending action can be proposed on the present state of
// its target.
func (g *Gate) rebases(a *gatehouse.Action) bool {
	r, ok := g.targets.(StateReader)
	return ok && a.Status == gatehouse.StatusPending && r.ReadsState(a)
}

// gone reports whether the target of a pending action is known not to exist.
func (g *Gate) gone(ctx context.Context, a *gatehouse.Action) bool {
	if !g.rebases(a) {
		return false
	}
	now, err := g.targets.(StateReader).ReadState(ctx, a)
	return err == nil && now.Gone
}

// rebaseData is what the log says of a rebase: the versions that it goes from and
// to, "" where the proposal names none.
func rebaseData(old, a *gatehouse.Action) map[string]any {
	return map[string]any{"from_version": old.Target.Version, "to_version": a.Target.Version}
}
