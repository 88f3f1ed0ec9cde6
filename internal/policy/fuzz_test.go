package policy_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// FuzzParse parses arbitrary policies: none makes the parser panic, each refusal
// has a position, and parsed policies give only safe verdicts.
func FuzzParse(f *testing.F) {
	f.Add(string(policy.DefaultSource()))
	f.Add(tenRules)
	for _, when := range conditions {
		f.Add(rulesFor("{id: r, when: '" + when + "', then: allow}"))
	}
	f.Add(withCeiling("per: agent, limit: 10.50, amount: 'sum(change.list.map(x, dec(x) * -1.5))'"))
	f.Add("version: 1\nrules:\n  - id: r\n    when: >-\n      has(change.a) &&\n      change.a in [1.5, 2]\n    then: " +
		"needs_approval\n    people: [a]\n")
	f.Add("version: 1\ntests:\n  - {name: t, action: {action_type: note, proposed_change: {a: 1.50}}, expect: {outcome: " +
		"allow}}\n")
	samples := []policy.Facts{
		facts("note", `{}`),
		facts("wipe", `{"price":"12.50","currency":"USD","flag":true,"list":[1,"2",3.50]}`, magnitude("3"), refs(2)),
		facts("price_change", `{"price":12.5,"lines":[{"amount":"1"}],"a":1.5}`),
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := policy.Parse([]byte(source))
		if err != nil {
			var problems *policy.Problems
			if !errors.As(err, &problems) || len(problems.List) == 0 {
				t.Fatalf("%T %v is not a list of problems", err, err)
			}
			for _, one := range problems.List {
				if one.Line < 1 || one.Column < 1 || one.Detail == "" {
					t.Fatalf("a problem without a place: %+v", one)
				}
			}
			return
		}
		for _, f := range samples {
			v, _ := p.Explain(context.Background(), f)
			safe(t, f, v)
		}
		p.Test()
		p.Lint()
	})
}
