package policy_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// rulesFor makes a policy of rules in flow style.
func rulesFor(rules ...string) string {
	return "version: 1\nrisk: {note: 1, field: 2, price: 3, create: 4, wipe: 5}\nrules:\n  - " +
		strings.Join(rules, "\n  - ") + "\n"
}

const (
	ruleAllow = "{id: yes, when: true, then: allow}"
	ruleAsk   = "{id: ask, when: true, then: needs_approval}"
	ruleDeny  = "{id: no, when: true, then: deny}"
	ruleNever = "{id: never, when: false, then: deny}"
)

// TestOutcome covers the precedence of outcomes, and that only a matching allow
// rule on L1 or L2 ever allows.
func TestOutcome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		source  string
		action  string
		outcome gatehouse.Outcome
		rules   []string
		reason  string
	}{
		{"allow", rulesFor(ruleAllow), "note", "allow", []string{"yes"}, "rule yes allows it"},
		{"needs_approval beats allow", rulesFor(ruleAllow, ruleAsk), "note", "needs_approval", []string{"ask"},
			"rule ask asks for approval"},
		{"deny beats needs_approval", rulesFor(ruleAsk, ruleDeny), "note", "deny", []string{"no"}, "rule no denies it"},
		{"deny beats allow", rulesFor(ruleAllow, ruleDeny), "note", "deny", []string{"no"}, ""},
		{"order does not count", rulesFor(ruleDeny, ruleAsk, ruleAllow), "note", "deny", []string{"no"}, ""},
		{"no rule matched", rulesFor(ruleNever), "note", "needs_approval", []string{},
			"No rule matched. A note (L1) needs approval."},
		{"no rules", "version: 1\n", "note", "needs_approval", []string{},
			"No rule matched. A medium write (L3) needs approval."},
		{"a named level", "version: 1\nlevels: {3: Costly}\n", "note", "needs_approval", []string{},
			"No rule matched. Level L3 (Costly) needs approval."},
		{"L2 can be allowed", rulesFor(ruleAllow), "field", "allow", []string{"yes"}, ""},
		{"L3 never", rulesFor(ruleAllow), "price", "needs_approval", []string{},
			"L3 is never allowed without a person, though rule yes allows it"},
		{"L4 never", rulesFor(ruleAllow), "create", "needs_approval", []string{}, "L4 is never allowed"},
		{"L5 never", rulesFor(ruleAllow), "wipe", "needs_approval", []string{}, "L5 is never allowed"},
		{"unlisted never", rulesFor(ruleAllow), "something_else", "needs_approval", []string{}, "L3 is never allowed"},
		{"an allow that raises to L3", rulesFor("{id: yes, when: true, then: allow, risk: 3}"), "note", "needs_approval",
			[]string{}, "L3 is never allowed"},
		{"a rule's own words", rulesFor("{id: no, when: true, then: deny, reason: not on Sundays}"), "note", "deny",
			[]string{"no"}, "not on Sundays"},
		{"all deciding rules are named", rulesFor("{id: b, when: true, then: deny}", "{id: a, when: true, then: deny}"),
			"note", "deny", []string{"a", "b"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := mustParse(t, c.source).Evaluate(context.Background(), facts(c.action, `{}`))
			if v.Outcome != c.outcome {
				t.Errorf("outcome: expected %s, got %s (%v)", c.outcome, v.Outcome, v.Reasons)
			}
			if d := cmp.Diff(c.rules, v.Rules); d != "" {
				t.Errorf("rules: %s", d)
			}
			if len(v.Reasons) == 0 || !strings.Contains(v.Reasons[0], c.reason) {
				t.Errorf("expected the reason %q, got %q", c.reason, v.Reasons)
			}
		})
	}
}

// TestEvaluationError covers conditions that cannot be evaluated: they never allow,
// and a failing deny rule denies.
func TestEvaluationError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, when, reason string }{
		{"missing member", "change.nope > 1", "no such key: nope"},
		{"missing fact", "magnitude.amount > 1", "the proposal does not give magnitude.amount"},
		{"missing target version", `target.version != ""`, "the proposal does not give target.version"},
		{"string beside a number", "change.text > 1", "cannot compare string and int"},
		{"string equal to a number", "change.text == 1", "cannot compare"},
		{"not a number", "dec(change.text) > 1", "is not a decimal number"},
		{"null is not a number", "dec(change.nothing) > 1", "null is not a number"},
		{"not a truth value", "change.text", "not a truth value"},
		{"truth of a number", "change.price ? true : true", "no such overload"},
		{"absorbed by or", "change.nope > 1 || true", "no such key: nope"},
		{"absorbed by and", "change.nope > 1 && false", "no such key: nope"},
		{"absorbed deep in", "!((change.nope > 1 && false) || false)", "no such key: nope"},
		{"absorbed by exists", "change.list.exists(x, x > 2)", "cannot compare"},
		{"absorbed by all", "!change.list.all(x, x < 2)", "cannot compare"},
		{"absorbed by in", "3 in change.list", "cannot compare"},
		{"absorbed by has", "!has(change.text.inner)", "has no fields"},
		{"division by zero", "1 / (risk - risk) == 1", "division by zero"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := facts("note", `{"text":"a","nothing":null,"price":1,"list":[1,"x",3]}`)
			for then, want := range map[string]gatehouse.Outcome{
				"allow": "needs_approval", "needs_approval": "needs_approval", "deny": "deny",
			} {
				p := mustParse(t,
					rulesFor(fmt.Sprintf("{id: broken, when: '%s', then: %s}", c.when, then), "{id: fine, when: true, then: allow}"))
				v, trace := p.Explain(context.Background(), f)
				if v.Outcome != want || len(v.Rules) != 1 || v.Rules[0] != "broken" {
					t.Fatalf("then %s: expected %s by broken, got %s by %v (%v)", then, want, v.Outcome, v.Rules, v.Reasons)
				}
				if !strings.HasPrefix(v.Reasons[0], "rule broken cannot be evaluated: ") ||
					!strings.Contains(v.Reasons[0], c.reason) {
					t.Errorf("then %s: expected a reason with %q, got %q", then, c.reason, v.Reasons[0])
				}
				if trace[0].Rule != "broken" || trace[0].Matched || !strings.HasPrefix(trace[0].Detail, "error: ") {
					t.Errorf("then %s: the trace hides the error: %+v", then, trace)
				}
			}
		})
	}
}

// TestCost shows that an expression is cut off, whatever consumes its budget.
func TestCost(t *testing.T) {
	t.Parallel()
	ones := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]" }
	f := facts("note", `{"list":`+ones(200)+`,"long":`+ones(10_000)+`,"text":"`+strings.Repeat("a", 100_000)+`"}`)
	for name, when := range map[string]string{
		"to walk":    "change.list.all(a, change.list.all(b, change.list.all(c, a + b + c > 0)))",
		"to compare": "change.list.all(a, change.long == change.long)",
		"to measure": "change.list.all(a, change.text.size() > 0)",
	} {
		v := mustParse(t, rulesFor(fmt.Sprintf("{id: r, when: '%s', then: allow}",
			when))).Evaluate(context.Background(), f)
		if v.Outcome != gatehouse.OutcomeNeedsApproval || !strings.Contains(v.Reasons[0], "cost limit exceeded") {
			t.Errorf("too costly %s: got %s (%v)", name, v.Outcome, v.Reasons)
		}
	}
}

// TestGuard shows that a test for presence prevents an error.
func TestGuard(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]bool{
		"has(change.nope) && change.nope > 1":                       false,
		"!has(change.nope) || change.nope > 1":                      true,
		"has(change.nope) ? change.nope > 1 : true":                 true,
		"has(change.price) && change.price > 1":                     true,
		"has(magnitude.amount) && magnitude.amount > 1":             false,
		"has(target.ref)":                                           true,
		"has(target.version) || has(action.idempotency_key)":        false,
		"has(proposer.sponsor) && proposer.sponsor == 'prn_ana'":    true,
		"has(action.risk_claimed)":                                  false,
		"change.lines.exists(l, has(l.note) && l.note == 'x')":      true,
		"size(evaluations) > 0 && evaluations.all(e, e.name != '')": false,
	} {
		p := mustParse(t, rulesFor(fmt.Sprintf(`{id: r, when: "%s", then: allow}`, when)))
		v := p.Evaluate(context.Background(), facts("note", `{"price":2,"lines":[{"qty":1},{"note":"x"}]}`))
		if got := v.Outcome == gatehouse.OutcomeAllow; got != want || strings.Contains(v.Reasons[0], "cannot be evaluated") {
			t.Errorf("%s: expected %t, got %s (%v)", when, want, v.Outcome, v.Reasons)
		}
	}
}

// TestRisk covers max(policy, floor, claim, rules), and the prefixes.
func TestRisk(t *testing.T) {
	t.Parallel()
	p := mustParse(t, rulesFor(
		"{id: big, when: 'action.type == \"note\" && has(change.big)', then: needs_approval, risk: 4}",
		"{id: sees, when: 'risk == 4', then: needs_approval}")+"")
	floor := func(l gatehouse.RiskLevel) func(*policy.Facts) { return func(f *policy.Facts) { f.Floor = l } }
	claim := func(l gatehouse.RiskLevel) func(*policy.Facts) {
		return func(f *policy.Facts) { f.Proposal.RiskLevel = l }
	}
	for _, c := range []struct {
		facts policy.Facts
		want  gatehouse.RiskLevel
	}{
		{facts("note", `{}`), 1},
		{facts("unlisted", `{}`), 3},
		{facts("ns_unlisted", `{}`), 3},
		{facts("ns_note", `{}`), 1},
		{facts("propose_create", `{}`), 4},
		{facts("workflow_wipe", `{}`), 5},
		{facts("workflow_propose_create", `{}`), 4},
		{facts("ns_", `{}`), 3},
		{facts("notens_", `{}`), 3},
		{facts("note", `{}`, floor(2)), 2},
		{facts("note", `{}`, claim(5)), 5},
		{facts("wipe", `{}`, claim(1), floor(1)), 5},
		{facts("note", `{"big":1}`), 4},
		{facts("note", `{}`, claim(9)), 5},
	} {
		if v := p.Evaluate(context.Background(), c.facts); v.RiskLevel != c.want {
			t.Errorf("%s: expected %s, got %s", c.facts.Proposal.ActionType, c.want, v.RiskLevel)
		}
	}
	if v := p.Evaluate(context.Background(), facts("create", `{}`)); len(v.Rules) != 1 || v.Rules[0] != "sees" {
		t.Errorf("a rule does not see the level of the table: %v", v.Rules)
	}
}

// TestQuestion covers how rules and levels combine into a question.
func TestQuestion(t *testing.T) {
	t.Parallel()
	const levels = "approvals:\n  3: {required: 2, roles: [approver], expiry: 12h, hold: 30s}\n  4: {people: [ana, " +
		"ben], expiry: 6h}\n"
	hold := func(d time.Duration) *time.Duration { return &d }
	approver := []gatehouse.Role{gatehouse.RoleApprover}
	for _, c := range []struct {
		name   string
		rules  []string
		action string
		want   gatehouse.Verdict
	}{
		{"the level's own", nil, "price",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 12 * time.Hour, Hold: hold(30 * time.Second)}},
		{"the standard", nil, "wipe", gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 24 * time.Hour}},
		{"people of the level", nil, "create",
			gatehouse.Verdict{Required: 1, People: []string{"ana", "ben"}, Expiry: 6 * time.Hour}},
		{"a rule replaces",
			[]string{"{id: a, when: true, then: needs_approval, required: 1, people: [cy], expiry: 48h, hold: 0s}"}, "price",
			gatehouse.Verdict{Required: 1, People: []string{"cy"}, Expiry: 48 * time.Hour, Hold: hold(0)}},
		{"the stricter of two", []string{
			"{id: a, when: true, then: needs_approval, required: 1, people: [cy, dee, eve], expiry: 48h, hold: 5s}",
			"{id: b, when: true, then: needs_approval, required: 2, people: [dee, eve, fay], expiry: 1h, hold: 1m}"}, "price",
			gatehouse.Verdict{Required: 2, People: []string{"dee", "eve"}, Expiry: time.Hour, Hold: hold(time.Minute)}},
		{"a rule without values has those of the level", []string{
			"{id: a, when: true, then: needs_approval, required: 1, expiry: 48h}", "{id: b, when: true, then: needs_approval}"},
			"price",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 12 * time.Hour, Hold: hold(30 * time.Second)}},
		{"L5 needs two whatever a rule says", []string{"{id: a, when: true, then: needs_approval, required: 1}"}, "wipe",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 24 * time.Hour}},
		{"an allow's hold stays when a person is asked", []string{"{id: a, when: true, then: allow, hold: 2m}"}, "wipe",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 24 * time.Hour, Hold: hold(2 * time.Minute),
				HoldAtLeast: true}},
		{"roles that narrow", []string{
			"{id: a, when: true, then: needs_approval, roles: [operator]}",
			"{id: b, when: true, then: needs_approval, roles: [admin]}"}, "wipe",
			gatehouse.Verdict{Required: 2, Roles: []gatehouse.Role{gatehouse.RoleAdmin}, Expiry: 24 * time.Hour}},
		{"named people are among the approvers", []string{
			"{id: a, when: true, then: needs_approval, roles: [approver]}",
			"{id: b, when: true, then: needs_approval, people: [ana, ben]}"}, "wipe",
			gatehouse.Verdict{Required: 2, People: []string{"ana", "ben"}, Expiry: 24 * time.Hour}},
		{"the approvers include the named people", []string{
			"{id: a, when: true, then: needs_approval, people: [ana, ben]}",
			"{id: b, when: true, then: needs_approval, roles: [approver, operator]}"}, "wipe",
			gatehouse.Verdict{Required: 2, People: []string{"ana", "ben"}, Expiry: 24 * time.Hour}},
		{"a broken rule tightens", []string{"{id: a, when: 'change.nope', then: needs_approval, required: 1, expiry: 48h}"},
			"price",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 12 * time.Hour, Hold: hold(30 * time.Second)}},
		{"a broken rule does not replace the level's people", []string{
			"{id: a, when: 'change.nope', then: needs_approval, people: [ana, cy]}"}, "create",
			gatehouse.Verdict{Required: 1, People: []string{"ana"}, Expiry: 6 * time.Hour}},
		{"a broken rule narrows the level's people", []string{
			"{id: a, when: 'change.nope', then: needs_approval, people: [cy, dee]}"}, "price",
			gatehouse.Verdict{Required: 2, People: []string{"cy", "dee"}, Expiry: 12 * time.Hour,
				Hold: hold(30 * time.Second)}},
		{"a broken rule does not shorten the hold", []string{
			"{id: a, when: 'change.nope', then: needs_approval, hold: 0s}"}, "price",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 12 * time.Hour, Hold: hold(30 * time.Second)}},
		{"a broken rule lengthens the hold", []string{
			"{id: a, when: 'change.nope', then: needs_approval, hold: 1m}"}, "price",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 12 * time.Hour, Hold: hold(time.Minute)}},
		{"a broken rule's hold without one at the level", []string{
			"{id: a, when: 'change.nope', then: needs_approval, hold: 1m}"}, "wipe",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 24 * time.Hour, Hold: hold(time.Minute),
				HoldAtLeast: true}},
		{"a broken allow does not shorten the hold", []string{"{id: a, when: 'change.nope', then: allow, hold: 0s}"},
			"price",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 12 * time.Hour, Hold: hold(30 * time.Second)}},
		{"an allow does not shorten the hold of a level that asks", []string{
			"{id: a, when: true, then: allow, hold: 0s}"}, "price",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 12 * time.Hour, Hold: hold(30 * time.Second)}},
		{"an allow does not shorten the hold beside a rule that asks", []string{
			"{id: a, when: true, then: allow, hold: 0s}", "{id: b, when: true, then: needs_approval}"}, "price",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 12 * time.Hour, Hold: hold(30 * time.Second)}},
		{"a rule without a hold speaks for the level", []string{
			"{id: a, when: true, then: needs_approval, hold: 0s}", "{id: b, when: true, then: needs_approval}"}, "price",
			gatehouse.Verdict{Required: 2, Roles: approver, Expiry: 12 * time.Hour, Hold: hold(30 * time.Second)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			source := rulesFor(c.rules...)
			if c.rules == nil {
				source = rulesFor(ruleNever)
			}
			v := mustParse(t, source+levels).Evaluate(context.Background(), facts(c.action, `{}`))
			got := gatehouse.Verdict{Required: v.Required, Roles: v.Roles, People: v.People, Expiry: v.Expiry, Hold: v.Hold,
				HoldAtLeast: v.HoldAtLeast}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if v.Outcome != gatehouse.OutcomeNeedsApproval {
				t.Errorf("expected needs_approval, got %s", v.Outcome)
			}
		})
	}
}

// TestNobodyLeft covers rules that leave nobody, or too few, to answer.
func TestNobodyLeft(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"nobody in common": rulesFor("{id: a, when: true, then: needs_approval, people: [ana]}",
			"{id: b, when: true, then: needs_approval, people: [ben]}"),
		"person and role": rulesFor("{id: a, when: true, then: needs_approval, people: [ana]}",
			"{id: b, when: true, then: needs_approval, roles: [operator]}"),
		"too few for L5": rulesFor("{id: a, when: true, then: needs_approval, people: [ana]}"),
	} {
		v := mustParse(t, source).Evaluate(context.Background(), facts("wipe", `{}`))
		if v.Outcome != gatehouse.OutcomeDeny || len(v.Reasons) != 1 {
			t.Errorf("%s: expected deny, got %s (%v)", name, v.Outcome, v.Reasons)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	p := mustParse(t,
		rulesFor("{id: z, when: true, then: needs_approval}", "{id: a, when: 'change.price > 5', then: deny}"))
	f := facts("price", `{"price":2}`)
	v, trace := p.Explain(context.Background(), f)
	if d := cmp.Diff(p.Evaluate(context.Background(), f), v); d != "" {
		t.Errorf("Explain differs from Evaluate: %s", d)
	}
	want := []gatehouse.RuleTrace{
		{Rule: "z", Outcome: "needs_approval", Matched: true},
		{Rule: "a", Outcome: "deny", Detail: "does not hold: change.price > 5"},
	}
	if d := cmp.Diff(want, trace); d != "" {
		t.Error(d)
	}
}

// TestBulk shows that the cost limit suffices for the largest bulk operation, and
// that looking up members of a large object does not scan it.
func TestBulk(t *testing.T) {
	t.Parallel()
	lines := strings.TrimSuffix(strings.Repeat(`{"price":"1.10","quantity":3},`, 10_000), ",")
	var members []string
	for i := range 10_000 {
		members = append(members, fmt.Sprintf(`"k%d":%d`, i, i))
	}
	f := facts("note", `{"lines":[`+lines+`],"by_key":{`+strings.Join(members, ",")+`}}`, refs(10_000))
	for _, when := range []string{
		"sum(change.lines.map(l, dec(l.price) * l.quantity)) == 33000",
		"change.lines.all(l, l.quantity > 0 && dec(l.price) < 2)",
		"change.by_key.all(k, k in change.by_key && change.by_key[k] >= 0)",
		"target.refs.all(r, r.startsWith('k') && r in change.by_key)",
		"size(target.refs) == 10000 && change.lines.size() == 10000 && size(change.by_key) == 10000",
	} {
		v := mustParse(t, rulesFor(fmt.Sprintf(`{id: r, when: "%s", then: allow}`,
			when))).Evaluate(context.Background(), f)
		if v.Outcome != gatehouse.OutcomeAllow {
			t.Errorf("%s: %v", when, v.Reasons)
		}
	}
}

// TestNoFacts covers facts that are missing altogether.
func TestNoFacts(t *testing.T) {
	t.Parallel()
	p := mustParse(t, rulesFor("{id: who, when: 'proposer.name == \"x\"', then: allow}"))
	if v := p.Evaluate(context.Background(), policy.Facts{}); v.Outcome != gatehouse.OutcomeDeny {
		t.Errorf("without a proposal: expected deny, got %s", v.Outcome)
	}
	f := facts("note", `{}`)
	f.Proposer = nil
	if v := p.Evaluate(context.Background(), f); v.Outcome != gatehouse.OutcomeNeedsApproval ||
		!strings.Contains(v.Reasons[0], "does not give proposer.name") {
		t.Errorf("without a proposer: got %s %v", v.Outcome, v.Reasons)
	}
	f = facts("note", `{}`)
	f.Proposal.ProposedChange = `{"broken`
	p = mustParse(t, rulesFor("{id: r, when: 'has(change.x) || true', then: allow}"))
	if v := p.Evaluate(context.Background(), f); v.Outcome != gatehouse.OutcomeNeedsApproval {
		t.Errorf("with a broken change: got %s %v", v.Outcome, v.Reasons)
	}
}

// TestConcurrent evaluates one policy in many goroutines, for the race detector.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	p := mustParse(t, tenRules)
	f := facts("price_change", `{"currency":"USD","lines":[{"amount":"1.10"},{"amount":"2.20"}],"price":"12.50"}`)
	want := p.Evaluate(context.Background(), f)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if d := cmp.Diff(want, p.Evaluate(context.Background(), f)); d != "" {
					t.Error(d)
					return
				}
			}
		})
	}
	wg.Wait()
}
