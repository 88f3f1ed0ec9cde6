package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// RunProposal is the context in which a run proposes an action.
type RunProposal struct {
	// By is the workflow's own principal.
	By *gatehouse.Caller
	// Starter is the principal that started the run, nil for none: its ceilings per
	// agent apply.
	Starter *gatehouse.Principal
	// Required is the least number of people who must approve. Barred are people who
	// cannot decide, besides the proposer and related people.
	Required int
	Barred   []string
	// Title is the question of an approval step. About is the entity whose state it asks
	// about; nil for none.
	Title string
	About *gatehouse.About
}

// Draft is an action of a run, prepared outside the transaction that stores it.
type Draft struct {
	gate  *Gate
	by    *gatehouse.Caller
	from  lineage
	draft *draft
	// proposal is what the policy judges.
	proposal *gatehouse.Proposal
}

// DraftFor prepares the action that a run proposes.
func (g *Gate) DraftFor(p *gatehouse.Proposal, of RunProposal) (*Draft, error) {
	from := lineage{revision: 1, required: of.Required, barred: of.Barred, starter: of.Starter, title: of.Title,
		about: of.About}
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

// Action is the action as far as it does not depend on the store.
func (d *Draft) Action() *gatehouse.Action { return &d.draft.action }

// Judge judges the draft by the active policy. Call it outside the transaction,
// before each try.
func (d *Draft) Judge(ctx context.Context) error {
	a, tenant := &d.draft.action, d.by.Principal.Tenant
	err := d.gate.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) (err error) {
		d.draft.verdict, err = d.gate.judge(tx, policy.Facts{
			Tenant: tenant, Proposal: d.proposal, Proposer: d.by.Principal,
			Starter: d.from.starter, Floor: a.RiskLevel, Declared: a.Declared,
		})
		return err
	})
	if err == nil {
		d.draft.verdict, err = d.draft.verdict.judged(ctx)
	}
	return err
}

// Insert stores the judged action with the consequences of its outcome, within the
// caller's transaction.
func (d *Draft) Insert(tx gatehouse.Tx) (a *gatehouse.Action, err error) {
	from := d.from
	if from.opened, err = tx.OpenProposal(d.draft.query(d.by.Principal)); err != nil {
		return nil, err
	}
	return d.gate.insertDraft(tx, d.by, d.draft, from)
}
