package gate

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
)

// maxFreshState bounds the state that a rebase reads, in bytes: a proposal with this
// state must fit in a request body.
const maxFreshState = 512 << 10

// StateReader is an optional ability of Targets: it reads the present version and
// pre-image of an action's target.
type StateReader interface {
	// ReadsState reports whether ReadState can read an action's target. It makes no
	// call.
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

// Rebase replaces a pending action by the same change on the present state of its target, which
// the gate reads. The proposer stays the same: the policy judges the revision as theirs, and
// people who could not decide the old one cannot decide the new one. The caller adds no content,
// so rebasing does not exclude them.
//
// An action that needed people's approval needs it again, whatever the policy says of the
// present state; the policy can still deny.
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
	// A repeated request gets its earlier answer, whatever the state is now.
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
	if from.required, from.starter, err = g.runRequirements(ctx, old, p); err != nil {
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
		return gatehouse.E(gatehouse.CodeRoleRequired, "a program can rebase only its own actions")
	}
	return nil
}

// stillProposes returns the action's proposer, with an error of refuse if the proposer
// is disabled.
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
	// The stored level is the server's, not the claim; the key belongs to the old revision.
	p.RiskLevel, p.IdempotencyKey = old.ClaimedRisk, ""
	switch {
	case now.Gone:
		return nil, cannotRebase("target_gone", "the target no longer exists: there is nothing to change")
	case now.Matches:
		return nil, cannotRebase("unchanged", "the target is as it was proposed: there is nothing to rebase")
	case len(now.CurrentState) > maxFreshState:
		return nil, cannotRebase("state_too_large", "the target's present state is larger than %d KiB",
			maxFreshState>>10)
	}
	if err := p.Validate(); err != nil {
		return nil, cannotRebase("state_invalid", "the target's present state cannot be part of a proposal: %s", err)
	}
	return &p, nil
}

// notRead maps an error of reading a target to an error for clients.
func (g *Gate) notRead(a *gatehouse.Action, err error) error {
	g.Log.Warn("target not read for a rebase", "action", a.ID, "error", err)
	var unreadable *UnreadableError
	if errors.As(err, &unreadable) {
		return cannotRebase("unreadable", "%s", unreadable.Detail).Because(err)
	}
	e := gatehouse.E(gatehouse.CodeBusy, "the target did not return its present state; try again").Because(err)
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

// targetGone reports whether the target of a pending action is known not to exist.
func (g *Gate) targetGone(ctx context.Context, a *gatehouse.Action) bool {
	if !g.rebases(a) {
		return false
	}
	now, err := g.targets.(StateReader).ReadState(ctx, a)
	return err == nil && now.Gone
}

// rebaseData is the log entry's data of a rebase: the old and the new version, "" where
// the proposal names none.
func rebaseData(old, a *gatehouse.Action) map[string]any {
	return map[string]any{"from_version": old.Target.Version, "to_version": a.Target.Version}
}
