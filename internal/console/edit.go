package console

import (
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// editView is the form in which a person proposes a revision.
type editView struct {
	a *gatehouse.Action
	// change, rationale and once are fields of the form; once makes a second press of the button
	// find the revision that the first one made.
	change, rationale, once string
	outcome                 *gatehouse.Error
}

func (c *Console) editPage(v *view) error {
	a, err := c.cfg.Actions.FindAction(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if v.corrects(a) || v.mayEdit(a) && (v.query("own") == "" || !v.has(gatehouse.RoleProposer)) {
		e := v.newReviewEdit(a)
		if v.query("json") != "" {
			e.fields = nil
		}
		return v.render(http.StatusOK, "Edit", "/inbox", reviewEditForm(v, e))
	}
	if !v.has(gatehouse.RoleProposer) {
		return gatehouse.E(gatehouse.CodeRoleRequired, "an approver can edit only pending changes that they may decide, and "+
			"an operator only failed changes that the target refused")
	}
	e := &editView{a: a, change: pretty(a.ProposedChange), rationale: a.Rationale, once: v.requestID}
	return v.render(http.StatusOK, "Edit", "/inbox", editForm(v, e))
}

// revise proposes the edited change as a revision that replaces the old one.
func (c *Console) revise(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	a, err := c.cfg.Actions.FindAction(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	e := &editView{a: a, change: v.form("change"), rationale: v.form("rationale"), once: v.form("once")}
	next, err := c.proposeRevision(v, e)
	if err != nil {
		e.outcome = asError(err)
		if e.outcome.Code == gatehouse.CodeInternal {
			return err
		}
		return v.render(gatehouse.StatusOf(e.outcome.Code), "Edit", "/inbox", editForm(v, e))
	}
	return v.redirect(actionPath(next))
}

func (c *Console) proposeRevision(v *view, e *editView) (id string, err error) {
	p := e.a.Proposal
	if p.ProposedChange, err = gatehouse.Canonicalize([]byte(e.change)); err != nil {
		return "", gatehouse.E(gatehouse.CodeMalformed, "the change is not JSON: %v", err)
	}
	p.Rationale = strings.TrimSpace(e.rationale)
	p.RiskLevel, p.IdempotencyKey = e.a.ClaimedRisk, ""
	// The person who edits is the proposer. The agent's evaluations are dropped: they judged the
	// old change.
	p.Evaluations, p.ArtifactDiff, p.ExpiresIn = nil, nil, 0
	if err := p.Validate(); err != nil {
		return "", err
	}
	next, err := c.cfg.Actions.Revise(v.once("edit", e.once, e.a.ID, e.change, e.rationale), e.a.ID, &p)
	if id, ok := replayedID(err); ok {
		return id, nil
	}
	if err != nil {
		return "", err
	}
	return next.ID, nil
}
