package gate

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
)

// maxFreshState bounds the state that a rebase reads, in bytes. A proposal with this state must fit in a
// request body.
const maxFreshState = 512 << 10

// StateReader is an optional ability of Targets. It reads the current version and state of an action's target.
type StateReader interface {
	// ReadsState reports whether ReadState can read an action's target, without a call.
	ReadsState(a *gatehouse.Action) bool
	ReadState(ctx context.Context, a *gatehouse.Action) (gatehouse.TargetState, error)
}

// UnreadableError is a permanent error of ReadState: another try would fail too. Detail is a message for people and
// contains no secrets.
type UnreadableError struct {
	Detail string
	Cause  error
}

func (e *UnreadableError) Error() string { return e.Detail }

// Unwrap returns the cause, for logs only.
func (e *UnreadableError) Unwrap() error { return e.Cause }

// Rebase replaces a pending action by a revision with the same change and the current state of the target. The
// gate reads that state itself. The proposer stays the same: the policy judges the revision as the proposer's,
// and people who could not decide the old action cannot decide the revision. The caller adds no content, so the
// rebase does not bar the caller from deciding.
//
// The revision needs people's approval even if the policy would allow it. The policy can still deny it.
func (g *Gate) Rebase(ctx context.Context, id string) (*gatehouse.Action, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	old, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleProposer, gatehouse.RoleApprover); err != nil {
		return nil, err
	}
	if err := MayReplace(c.Principal, old, "rebase"); err != nil {
		return nil, err
	}
	// A repeated request gets its earlier answer, even if the state has changed since.
	if err := g.AlreadyAnswered(ctx, c); err != nil {
		return nil, err
	}
	if err := revisable(old); err != nil {
		return nil, err
	}
	p, err := g.rebasedProposal(ctx, old)
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
	if from.author, err = g.enabledProposer(ctx, old, cannotRebase); err != nil {
		return nil, err
	}
	a, _, err := g.propose(ctx, c, p, from)
	return a, err
}

// enabledProposer returns the action's proposer. If the proposer is disabled, it returns the error that refuse
// makes.
func (g *Gate) enabledProposer(
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

// rebasedProposal reads the target of an action and returns the action's proposal with the current state.
func (g *Gate) rebasedProposal(ctx context.Context, old *gatehouse.Action) (*gatehouse.Proposal, error) {
	reader, ok := g.targets.(StateReader)
	if !ok || !reader.ReadsState(old) {
		return nil, cannotRebase("unreadable", "the connector %s cannot read the state of this target", old.Connector)
	}
	ctx, cancel := context.WithTimeout(ctx, g.config.CheckTimeout)
	defer cancel()
	now, err := reader.ReadState(ctx, old)
	if err != nil {
		return nil, g.readFailed(old, err)
	}
	p := old.Proposal
	p.Target.Version, p.CurrentState = now.Version, now.CurrentState
	// The stored risk level is the server's; the proposal takes the level that the proposer claimed. The
	// idempotency key belongs to the old revision.
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

// readFailed returns the error for clients after a failed read of a target.
func (g *Gate) readFailed(a *gatehouse.Action, err error) error {
	g.Log.Warn("the target could not be read for a rebase", "action", a.ID, "error", err)
	var unreadable *UnreadableError
	if errors.As(err, &unreadable) {
		return cannotRebase("unreadable", "%s", unreadable.Detail).Because(err)
	}
	e := gatehouse.E(gatehouse.CodeBusy, "the target did not return its present state; try again").Because(err)
	e.RetryAfter = 30
	return e
}

// cannotRebase returns the error of a rebase that is impossible. Programs read reason.
func cannotRebase(reason, format string, args ...any) *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeCannotRebase, format, args...).With("reason", reason)
}

// canRebase reports whether an action is pending and the gate can read the current state of its target.
func (g *Gate) canRebase(a *gatehouse.Action) bool {
	r, ok := g.targets.(StateReader)
	return ok && a.Status == gatehouse.StatusPending && r.ReadsState(a)
}

// targetGone reports whether a read shows that the target of a pending action no longer exists.
func (g *Gate) targetGone(ctx context.Context, a *gatehouse.Action) bool {
	if !g.canRebase(a) {
		return false
	}
	now, err := g.targets.(StateReader).ReadState(ctx, a)
	return err == nil && now.Gone
}

// rebaseData returns the data of a rebase's log entry: the old and the new version of the target. A version is
// "" if the proposal has none.
func rebaseData(old, a *gatehouse.Action) map[string]any {
	return map[string]any{"from_version": old.Target.Version, "to_version": a.Target.Version}
}
