package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// BenchmarkEvaluate judges with the default policy, and with a policy whose rules
// read the change. The default must reach 100,000 judgements per second on one
// core.
func BenchmarkEvaluate(b *testing.B) {
	price := facts("price_change", `{"currency":"USD","lines":[{"amount":"1.10"},{"amount":"2.20"}],"price":"12.50"}`)
	for _, bench := range []struct {
		name   string
		policy *policy.Policy
		facts  policy.Facts
	}{
		{"default/L1", policy.Default(), facts("note", `{"text":"hello"}`)},
		{"default/L3", policy.Default(), price},
		{"default/L5", policy.Default(), facts("bulk_delete", `{}`)},
		{"ten-rules", mustParse(b, tenRules), price},
		{"ten-of-10", mustParse(b, manyRules(10)), price},
		{"ten-of-1000", mustParse(b, manyRules(1000)), price},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := bench.policy.Evaluate(context.Background(), bench.facts); v.Outcome == "" {
					b.Fatal("no outcome")
				}
			}
		})
	}
}

// manyRules is a policy of n rules, of which ten apply to a price change.
func manyRules(n int) string {
	var b strings.Builder
	b.WriteString("version: 1\nrisk: {price_change: 3}\nrules:\n")
	for i := range n {
		actionType := "price_change"
		if i >= 10 {
			actionType = "refund"
		}
		fmt.Fprintf(&b, "  - {id: r%d, then: needs_approval, when: 'action.type == %q && dec(change.price) > %d'}\n",
			i, actionType, i)
	}
	return b.String()
}

func BenchmarkParseDefault(b *testing.B) {
	for b.Loop() {
		if _, err := policy.Parse(policy.DefaultSource()); err != nil {
			b.Fatal(err)
		}
	}
}

const tenRules = `
version: 1
risk: {price_change: 3}
rules:
  - {id: r0, when: risk <= 2, then: allow}
  - {id: r1, when: 'change.currency != "USD"', then: deny}
  - {id: r2, when: 'dec(change.price) > 100', then: needs_approval, required: 2}
  - {id: r3, when: 'action.type == "refund" && dec(change.amount) > 10', then: needs_approval}
  - {id: r4, when: 'proposer.kind == "service"', then: deny}
  - {id: r5, when: 'proposer.name in ["a", "b", "c"]', then: deny}
  - {id: r6, when: 'has(change.note) && change.note.contains("urgent")', then: needs_approval}
  - {id: r7, when: 'tenant == "closed"', then: deny}
  - {id: r8, when: 'evaluations.exists(e, e.result == "fail")', then: deny}
  - {id: r9, when: 'target.refs.size() > 100', then: deny}
ceilings:
  - {name: lines, per: agent, window: 24h, limit: 1000, amount: 'sum(change.lines.map(l, l.amount))'}
`
