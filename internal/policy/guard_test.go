package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// TestGuards: if one of the comparisons at the beginning of a condition is false, the
// rest is not evaluated, and a fact that is missing in the rest is no error. A fact that
// is missing in or before such a comparison is an error, and the rule denies.
func TestGuards(t *testing.T) {
	const asks = gatehouse.OutcomeNeedsApproval
	for _, c := range []struct {
		name, when string            // the first comparisons of a rule that denies
		outcome    gatehouse.Outcome // of the policy
		evaluated  bool              // whether the rest of the condition is
	}{
		{"another type", `action.type == "refund"`, asks, false},
		{"the text on the left", `"refund" == action.type`, asks, false},
		{"none of a list", `action.connector in ["erp", "crm"]`, asks, false},
		{"the second comparison", `action.type == "price_change" && action.operation == "delete"`, asks, false},
		{"another agent", `proposer.name == "other"`, asks, false},
		{"this type", `action.type == "price_change"`, gatehouse.OutcomeDeny, true},
		{"one of a list", `action.connector in ["erp", "shop"]`, gatehouse.OutcomeDeny, true},
		{"not the excepted type", `action.type != "refund"`, gatehouse.OutcomeDeny, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustParse(t, fmt.Sprintf("version: 1\nrisk: {price_change: 1, refund: 1}\nrules:\n"+
				"  - {id: r, when: '%s && dec(change.missing) > 10', then: deny}\n", c.when))
			verdict, trace := p.Explain(context.Background(), facts("price_change", `{}`))
			if verdict.Outcome != c.outcome {
				t.Errorf("the outcome is %s: %v", verdict.Outcome, verdict.Reasons)
			}
			if failed := strings.Contains(trace[0].Detail, "error"); failed != c.evaluated {
				t.Errorf("the rest is evaluated: %v; %s", failed, trace[0].Detail)
			}
		})
	}
	t.Run("a missing fact before the comparison", func(t *testing.T) {
		p := mustParse(t, "version: 1\nrisk: {price_change: 1, refund: 1}\nrules:\n"+
			"  - {id: r, when: 'dec(change.missing) > 10 && action.type == \"refund\"', then: deny}\n")
		if v := p.Evaluate(context.Background(), facts("price_change", `{}`)); v.Outcome != gatehouse.OutcomeDeny {
			t.Errorf("a condition that cannot be evaluated gave %s", v.Outcome)
		}
	})
	t.Run("no proposer", func(t *testing.T) {
		p := mustParse(t, "version: 1\nrules:\n  - {id: r, when: 'proposer.name == \"other\"', then: deny}\n")
		f := facts("price_change", `{}`, func(f *policy.Facts) { f.Proposer = nil })
		if v := p.Evaluate(context.Background(), f); v.Outcome != gatehouse.OutcomeDeny {
			t.Errorf("a missing proposer gave %s", v.Outcome)
		}
	})
	t.Run("no proposer before a false comparison", func(t *testing.T) {
		p := mustParse(t, "version: 1\nrisk: {price_change: 1, refund: 1}\nrules:\n"+
			"  - {id: r, when: 'proposer.name == \"other\" && action.type == \"refund\"', then: deny}\n")
		f := facts("price_change", `{}`, func(f *policy.Facts) { f.Proposer = nil })
		if v := p.Evaluate(context.Background(), f); v.Outcome != gatehouse.OutcomeDeny {
			t.Errorf("a missing proposer gave %s", v.Outcome)
		}
	})
}

// TestReasonsAreBounded matches a thousand rules: all are named, twenty give
// reasons.
func TestReasonsAreBounded(t *testing.T) {
	p := mustParse(t, strings.ReplaceAll(manyRules(1000), `"refund"`, `"price_change"`))
	v := p.Evaluate(context.Background(), facts("price_change", `{"price":"5000.00"}`))
	if len(v.Rules) != 1000 || len(v.Reasons) != 21 || v.Reasons[20] != "and 980 more rules" {
		t.Fatalf("%d rules, %d reasons, the last: %s", len(v.Rules), len(v.Reasons), v.Reasons[len(v.Reasons)-1])
	}
}
