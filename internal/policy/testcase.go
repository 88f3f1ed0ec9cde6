package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// testCase is one of the tests that stand in a policy file.
type testCase struct {
	name   string
	line   int
	facts  Facts
	expect expectation
}

// expectation is what a test says of the verdict; what it leaves out can be anything.
type expectation struct {
	outcome  gatehouse.Outcome
	risk     gatehouse.RiskLevel
	rules    *[]string
	required int
	roles    *[]string
	people   *[]string
	expiry   time.Duration
	hold     *time.Duration
	reason   string
	ceilings map[string]gatehouse.Decimal // by name; nil: anything
}

// TestResult tells how one test of a policy file came out.
type TestResult struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	// Differences says what is not as expected; a test without any passed.
	Differences []string          `json:"differences,omitempty"`
	Verdict     gatehouse.Verdict `json:"-"`
}

// Passed reports whether the verdict was as expected.
func (r TestResult) Passed() bool { return len(r.Differences) == 0 }

// Test runs the tests of the file, in its order.
func (p *Policy) Test() []TestResult {
	results := make([]TestResult, 0, len(p.tests))
	for _, t := range p.tests {
		v := p.Evaluate(t.facts)
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
				c.Amount = want // 25.0 is 25.00
			}
			got[c.Ceiling] = c.Amount
		}
		differ("ceilings", e.ceilings, got)
	}
	return out
}

// test reads a test. Of the action only its type is needed; the rest stands
// for an agent's update of one item.
func (p *parser) test(n *yaml.Node) {
	f := p.mapping(n, "a test", "name", "action", "proposer", "tenant", "floor", "expect")
	if f.node == nil {
		return
	}
	p.need(f, "a test", "name", "action", "expect")
	t := testCase{name: p.text(f.values["name"], "name"), line: n.Line}
	t.facts = Facts{
		Tenant:   gatehouse.DefaultTenant,
		Proposer: &gatehouse.Principal{ID: "prn_test", Name: "test-agent", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer}},
		Floor:    p.level(f.values["floor"], "floor"),
	}
	if tenant := f.values["tenant"]; tenant != nil {
		t.facts.Tenant = p.name(tenant, "tenant")
	}
	if action := f.values["action"]; action != nil {
		t.facts.Proposal = p.proposal(action)
	}
	if who := f.values["proposer"]; who != nil {
		p.proposer(who, t.facts.Proposer)
	}
	t.facts.Proposer.Tenant = t.facts.Tenant
	if expect := f.values["expect"]; expect != nil {
		t.expect = p.expect(expect)
	}
	p.policy.tests = append(p.policy.tests, t)
}

func (p *parser) proposal(n *yaml.Node) *gatehouse.Proposal {
	f := p.mapping(n, "an action")
	if f.node == nil {
		return nil
	}
	if f.values["action_type"] == nil {
		p.fail(n, "an action needs action_type")
		return nil
	}
	before := len(p.problems)
	text := p.json(n)
	if len(p.problems) > before {
		return nil
	}
	if err := gatehouse.CheckJSON([]byte(text)); err != nil {
		p.fail(n, "action: %v", err)
		return nil
	}
	out := &gatehouse.Proposal{
		Connector: "shop", Operation: "update", ProposedChange: emptyObject,
		Target: gatehouse.Target{EntityType: "item"},
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(out); err != nil {
		p.fail(n, "action: %s", strings.TrimPrefix(err.Error(), "json: "))
		return nil
	}
	if out.Target.EntityRef == "" && out.Target.EntityRefs == nil {
		out.Target.EntityRef = "1"
	}
	if err := out.Validate(); err != nil {
		p.fail(n, "action: %v", err)
		return nil
	}
	return out
}

func (p *parser) proposer(n *yaml.Node, who *gatehouse.Principal) {
	f := p.mapping(n, "a proposer", "id", "name", "kind", "roles", "sponsor")
	if v := f.values["id"]; v != nil {
		who.ID = p.text(v, "id")
	}
	if v := f.values["name"]; v != nil {
		who.Name = p.text(v, "name")
	}
	if v := f.values["kind"]; v != nil {
		who.Kind = gatehouse.Kind(p.text(v, "kind"))
	}
	if v := f.values["roles"]; v != nil {
		who.Roles = nil
		for _, role := range p.texts(v, "roles") {
			who.Roles = append(who.Roles, gatehouse.Role(role))
		}
	}
	who.Sponsor = p.text(f.values["sponsor"], "sponsor")
	before := len(p.problems)
	if err := who.Validate(); err != nil && before == len(p.problems) && f.node != nil {
		p.fail(n, "proposer: %v", err)
	}
}

func (p *parser) expect(n *yaml.Node) expectation {
	f := p.mapping(n, "expect", "outcome", "risk", "rules", "required", "roles", "people", "expiry", "hold", "reason", "ceilings")
	if f.node == nil {
		return expectation{}
	}
	p.need(f, "expect", "outcome")
	e := expectation{
		outcome:  gatehouse.Outcome(p.text(f.values["outcome"], "outcome")),
		risk:     p.level(f.values["risk"], "risk"),
		rules:    p.set(f.values["rules"], "rules"),
		required: p.whole(f.values["required"], "required", maxQuorum),
		roles:    p.set(f.values["roles"], "roles"),
		people:   p.set(f.values["people"], "people"),
		expiry:   p.duration(f.values["expiry"], "expiry", 0, maxExpiry).D(),
		reason:   p.text(f.values["reason"], "reason"),
	}
	switch e.outcome {
	case gatehouse.OutcomeAllow, gatehouse.OutcomeDeny, gatehouse.OutcomeNeedsApproval, "":
	default:
		p.fail(f.values["outcome"], "outcome must be allow, deny or needs_approval")
	}
	if h := f.values["hold"]; h != nil {
		hold := p.duration(h, "hold", 0, maxHold).D()
		e.hold = &hold
	}
	if c := f.values["ceilings"]; c != nil {
		claims := p.mapping(c, "ceilings")
		e.ceilings = make(map[string]gatehouse.Decimal, len(claims.keys))
		for _, key := range claims.keys {
			e.ceilings[key.Value] = p.amount(claims.values[key.Value], "an amount")
		}
	}
	return e
}

// set reads a list of which the order does not count; nil when there is none.
func (p *parser) set(n *yaml.Node, what string) *[]string {
	if n == nil {
		return nil
	}
	list := p.texts(n, what)
	if list == nil {
		list = []string{}
	}
	slices.Sort(list)
	return &list
}
