package gate

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// Revise replaces a pending action with a new one. The old approval is canceled with its
// votes; people who could not decide the old action cannot decide the new one.
func (g *Gate) Revise(ctx context.Context, id string, p *gatehouse.Proposal) (*gatehouse.Action, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	old, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleProposer); err != nil {
		return nil, err
	}
	if err := MayReplace(c.Principal, old, "revise"); err != nil {
		return nil, err
	}
	// With an Idempotency-Key or an idempotency_key, only the transaction checks this: a repeated request gets its
	// first answer, even if the action can no longer be revised.
	if c.Idempotency == nil && p.IdempotencyKey == "" {
		if err := revisable(old); err != nil {
			return nil, err
		}
	}
	from := lineage{
		revision: old.Revision + 1, supersedes: old, editors: old.Editors, title: old.Title, about: aboutOf(old),
	}
	if from.required, from.starter, err = g.runRequirements(ctx, old, p); err != nil {
		return nil, err
	}
	if old.Reverses != "" {
		// An original has at most one open reversal: the revision takes the place of the old one.
		if !sameTarget(old, p) {
			return nil, gatehouse.E(gatehouse.CodeInvalid,
				"a reversal can only be revised to another change of the same target")
		}
		from.reverses = &gatehouse.Action{ID: old.Reverses}
	}
	a, _, err := g.propose(ctx, c, p, from)
	return a, err
}

// MayReplace fails unless a principal may replace an action with a new revision, which ends the votes of the old
// action. The proposer may, and so may people with the role approver. verb names the operation in the error.
func MayReplace(p *gatehouse.Principal, a *gatehouse.Action, verb string) error {
	switch {
	case p.ID == a.ProposerID:
		return nil
	case p.Kind != gatehouse.KindPerson:
		return gatehouse.E(gatehouse.CodeRoleRequired, "a program can %s only its own actions", verb)
	case !p.Has(gatehouse.RoleApprover):
		return gatehouse.E(gatehouse.CodeRoleRequired, "only approvers %s what others have proposed", verb)
	}
	return nil
}

// sameTarget reports whether a proposal performs the action's operation on the
// action's entities, whatever their version.
func sameTarget(a *gatehouse.Action, p *gatehouse.Proposal) bool {
	one, other := a.Target, p.Target
	one.Version, other.Version = "", ""
	return p.Connector == a.Connector && p.Operation == a.Operation &&
		gatehouse.MustJSON(one) == gatehouse.MustJSON(other)
}

// runRequirements returns the least number of people who must approve a revision of a run's action: the number that
// the old action required, because the run continues with the revision, but at least 1; 0 for an action without a run.
// An approval step must keep its target. starter is the principal that started the run, nil for none; the starter's
// ceilings apply to the revision.
func (g *Gate) runRequirements(
	ctx context.Context, old *gatehouse.Action, p *gatehouse.Proposal,
) (required int, starter *gatehouse.Principal, err error) {
	ofRun := true
	err = g.Store.View(ctx, old.Tenant, func(tx gatehouse.ReadTx) error {
		step, err := tx.FindStepByAction(old.ID)
		if errors.Is(err, gatehouse.ErrNotFound) {
			ofRun = false
			return nil
		}
		if err != nil {
			return err
		}
		run, err := tx.FindRunHead(step.RunID)
		if err != nil || run.StarterID == "" {
			return err
		}
		if starter, err = tx.FindPrincipal(run.StarterID); errors.Is(err, gatehouse.ErrNotFound) {
			return nil
		}
		return err
	})
	switch {
	case err != nil, !ofRun:
		return 0, nil, err
	case old.Connector == workflow.ApprovalConnector &&
		(p.Connector != old.Connector || p.Operation != old.Operation ||
			gatehouse.MustJSON(p.Target) != gatehouse.MustJSON(old.Target)):
		return 0, nil, gatehouse.E(gatehouse.CodeInvalid, "a revision of a run's question can only change its wording")
	case old.Approval == nil:
		return 1, starter, nil
	}
	return old.Approval.Required, starter, nil
}

func revisable(a *gatehouse.Action) error {
	switch v, _ := a.HeldRejection(); {
	case v != nil:
	case a.Status == gatehouse.StatusPending:
		return nil
	case a.Status == gatehouse.StatusExpired:
		return expiredError(a)
	}
	return alreadyDecided(a)
}

// supersede closes the old action in favour of the new one, in the transaction that stores the
// new one. It returns the old action before the change.
func supersede(tx gatehouse.Tx, c *gatehouse.Caller, from lineage, a *gatehouse.Action) (*gatehouse.Action, error) {
	old, err := tx.LockAction(from.supersedes.ID)
	if err != nil {
		return nil, err
	}
	if from.corrects() {
		return old, correct(tx, c, old, a)
	}
	if from.undoing {
		err = closeHeld(tx, c, old)
	} else {
		err = closeRevised(tx, c, from, old)
	}
	if err != nil {
		return nil, err
	}
	if err := tx.LinkSuperseded(old.ID, a.ID); err != nil {
		return nil, err
	}
	if err := tx.Inherit(a.ID, old.ID); err != nil {
		return nil, err
	}
	data := map[string]any{"superseded_by": a.ID}
	switch {
	case from.undoing:
		addUndone(data, old)
	case from.editing:
		data["edited"] = editData(a)
	case a.RebasedBy != "":
		data["rebased"] = rebaseData(old, a)
	}
	return old, record(tx, old, "hitl.superseded", c.Principal.ID, old.Status, gatehouse.StatusSuperseded, data)
}

// closeRevised closes a pending action that a revision replaces.
func closeRevised(tx actionMover, c *gatehouse.Caller, from lineage, old *gatehouse.Action) error {
	if old.Status == gatehouse.StatusPending && !tx.Now().Before(old.Approval.End()) {
		return expiredError(old)
	}
	if err := revisable(old); err != nil {
		return err
	}
	if from.editing {
		if err := MayEdit(old, c.Principal, tx.Now()); err != nil {
			return err
		}
	}
	return closePending(tx, old)
}

func closePending(tx gatehouse.ActionWriter, old *gatehouse.Action) error {
	if err := tx.MoveApproval(old.Approval.ID, gatehouse.ApprovalCanceled); err != nil {
		return err
	}
	return tx.MoveAction(gatehouse.ActionMove{
		ID: old.ID, From: gatehouse.StatusPending, To: gatehouse.StatusSuperseded,
		Decided: true, Finished: true,
	})
}
