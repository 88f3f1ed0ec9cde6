package gate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// errDry rolls back the transaction of a dry run.
var errDry = errors.New("gate: a dry run stores nothing")

// Edit replaces a pending action by a revision with an edited change. The proposer
// stays the same, and excluded people stay excluded; the policy judges the edited
// change, and people approve it. The editor is excluded too, unless the policy says
// otherwise: see [gatehouse.EditorMayApprove].
//
// An operator edits a failed action that is [gatehouse.Action.Correctable]: the revision
// replaces the action, and its dead letter is closed.
func (g *Gate) Edit(ctx context.Context, id string, e gatehouse.EditRequest) (*gatehouse.Action, error) {
	a, err := g.edit(ctx, id, e)
	if e.Approve && !e.DryRun {
		g.countDecision(ctx, endpointDecide, gatehouse.EditResult(a, err))
	}
	return a, err
}

// edit is Edit without the counting.
func (g *Gate) edit(ctx context.Context, id string, e gatehouse.EditRequest) (*gatehouse.Action, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	old, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	operates := old.Status == gatehouse.StatusFailed && c.Principal.Has(gatehouse.RoleOperator)
	may := mayVote
	if operates {
		may = steppedUp
	}
	if err := may(c); err != nil {
		return nil, err
	}
	e.Note = strings.TrimSpace(e.Note)
	if err := e.Validate(); err != nil {
		return nil, err
	}
	// A repeated request gets its earlier answer, whatever the state is now.
	if err := g.AlreadyAnswered(ctx, c); err != nil {
		return nil, err
	}
	if operates && Correctable(old) {
		if e.Approve {
			return nil, cannotEdit("others_approve", "a correction of a failed change is approved by others")
		}
	} else if err := revisable(old); err != nil {
		return nil, err
	}
	p, err := edited(old, &e)
	if err != nil {
		return nil, err
	}
	from, err := g.editLineage(ctx, c, old, p, &e)
	if err != nil {
		return nil, err
	}
	a, _, err := g.propose(ctx, c, p, from)
	if err == nil && from.vote != nil && !e.DryRun {
		from.vote.sendHints()
	}
	return a, err
}

// OwnQuestion reports whether an action asks for something within Gatehouse, such as an approval
// step or a new policy.
func OwnQuestion(a *gatehouse.Action) bool {
	return OwnConnector(a.Connector) || strings.HasPrefix(a.Operation, "gatehouse_")
}

// OwnConnector reports whether a connector is one of Gatehouse's own, which call no target.
func OwnConnector(name string) bool {
	return name == PolicyConnector || name == workflow.ApprovalConnector
}

// edited is the proposal of an action with the edited change.
func edited(old *gatehouse.Action, e *gatehouse.EditRequest) (*gatehouse.Proposal, error) {
	switch {
	case e.Digest != old.Digest:
		return nil, gatehouse.E(gatehouse.CodeDigestMismatch, "this is not what you saw: the digest differs").
			With("digest", old.Digest)
	case OwnQuestion(old):
		return nil, cannotEdit(
			"not_editable",
			"this action asks about Gatehouse itself and cannot be edited: approve it, or reject it with a reason",
		)
	}
	p := old.Proposal
	p.ProposedChange = e.Change(old.ProposedChange)
	if p.ProposedChange == old.ProposedChange {
		return nil, cannotEdit("unchanged", "the change is as it was proposed: there is nothing to edit")
	}
	// The stored level is the server's, not the claim; the key belongs to the old revision.
	p.RiskLevel, p.IdempotencyKey = old.ClaimedRisk, ""
	// A passed evaluation does not cover the edited change; all others still warn. The
	// diff shows the old change.
	p.Evaluations = slices.DeleteFunc(slices.Clone(old.Evaluations), func(x gatehouse.Evaluation) bool {
		return x.Result == "pass"
	})
	p.ArtifactDiff = nil
	p.Magnitude = editedMagnitude(old, &p)
	return &p, p.Validate()
}

// editedMagnitude returns the claimed magnitude of an edited change. A claim that matched the
// old payload is set to the new payload's amount in that currency; any other claim stays as it is.
func editedMagnitude(old *gatehouse.Action, p *gatehouse.Proposal) *gatehouse.Magnitude {
	m := old.Magnitude
	if m == nil || m.Amount == "" || card.Claim(old, card.Amounts(old)) != "" {
		return m
	}
	for _, x := range card.Amounts(&gatehouse.Action{Proposal: *p, Declared: old.Declared}) {
		if x.Currency != m.Currency {
			continue
		}
		amount := x.Size
		if m.Amount.Sign() < 0 {
			amount = amount.Neg()
		}
		return &gatehouse.Magnitude{Amount: amount, Currency: m.Currency}
	}
	return m
}

// editLineage returns the lineage of the revision.
func (g *Gate) editLineage(
	ctx context.Context, c *gatehouse.Caller, old *gatehouse.Action, p *gatehouse.Proposal, e *gatehouse.EditRequest,
) (from lineage, err error) {
	me := c.Principal
	from = lineage{
		revision: old.Revision + 1, supersedes: old, editing: true, dry: e.DryRun, editedBy: me.Name,
		edit:    &gatehouse.Edit{ByID: me.ID, Note: e.Note, Of: old.ID, Changes: []gatehouse.EditedField{}},
		editors: union(old.Editors, []string{me.ID, me.Person}), title: old.Title, about: aboutOf(old),
	}
	if !from.corrects() {
		err = g.Store.View(ctx, old.Tenant, func(tx gatehouse.ReadTx) error { return MayEdit(old, me, tx.Now()) })
	}
	if err != nil {
		return from, err
	}
	original := old
	if old.Edit != nil {
		if original, err = g.FindAction(ctx, old.Edit.Of); err != nil {
			return from, err
		}
		from.edit.Of = original.ID
	}
	for _, x := range card.Edited(original.ProposedChange, p.ProposedChange) {
		from.edit.Changes = append(from.edit.Changes, gatehouse.EditedField{
			Path: x.Path, Before: x.Before.JSON, After: x.After.JSON,
		})
	}
	if from.required, from.starter, err = g.runRequirements(ctx, old, p); err != nil {
		return from, err
	}
	from.required = max(from.required, 1)
	if old.Reverses != "" {
		from.reverses = &gatehouse.Action{ID: old.Reverses}
	}
	if e.Approve {
		from.vote = &ruling{gate: g, caller: c, decision: gatehouse.Decision{
			Decision: gatehouse.Approve, Notes: e.Note, Confirm: e.Confirm, AcknowledgeStale: e.AcknowledgeStale,
		}}
	}
	from.author, err = g.enabledProposer(ctx, old, cannotEdit)
	return from, err
}

// MayEdit returns the reason why a principal may not edit a pending action as its reviewer; nil when
// the principal may. A reviewer needs an own right to answer the action, but an earlier editor may edit
// again although excluded from answering.
func MayEdit(a *gatehouse.Action, p *gatehouse.Principal, now time.Time) error {
	ap := *a.Approval
	if excluded(a.Editors, p) {
		ap.Excluded = nil
	}
	return MayAnswer(&ap, p, now)
}

// checkEditor checks that the active policy still lets an editor of the action approve
// it; nil for everybody else.
func (g *Gate) checkEditor(tx gatehouse.PolicyReader, a *gatehouse.Action, p *gatehouse.Principal) error {
	if !excluded(a.Editors, p) {
		return nil
	}
	active, version, _, err := g.activePolicy(tx, a.Tenant)
	if err != nil {
		return err
	}
	if active != nil && gatehouse.EditorMayApprove(active.EditUpTo(), a.RiskLevel, a.Approval.Required) {
		return nil
	}
	return revoked("%s edited the change, and policy version %d does not let editors approve it", p.Name, version).
		With("voter", p.Name)
}

// prepareDraft reads the target of an action that is about to be stored and approved.
func (r *ruling) prepareDraft(ctx context.Context, d *draft, about *gatehouse.About) error {
	a := d.action
	if about != nil {
		a.Approval = &gatehouse.Approval{About: about}
	}
	a.Status, a.Ceilings = gatehouse.StatusPending, d.verdict.Ceilings
	r.known, r.policyKnown, r.policyVersion, r.prepared = &a, true, d.verdict.version, false
	return r.prepare(ctx)
}

// approveEdited approves the revision that the caller has just made.
func (r *ruling) approveEdited(tx gatehouse.Tx, a *gatehouse.Action) error {
	if a.Approval.Bars(r.caller.Principal) {
		return gatehouse.E(gatehouse.CodeSelfApproval,
			"you edited it, and it is %s now: the policy requires another approver", a.RiskLevel)
	}
	r.decision.Digest = a.Digest
	return r.rule(tx, a, gatehouse.Rights{PolicyVersion: a.Policy.Version})
}

// copyTargetMark copies the mark of a changed target to a revision made by an edit or an undo: such a
// revision keeps the recorded version and state of the target.
func copyTargetMark(tx gatehouse.ActionWriter, a *gatehouse.Action, from lineage) error {
	if !from.editing && !from.undoing || from.supersedes.Approval == nil || from.supersedes.Approval.TargetChanged == nil {
		return nil
	}
	a.Approval.TargetChanged = from.supersedes.Approval.TargetChanged
	return tx.MarkTarget(a.Approval.ID, *a.Approval.TargetChanged)
}

// editData returns the log entry's data of an edit. The changed fields are in the action.
func editData(a *gatehouse.Action) map[string]any {
	return map[string]any{"of": a.Edit.Of, "note": a.Edit.Note, "fields": len(a.Edit.Changes)}
}

// cannotEdit is the error of an edit that makes no revision; reason is for programs.
func cannotEdit(reason, format string, args ...any) *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeCannotEdit, format, args...).With("reason", reason)
}
