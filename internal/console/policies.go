package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// PolicyChecker checks policies, and reads from them what the pages show.
type PolicyChecker interface {
	// CheckPolicy lints a policy's text and runs its tests.
	CheckPolicy(ctx context.Context, source string) (*gatehouse.PolicyCheck, error)
	// ActionGrounds returns the rules and facts by which a version judged an action, nil when they are no
	// longer known.
	ActionGrounds(ctx context.Context, a *gatehouse.Action) (*gatehouse.Grounds, error)
	// LevelNames maps the risk levels to their names in the active policy; levels without a name
	// are left out.
	LevelNames(ctx context.Context) (map[gatehouse.RiskLevel]string, error)
	// RejectReasons are the active policy's suggested reasons for a rejection.
	RejectReasons(ctx context.Context) ([]string, error)
}

func (c *Console) policyRoutes() []route {
	admins := []gatehouse.Role{gatehouse.RoleAdmin}
	return []route{
		{pattern: "GET /policies", handle: c.policiesPage},
		{pattern: "GET /policies/{version}", handle: c.policyPage},
		{pattern: "POST /policies/{version}/activate", roles: admins, changesRights: true, handle: c.activatePolicy},
		{pattern: "GET /policies/edit", roles: admins, handle: c.editPolicy},
		{pattern: "POST /policies/check", roles: admins, handle: c.checkPolicy},
		{pattern: "POST /policies/apply", roles: admins, changesRights: true, handle: c.applyPolicy},
		{pattern: "GET /policies/explain", handle: c.explainForm},
		{pattern: "POST /policies/explain", handle: c.explainPolicy},
	}
}

// policiesView lists the versions, with one of them in full.
type policiesView struct {
	versions []*gatehouse.PolicyVersion
	shown    *gatehouse.PolicyVersion
	check    *gatehouse.PolicyCheck
	// usage is how much of each of the active policy's ceilings is reserved.
	usage   []*gatehouse.CeilingAccount
	history policyHistory
	// warnings are the findings about a version that was just applied.
	warnings []gatehouse.PolicyFinding
	// failed says why the version was not made the active one.
	failed *gatehouse.Error
}

func (c *Console) policiesPage(v *view) error {
	active, err := c.cfg.Policies.ActivePolicy(v.ctx)
	if err != nil {
		return err
	}
	return c.showPolicy(v, http.StatusOK, &policiesView{shown: active})
}

func (c *Console) policyPage(v *view) error { return c.showVersion(v, http.StatusOK, &policiesView{}) }

// showVersion shows the version that the path names.
func (c *Console) showVersion(v *view, status int, p *policiesView) error {
	n, err := strconv.Atoi(v.r.PathValue("version"))
	if err != nil {
		return gatehouse.E(gatehouse.CodeNotFound, "there is no such version")
	}
	if p.shown, err = c.cfg.Policies.FindPolicy(v.ctx, n); err != nil {
		return err
	}
	return c.showPolicy(v, status, p)
}

func (c *Console) showPolicy(v *view, status int, p *policiesView) error {
	var err error
	if p.versions, err = c.cfg.Policies.ListPolicies(v.ctx); err != nil {
		return err
	}
	if p.usage, err = c.cfg.Policies.PolicyUsage(v.ctx); err != nil {
		return err
	}
	if p.check, err = c.cfg.PolicyChecker.CheckPolicy(v.ctx, p.shown.Source); err != nil {
		return err
	}
	if p.history, err = c.policyHistory(v); err != nil {
		return err
	}
	return v.render(status, "Policies", "/policies", policiesBody(v, p))
}

func (c *Console) activatePolicy(v *view) error {
	n, err := strconv.Atoi(v.r.PathValue("version"))
	if err != nil {
		return gatehouse.E(gatehouse.CodeNotFound, "there is no such version")
	}
	_, err = c.cfg.Policies.ActivatePolicy(v.ctx, n)
	p := &policiesView{}
	return v.changed("/policies", err, &p.failed, func(status int) error { return c.showVersion(v, status, p) })
}

// policyEdit is a policy text that is not a version yet.
type policyEdit struct {
	source, base string
	active       *gatehouse.PolicyVersion
	// check is nil until the text was checked; diff is then the difference to the active version.
	check   *gatehouse.PolicyCheck
	diff    card.Text
	outcome *gatehouse.Error
}

// changed reports whether another version became active since the text was copied from the active
// one.
func (e *policyEdit) changed() bool { return e.base != strconv.Itoa(e.active.Version) }

func (c *Console) editPolicy(v *view) error {
	active, err := c.cfg.Policies.ActivePolicy(v.ctx)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "Edit the policy", "/policies",
		policyEditor(v, &policyEdit{source: active.Source, base: strconv.Itoa(active.Version), active: active}))
}

// readEdit parses the form and checks its text.
func (c *Console) readEdit(v *view) (*policyEdit, error) {
	if err := v.parse(); err != nil {
		return nil, err
	}
	e := &policyEdit{source: v.form("source"), base: v.form("base")}
	var err error
	if e.active, err = c.cfg.Policies.ActivePolicy(v.ctx); err != nil {
		return nil, err
	}
	if e.check, err = c.cfg.PolicyChecker.CheckPolicy(v.ctx, e.source); err != nil {
		return nil, err
	}
	if strings.Count(e.source, "\n") < wholeWeight { // else the check reports that it is too long
		e.diff = card.CompareText(e.active.Source, e.source)
	}
	return e, nil
}

func (c *Console) checkPolicy(v *view) error {
	e, err := c.readEdit(v)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "Edit the policy", "/policies", policyEditor(v, e))
}

// applyPolicy makes the text the active version. Where the policy requires a proposal, applyPolicy proposes the
// text instead. The tests in the text must pass, and the version that the text was copied from must still be active.
func (c *Console) applyPolicy(v *view) error {
	e, err := c.readEdit(v)
	if err != nil {
		return err
	}
	switch {
	case !e.check.OK():
		e.outcome = gatehouse.E(gatehouse.CodeInvalid, "the policy has errors, or one of its tests fails")
	case e.changed():
		e.outcome = gatehouse.E(gatehouse.CodeInvalid,
			"version %d became active meanwhile: look at what your text would change now, then apply it again", e.active.Version)
		e.base = strconv.Itoa(e.active.Version)
	case e.diff.Added+e.diff.Removed == 0:
		e.outcome = gatehouse.E(gatehouse.CodeInvalid, "this is the active version already")
	}
	var applied *gatehouse.PolicyVersion
	if e.outcome == nil {
		applied, err = c.cfg.Policies.ApplyPolicy(v.ctx, e.source)
		if gatehouse.CodeOf(err) == gatehouse.CodePolicyGated {
			a, err := c.cfg.Policies.ProposePolicy(v.ctx, gatehouse.PolicyProposal{Source: e.source})
			if err == nil {
				return v.redirect(actionPath(a.ID))
			}
			e.outcome = asError(err)
		} else if err != nil {
			e.outcome = asError(err)
		}
	}
	if e.outcome != nil {
		if e.outcome.Code == gatehouse.CodeInternal {
			return e.outcome
		}
		return v.render(gatehouse.StatusOf(e.outcome.Code), "Edit the policy", "/policies", policyEditor(v, e))
	}
	if len(applied.Warnings) > 0 {
		return c.showPolicy(v, http.StatusOK, &policiesView{shown: applied, warnings: applied.Warnings})
	}
	return v.redirect("/policies")
}

// explainView is a proposal and how the active policy would judge it.
type explainView struct {
	proposal string
	answer   *gatehouse.Explanation
	outcome  *gatehouse.Error
}

// explainForm fills the form with a proposal: that of an action, together with its judgement, or a minimal example.
func (c *Console) explainForm(v *view) error {
	p := gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update",
		Target:         gatehouse.Target{EntityType: "item", EntityRef: "SKU-1042"},
		ProposedChange: gatehouse.JSON(`{"price":"12.50"}`),
	}
	e := &explainView{}
	if id := v.query("action"); id != "" {
		a, err := c.cfg.Actions.FindAction(v.ctx, id)
		if err != nil {
			return err
		}
		p = a.Proposal
		p.RiskLevel, p.IdempotencyKey = a.ClaimedRisk, ""
		if e.answer, err = c.cfg.Policies.ExplainPolicy(v.ctx, &p); err != nil {
			if e.outcome = asError(err); e.outcome.Code == gatehouse.CodeInternal {
				return err
			}
		}
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	e.proposal = string(text)
	return v.render(http.StatusOK, "Explain", "/policies", explainBody(v, e))
}

func (c *Console) explainPolicy(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	e := &explainView{proposal: v.form("proposal")}
	p, err := readProposal(e.proposal)
	if err == nil {
		e.answer, err = c.cfg.Policies.ExplainPolicy(v.ctx, p)
	}
	if err != nil {
		e.outcome = asError(err)
		if e.outcome.Code == gatehouse.CodeInternal {
			return err
		}
		return v.render(gatehouse.StatusOf(e.outcome.Code), "Explain", "/policies", explainBody(v, e))
	}
	return v.render(http.StatusOK, "Explain", "/policies", explainBody(v, e))
}

// readProposal reads a proposal as strictly as the API does.
func readProposal(text string) (*gatehouse.Proposal, error) {
	canonical, err := gatehouse.Canonicalize([]byte(text))
	if err != nil {
		return nil, gatehouse.E(gatehouse.CodeMalformed, "the proposal is not JSON: %v", err)
	}
	var p gatehouse.Proposal
	d := json.NewDecoder(bytes.NewReader([]byte(canonical)))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, gatehouse.E(gatehouse.CodeMalformed, "this is not a proposal: %v", err)
	}
	return &p, p.Validate()
}

// policyPath is a version's page.
func policyPath(version int) string { return "/policies/" + url.PathEscape(strconv.Itoa(version)) }

func failedTests(c *gatehouse.PolicyCheck) (n int) {
	for _, t := range c.Tests {
		if len(t.Differences) > 0 {
			n++
		}
	}
	return n
}

// outcomeWords explains a judgement's outcome.
func outcomeWords(o gatehouse.Outcome) string {
	switch o {
	case gatehouse.OutcomeAllow:
		return "Allowed: nobody would be asked"
	case gatehouse.OutcomeDeny:
		return "Denied: nobody could approve it"
	}
	return "People would be asked"
}

func whoMayAnswer(x *gatehouse.Explanation) string {
	return cmp.Or(audienceWords(gatehouse.Audience{Roles: x.Roles, People: x.People, Groups: x.Groups}),
		"any approver but the proposer")
}

// lineLink leads to a line of the shown text. In the editor, the script moves to the line instead.
func lineLink(line int) string { return "#L" + strconv.Itoa(line) }

// thenText says what a rule decides.
func thenText(r gatehouse.PolicyRule) string {
	text := "ask people"
	switch r.Then {
	case gatehouse.OutcomeAllow:
		text = "allow"
	case gatehouse.OutcomeDeny:
		text = "deny"
	}
	if r.Risk > 0 {
		text += ", as " + r.Risk.String() + " or higher"
	}
	switch {
	case r.Hold == nil:
	case *r.Hold == 0:
		text += ", not held"
	default:
		text += ", held for " + r.Hold.String()
	}
	return text
}

// ruleAsks says whom a rule asks. What the rule leaves out follows from the risk level.
func ruleAsks(r gatehouse.PolicyRule) string {
	if r.Then != gatehouse.OutcomeNeedsApproval {
		return "–"
	}
	text := asksText(r.PolicyAsk)
	if r.Expiry > 0 {
		text += ", open for " + r.Expiry.String()
	}
	return text
}

// asksText says how many people are asked, and whom.
func asksText(a gatehouse.PolicyAsk) string {
	text := "as its level requires"
	if a.Required > 0 {
		text = plural(a.Required, "person", "people")
	}
	if len(a.Who) > 0 {
		text += ": " + strings.Join(a.Who, ", ")
	}
	if a.Stages > 0 {
		text += ", in " + plural(a.Stages, "stage", "stages")
	}
	return text
}
