package gate

import (
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// RunProposal says on whose behalf, and under which conditions, a run proposes an action.
type RunProposal struct {
	// By is the principal of the workflow.
	By *gatehouse.Caller
	// Starter is the principal that started the run, nil for none. The starter's ceilings per agent apply
	// to the action.
	Starter *gatehouse.Principal
	// Asks is true for an approval step.
	Asks bool
	// Required is the smallest number of people who must approve.
	Required int
	// Barred are further people who cannot decide, in addition to the proposer, the sponsor and the person
	// on whose behalf the action is proposed.
	Barred []string
	// Title is the question of an approval step. About is the entity about whose state the step asks; nil
	// for none.
	Title string
	About *gatehouse.About
}

// Draft is an action of a run, prepared outside the transaction that stores it.
type Draft struct {
	gate  *Gate
	by    *gatehouse.Caller
	from  lineage
	draft *draft
	// proposal is the policy's input.
	proposal *gatehouse.Proposal
}

// DraftFor prepares the action that a run proposes.
func (g *Gate) DraftFor(p *gatehouse.Proposal, of RunProposal) (*Draft, error) {
	from := lineage{revision: 1, asks: of.Asks, required: of.Required, barred: of.Barred, starter: of.Starter,
		title: of.Title, about: of.About}
	if of.About != nil {
		if err := g.checkAbout(of.By.Principal.Tenant, of.About); err != nil {
			return nil, err
		}
	}
	d, err := g.draft(of.By, p, from)
	if err != nil {
		return nil, err
	}
	return &Draft{gate: g, by: of.By, from: from, draft: d, proposal: p}, nil
}

// Action returns the action without the fields that depend on the store.
func (d *Draft) Action() *gatehouse.Action { return &d.draft.action }

// Judge evaluates the active policy for the draft. Call Judge outside the transaction of Insert, before each
// try of that transaction.
func (d *Draft) Judge(ctx context.Context) error {
	a, tenant := &d.draft.action, d.by.Principal.Tenant
	err := d.gate.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) (err error) {
		d.draft.verdict, err = d.gate.prepareJudgement(tx, policy.Facts{
			Tenant: tenant, Proposal: d.proposal, Proposer: d.by.Principal,
			Starter: d.from.starter, Floor: a.RiskLevel, Declared: a.Declared,
		})
		return err
	})
	if err == nil {
		d.draft.verdict, err = d.draft.verdict.evaluate(ctx)
	}
	return err
}

// AsksMore returns a requirement of the draft that an earlier action does not meet; "" for none. The approval of the
// action must have required as much as the draft does. If the action has another proposer, the policy must not deny
// the draft, the action must have the draft's type and at least its level, and nobody who is barred from the draft
// may be able to decide the action or have voted on it. Call Judge first.
func (d *Draft) AsksMore(than *gatehouse.Action) string {
	own, v := &d.draft.action, d.draft.verdict.Verdict
	level := max(v.RiskLevel, own.RiskLevel, own.ClaimedRisk)
	outcome := v.Outcome
	if d.from.required > 0 {
		outcome = gatehouse.OutcomeNeedsApproval
	}
	if why := asksMore(than, outcome, level, max(v.Required, d.from.required)); why != "" {
		return why
	}
	if than.ProposerID == own.ProposerID {
		return ""
	}
	switch {
	case v.Outcome == gatehouse.OutcomeDeny:
		return "the policy denies it"
	case than.ActionType != own.ActionType:
		return "its type is " + gatehouse.Quote(than.ActionType)
	case than.RiskLevel < level:
		return "its level is " + than.RiskLevel.String() + ", and not " + level.String()
	case than.Approval == nil:
		return ""
	}
	for _, id := range d.from.barred {
		open := than.Status == gatehouse.StatusPending && !slices.Contains(than.Approval.Excluded, id)
		if id != "" && (open || slices.ContainsFunc(than.Approval.Votes,
			func(v gatehouse.Vote) bool { return v.PrincipalID == id || v.Person == id || v.Name == id })) {
			return "a contributor to the run may decide it"
		}
	}
	return ""
}

// Insert stores the action, its approval or push, and its log entries, in the caller's transaction. Call Judge
// first.
func (d *Draft) Insert(tx gatehouse.Tx) (a *gatehouse.Action, err error) {
	from := d.from
	if from.opened, err = tx.OpenProposal(d.draft.query(d.by.Principal)); err != nil {
		return nil, err
	}
	return d.gate.insertDraft(tx, d.by, d.draft, from)
}
