package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

func withCeiling(ceiling string) string {
	return rulesFor(ruleAllow) + "ceilings:\n  - {name: c, window: 24h, " + ceiling + "}\n"
}

func magnitude(amount string) func(*policy.Facts) {
	return func(f *policy.Facts) {
		f.Proposal.Magnitude = &gatehouse.Magnitude{Amount: gatehouse.Decimal(amount), Currency: "EUR"}
	}
}

func refs(n int) func(*policy.Facts) {
	return func(f *policy.Facts) {
		f.Proposal.Target.EntityRef = ""
		for i := range n {
			f.Proposal.Target.EntityRefs = append(f.Proposal.Target.EntityRefs, fmt.Sprintf("k%d", i))
		}
	}
}

func named(refs ...string) func(*policy.Facts) {
	return func(f *policy.Facts) { f.Proposal.Target.EntityRef, f.Proposal.Target.EntityRefs = "", refs }
}

func TestCeiling(t *testing.T) {
	t.Parallel()
	const byAmount = "per: tenant, limit: 1000.00, amount: change.amount"
	for _, c := range []struct {
		name, ceiling string
		facts         policy.Facts
		want          []string // scope amount limit
	}{
		{"a string", byAmount, facts("note", `{"amount":"25.00"}`), []string{"tenant 25.00 1000.00"}},
		{"a number", byAmount, facts("note", `{"amount":25.10}`), []string{"tenant 25.10 1000.00"}},
		{"19 digits stay exact",
			"per: tenant, limit: 9000000000000, amount: 'dec(change.amount) - dec(\"1000000000000000000\")'",
			facts("note", `{"amount":1000000000000000007}`), []string{"tenant 7 9000000000000"}},
		{"the sign does not count", byAmount, facts("note", `{"amount":-25.00}`), []string{"tenant 25.00 1000.00"}},
		{"the magnitude raises", byAmount, facts("note", `{"amount":25}`, magnitude("30.5")),
			[]string{"tenant 30.5 1000.00"}},
		{"the sign of the magnitude does not count", byAmount, facts("note", `{"amount":25}`, magnitude("-31")),
			[]string{"tenant 31 1000.00"}},
		{"the magnitude never lowers", byAmount, facts("note", `{"amount":25}`, magnitude("0.01")),
			[]string{"tenant 25 1000.00"}},
		{"a sum", "per: tenant, limit: 10, amount: 'sum(change.lines.map(l, dec(l.price) * l.qty))'",
			facts("note", `{"lines":[{"price":"1.10","qty":3},{"price":"0.05","qty":2}]}`), []string{"tenant 3.40 10"}},
		{"a difference", "per: tenant, limit: 10, amount: 'dec(change.price) - dec(current.price)'",
			facts("note", `{"price":"9.50"}`, func(f *policy.Facts) { f.Proposal.CurrentState = `{"price":"10.00"}` }),
			[]string{"tenant 0.50 10"}},
		{"count per agent", "per: agent, count: 3", facts("note", `{}`), []string{"agent:prn_agent 1 3"}},
		{"the magnitude is not a count", "per: agent, count: 3", facts("note", `{}`, magnitude("100")),
			[]string{"agent:prn_agent 1 3"}},
		{"count per type", "per: type, count: 3", facts("note", `{}`), []string{"type:note 1 3"}},
		{"count per target", "per: target, count: 3", facts("note", `{}`), []string{"target:shop/item/1 1 3"}},
		{"count per targets", "per: target, count: 3", facts("note", `{}`, refs(2)),
			[]string{"target:shop/item/k0 1 3", "target:shop/item/k1 1 3"}},
		{"a target named twice", "per: target, count: 3", facts("note", `{}`, named("k1", "k0", "k1")),
			[]string{"target:shop/item/k1 1 3", "target:shop/item/k0 1 3"}},
		{"the number of targets", "per: tenant, limit: 10, amount: size(target.refs)",
			facts("note", `{}`, named("k1", "k0", "k1")), []string{"tenant 2 10"}},
		{"the starter of the run", "per: agent, count: 3",
			facts("note", `{}`, func(f *policy.Facts) { f.Starter = &gatehouse.Principal{ID: "prn_starter"} }),
			[]string{"agent:prn_starter 1 3"}},
		{"the currency of the change has an account of its own", byAmount, facts("note", `{"amount":5,"currency":"eur"}`),
			[]string{"tenant/EUR 5 1000.00"}},
		{"a claimed currency has no account of its own", byAmount, facts("note", `{"amount":5}`, magnitude("1")),
			[]string{"tenant 5 1000.00"}},
		{"the currency of the expression", byAmount + ", amount_currency: change.unit",
			facts("note", `{"amount":5,"unit":"USD","currency":"EUR"}`), []string{"tenant/USD 5 1000.00"}},
		{"the stated currency", byAmount + ", currency: EUR", facts("note", `{"amount":5,"currency":"EUR"}`),
			[]string{"tenant/EUR 5 1000.00"}},
		{"the stated currency, claimed", byAmount + ", currency: EUR", facts("note", `{"amount":5}`, magnitude("1")),
			[]string{"tenant/EUR 5 1000.00"}},
		{"the change takes precedence over the claim", byAmount + ", currency: EUR",
			facts("note", `{"amount":5,"currency":"EUR"}`, magnitude("6")), []string{"tenant/EUR 6 1000.00"}},
		{"a ceiling for the other currency",
			byAmount + ", currency: USD}\n" +
				"  - {name: d, window: 24h, per: tenant, limit: 7, amount: change.amount, currency: EUR",
			facts("note", `{"amount":5,"currency":"EUR"}`), []string{"tenant/EUR 5 7"}},
		{"when it applies", "when: 'action.type == \"note\"', per: tenant, count: 3", facts("note", `{}`),
			[]string{"tenant 1 3"}},
		{"when it does not", "when: 'action.type == \"tag\"', per: tenant, count: 3", facts("note", `{}`), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := mustParse(t, withCeiling(c.ceiling)).Evaluate(context.Background(), c.facts)
			if v.Outcome != gatehouse.OutcomeAllow {
				t.Fatalf("expected allow, got %s (%v)", v.Outcome, v.Reasons)
			}
			var got []string
			for _, claim := range v.Ceilings {
				if claim.Ceiling != "c" && claim.Ceiling != "d" || claim.Window.D() != 24*time.Hour {
					t.Errorf("wrong claim: %+v", claim)
				}
				got = append(got, fmt.Sprintf("%s %s %s", claim.Scope, claim.Amount, claim.Limit))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestCeilingNotComputable shows that an action is denied if its use of a ceiling
// cannot be computed.
func TestCeilingNotComputable(t *testing.T) {
	t.Parallel()
	const byAmount = "per: tenant, limit: 1000, amount: change.amount"
	for _, c := range []struct {
		name, ceiling string
		facts         policy.Facts
		reason        string
	}{
		{"absent", byAmount, facts("note", `{}`), "ceiling amount not computable: no such key: amount"},
		{"absent, though claimed", byAmount, facts("note", `{}`, magnitude("1")), "ceiling amount not computable"},
		{"no number", byAmount, facts("note", `{"amount":"much"}`), "ceiling amount not computable"},
		{"null", byAmount, facts("note", `{"amount":null}`), "ceiling amount not computable: null is not a number"},
		{"an object", byAmount, facts("note", `{"amount":{}}`), "ceiling amount not computable"},
		{"too large", byAmount, facts("note", `{"amount":1e30}`), "ceiling amount not computable"},
		{"a magnitude too large", byAmount, facts("note", `{"amount":1}`, magnitude("1e30")),
			"ceiling amount not computable"},
		{"a broken magnitude", byAmount, facts("note", `{"amount":1}`, magnitude("x")), "ceiling amount not computable"},
		{"a condition that fails", "when: 'change.nope > 1', per: tenant, count: 3", facts("note", `{}`),
			"cannot tell whether it applies"},
		{"too many targets", "per: target, count: 3", facts("note", `{}`, refs(101)), "101 targets are too many"},
		{"no target", "per: target, count: 3", facts("note", `{}`, refs(0)), "the proposal has no target"},
		{"another currency", byAmount + ", currency: USD", facts("note", `{"amount":1,"currency":"EUR"}`),
			"ceiling c is in USD, the amount in EUR, and no ceiling that applies is in EUR"},
		{"another currency, claimed", byAmount + ", currency: USD", facts("note", `{"amount":1}`, magnitude("1")),
			"ceiling c is in USD, the amount in EUR"},
		{"a ceiling for the other currency that does not apply",
			byAmount + ", currency: USD}\n  - {name: d, when: risk > 4, window: 24h, per: tenant, limit: 7, amount: " +
				"change.amount, currency: EUR",
			facts("note", `{"amount":1,"currency":"EUR"}`), "ceiling c is in USD"},
		{"an unknown currency", byAmount + ", currency: USD", facts("note", `{"amount":1}`),
			"the currency of the amount is not known"},
		{"a null currency", byAmount + ", currency: USD", facts("note", `{"amount":1,"currency":null}`),
			"the currency of the amount is not known"},
		{"a currency that is not a text", byAmount, facts("note", `{"amount":1,"currency":7}`),
			"the currency of the change is not text"},
		{"an invalid currency", byAmount, facts("note", `{"amount":1,"currency":"USD "}`),
			`"USD " is not the code of a currency`},
		{"an absent currency", byAmount + ", amount_currency: change.unit", facts("note", `{"amount":1}`),
			"the currency of the amount is not known: no such key: unit"},
		{"an expression that gives no text", byAmount + ", amount_currency: change.unit",
			facts("note", `{"amount":1,"unit":1}`), "amount_currency is not a string"},
		{"a claim in another currency", byAmount, facts("note", `{"amount":1,"currency":"USD"}`, magnitude("2")),
			`the magnitude is in "EUR", the amount in USD`},
		{"no proposer", "per: agent, count: 3", facts("note", `{}`, func(f *policy.Facts) { f.Proposer = nil }),
			"the proposal has no proposer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := mustParse(t, withCeiling(c.ceiling)).Evaluate(context.Background(), c.facts)
			if v.Outcome != gatehouse.OutcomeDeny || len(v.Reasons) != 1 || !strings.Contains(v.Reasons[0], c.reason) {
				t.Fatalf("expected deny with %q, got %s (%v)", c.reason, v.Outcome, v.Reasons)
			}
			if v.Ceilings != nil || len(v.Rules) != 0 {
				t.Errorf("a denial claims %v by %v", v.Ceilings, v.Rules)
			}
		})
	}
}

// TestCeilingSeesFinalRisk shows that a rule which raises the level brings an
// action under the ceilings of that level.
func TestCeilingSeesFinalRisk(t *testing.T) {
	t.Parallel()
	p := mustParse(t, rulesFor("{id: up, when: true, then: needs_approval, risk: 5}")+
		"ceilings:\n  - {name: c, when: risk >= 5, per: tenant, window: 7d, count: 2}\n")
	if v := p.Evaluate(context.Background(), facts("note", `{}`)); len(v.Ceilings) != 1 || v.RiskLevel != gatehouse.L5 {
		t.Errorf("expected one claim at L5, got %v at %s", v.Ceilings, v.RiskLevel)
	}
}
