package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// testCase is one test in a policy file.
type testCase struct {
	name   string
	line   int
	facts  Facts
	expect expectation
}

// expectation is the verdict that a test expects; absent values match anything.
type expectation struct {
	outcome  gatehouse.Outcome
	risk     gatehouse.RiskLevel
	rules    *[]string
	required int
	roles    *[]string
	people   *[]string
	groups   *[]string
	expiry   time.Duration
	hold     *time.Duration
	reason   string
	ceilings map[string]gatehouse.Decimal // by name; nil matches anything
}

// TestResult is the result of one test in a policy file.
type TestResult struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	// Differences lists the deviations from the expectation; a test without any
	// passed.
	Differences []string          `json:"differences,omitempty"`
	Verdict     gatehouse.Verdict `json:"-"`
}

// Passed reports whether the verdict was as expected.
func (r TestResult) Passed() bool { return len(r.Differences) == 0 }

// Test runs the tests of the file, in its order, each within the cost limit of one
// judgement.
func (p *Policy) Test() []TestResult {
	results := make([]TestResult, 0, len(p.tests))
	for _, t := range p.tests {
		v := p.Evaluate(context.Background(), t.facts)
		results = append(results, TestResult{t.name, t.line, t.expect.differences(v), v})
	}
	return results
}

func (e *expectation) differences(v gatehouse.Verdict) []string {
	var out []string
	differ := func(what string, want, got any) {
		if w, g := fmt.Sprint(want), fmt.Sprint(got); w != g {
			out = append(out, fmt.Sprintf("%s: expected %s, got %s", what, w, g))
		}
	}
	if differ("outcome", e.outcome, v.Outcome); len(out) > 0 {
		out[0] += " (" + strings.Join(v.Reasons, "; ") + ")"
	}

	if e.risk != 0 {
		differ("risk", int(e.risk), int(v.RiskLevel))
	}
	if e.rules != nil {
		differ("rules", *e.rules, v.Rules)
	}
	if e.required != 0 {
		differ("required", e.required, v.Required)
	}
	if e.roles != nil {
		differ("roles", *e.roles, v.Roles)
	}
	if e.people != nil {
		differ("people", *e.people, v.People)
	}
	if e.groups != nil {
		differ("groups", *e.groups, v.Groups)
	}
	if e.expiry != 0 {
		differ("expiry", gatehouse.Duration(e.expiry), gatehouse.Duration(v.Expiry))
	}
	if e.hold != nil {
		got := "none"
		if v.Hold != nil {
			got = gatehouse.Duration(*v.Hold).String()
		}
		differ("hold", gatehouse.Duration(*e.hold), got)
	}
	if e.reason != "" && !slices.ContainsFunc(v.Reasons, func(s string) bool { return strings.Contains(s, e.reason) }) {
		differ("reason", e.reason, strings.Join(v.Reasons, "; "))
	}

	if e.ceilings != nil {
		got := make(map[string]gatehouse.Decimal)
		for _, c := range v.Ceilings {
			if want, ok := e.ceilings[c.Ceiling]; ok && want.Cmp(c.Amount) == 0 {
				c.Amount = want // 25.0 equals 25.00
			}
			got[c.Ceiling] = c.Amount
		}
		differ("ceilings", e.ceilings, got)
	}
	return out
}

// test reads a test. Of the action only the type is required; the defaults describe
// an agent's update of one item.
func (p *parser) test(n *yaml.Node) {
	f := p.Mapping(n, "a test", "name", "action", "at", "reversal", "proposer", "tenant", "floor", "amounts", "expect")
	if f.Node == nil {
		return
	}
	p.need(f, "a test", "name", "action", "expect")
	t := testCase{name: p.Text(f.Values["name"], "name"), line: n.Line}
	t.facts = Facts{
		Tenant: gatehouse.DefaultTenant,
		Proposer: &gatehouse.Principal{ID: "prn_test", Name: "test-agent", Kind: gatehouse.KindAgent,
			Roles: []gatehouse.Role{gatehouse.RoleProposer}},
		Floor: p.level(f.Values["floor"], "floor"),
	}

	if at := f.Values["at"]; at != nil {
		when, err := time.Parse(time.RFC3339, at.Value)
		if at.Kind != yaml.ScalarNode || err != nil {
			p.Fail(at, "at is a time with its offset, like 2026-12-24T18:30:00+01:00")
		}
		t.facts.ProposedAt = when
	}
	if undo := f.Values["reversal"]; undo != nil {
		if undo.Kind != yaml.ScalarNode || undo.Style != 0 || undo.Value != "true" && undo.Value != "false" {
			p.Fail(undo, "reversal must be true or false")
		}
		t.facts.Reversal = undo.Value == "true"
	}
	if tenant := f.Values["tenant"]; tenant != nil {
		t.facts.Tenant = p.Name(tenant, "tenant")
	}

	if action := f.Values["action"]; action != nil {
		t.facts.Proposal = p.proposal(action)
	}
	if amounts := f.Values["amounts"]; amounts != nil {
		t.facts.Declared = &gatehouse.Declared{Amounts: p.amounts(amounts)}
	}
	if who := f.Values["proposer"]; who != nil {
		p.proposer(who, t.facts.Proposer)
	}
	t.facts.Proposer.Tenant = t.facts.Tenant
	if expect := f.Values["expect"]; expect != nil {
		t.expect = p.expect(expect)
	}
	p.policy.tests = append(p.policy.tests, t)
}

// amounts reads the amounts that a connector would declare.
func (p *parser) amounts(n *yaml.Node) (list []gatehouse.AmountField) {
	before := len(p.Problems)
	text := p.JSON(n)
	if len(p.Problems) > before {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		p.Fail(n, "amounts: %s", strings.TrimPrefix(err.Error(), "json: "))
	} else if err := gatehouse.CheckAmountFields(list); err != nil {
		p.Fail(n, "amounts: %v", err)
	}
	return list
}

func (p *parser) proposal(n *yaml.Node) *gatehouse.Proposal {
	f := p.Mapping(n, "an action")
	if f.Node == nil {
		return nil
	}
	if f.Values["action_type"] == nil {
		p.Fail(n, "an action needs action_type")
		return nil
	}
	before := len(p.Problems)
	text := p.JSON(n)
	if len(p.Problems) > before {
		return nil
	}
	if err := gatehouse.CheckJSON([]byte(text)); err != nil {
		p.Fail(n, "action: %v", err)
		return nil
	}
	out := &gatehouse.Proposal{
		Connector: "shop", Operation: "update", ProposedChange: emptyObject,
		Target: gatehouse.Target{EntityType: "item"},
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(out); err != nil {
		p.Fail(n, "action: %s", strings.TrimPrefix(err.Error(), "json: "))
		return nil
	}
	if out.Target.EntityRef == "" && out.Target.EntityRefs == nil {
		out.Target.EntityRef = "1"
	}
	if err := out.Validate(); err != nil {
		p.Fail(n, "action: %v", err)
		return nil
	}
	return out
}

func (p *parser) proposer(n *yaml.Node, who *gatehouse.Principal) {
	before := len(p.Problems)
	f := p.Mapping(n, "a proposer", "id", "name", "kind", "roles", "sponsor")
	if v := f.Values["id"]; v != nil {
		who.ID = p.Text(v, "id")
	}
	if v := f.Values["name"]; v != nil {
		who.Name = p.Text(v, "name")
	}
	if v := f.Values["kind"]; v != nil {
		who.Kind = gatehouse.Kind(p.Text(v, "kind"))
	}
	if v := f.Values["roles"]; v != nil {
		who.Roles = nil
		for _, role := range p.Texts(v, "roles") {
			who.Roles = append(who.Roles, gatehouse.Role(role))
		}
	}
	who.Sponsor = p.Text(f.Values["sponsor"], "sponsor")
	if err := who.Validate(); err != nil && before == len(p.Problems) && f.Node != nil {
		p.Fail(n, "proposer: %v", err)
	}
}

func (p *parser) expect(n *yaml.Node) expectation {
	f := p.Mapping(n, "expect", "outcome", "risk", "rules", "required", "roles", "people", "groups", "expiry", "hold",
		"reason", "ceilings")
	if f.Node == nil {
		return expectation{}
	}
	p.need(f, "expect", "outcome")
	e := expectation{
		outcome:  gatehouse.Outcome(p.Text(f.Values["outcome"], "outcome")),
		risk:     p.level(f.Values["risk"], "risk"),
		rules:    p.set(f.Values["rules"], "rules"),
		required: p.Whole(f.Values["required"], "required", maxQuorum),
		roles:    p.set(f.Values["roles"], "roles"),
		people:   p.set(f.Values["people"], "people"),
		groups:   p.set(f.Values["groups"], "groups"),
		expiry:   p.Duration(f.Values["expiry"], "expiry", 0, maxExpiry).D(),
		reason:   p.Text(f.Values["reason"], "reason"),
	}
	switch e.outcome {
	case gatehouse.OutcomeAllow, gatehouse.OutcomeDeny, gatehouse.OutcomeNeedsApproval, "":
	default:
		p.Fail(f.Values["outcome"], "outcome must be allow, deny or needs_approval")
	}
	if h := f.Values["hold"]; h != nil {
		hold := p.Duration(h, "hold", 0, maxHold).D()
		e.hold = &hold
	}
	if c := f.Values["ceilings"]; c != nil {
		claims := p.Mapping(c, "ceilings")
		e.ceilings = make(map[string]gatehouse.Decimal, len(claims.Keys))
		for _, key := range claims.Keys {
			e.ceilings[key.Value] = p.Amount(claims.Values[key.Value], "an amount")
		}
	}
	return e
}

// set reads a list whose order does not count; nil when there is none.
func (p *parser) set(n *yaml.Node, what string) *[]string {
	if n == nil {
		return nil
	}
	list := p.Texts(n, what)
	if list == nil {
		list = []string{}
	}
	slices.Sort(list)
	return &list
}
