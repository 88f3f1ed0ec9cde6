package policy_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// TestOneBudgetForAJudgement: 200 costly rules share the cost limit of one judgement. Once it is
// spent, the other rules are not evaluated, and none of them allows.
func TestOneBudgetForAJudgement(t *testing.T) {
	t.Parallel()
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 150), ",") + "]"
	bombs := map[string]string{
		"nested comprehensions": `change.list.all(a, change.list.all(b, a == b))`,
		"regex":                 `change.list.all(a, change.text.matches("(x+x+)+y") == false)`,
		"a huge list":           `change.list.all(a, change.list.exists(b, b == a) && change.text.size() > 0)`,
	}
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var source strings.Builder
			source.WriteString("version: 1\nrules:\n")
			const rules = 200
			for i := range rules {
				fmt.Fprintf(&source, "  - {id: r%d, then: allow, when: '%s'}\n", i, bomb)
			}
			source.WriteString("  - {id: last, then: deny, when: 'action.type == \"never\"'}\n")
			p, err := policy.Parse([]byte(source.String()))
			if err != nil {
				t.Fatal(err)
			}
			facts := policy.Facts{
				Tenant: "default", Proposer: &gatehouse.Principal{Name: "bot", Kind: gatehouse.KindAgent},
				Proposal: &gatehouse.Proposal{
					ActionType: "note", Connector: "shop", Operation: "update",
					Target:         gatehouse.Target{EntityType: "item", EntityRef: "A"},
					ProposedChange: gatehouse.JSON(`{"list":` + list + `,"text":"` + strings.Repeat("x", 2000) + `"}`),
				},
			}
			if v, ok := p.EvaluateQuickly(facts); ok {
				t.Errorf("judged quickly: %s", v.Outcome)
			}
			start := time.Now()
			v, trace := p.Explain(context.Background(), facts)
			took := time.Since(start)
			if v.Outcome == gatehouse.OutcomeAllow {
				t.Errorf("outcome %s: rules that were not evaluated allow", v.Outcome)
			}
			spent := 0
			for _, r := range trace {
				if strings.Contains(r.Detail, "cost limit of one judgement") {
					spent++
				}
			}
			if spent == 0 {
				t.Errorf("all %d rules were evaluated, in %s", rules, took)
			}
			// An allow rule among rules that were not evaluated never allows the
			// action.
			if v.Outcome != gatehouse.OutcomeDeny && v.Outcome != gatehouse.OutcomeNeedsApproval {
				t.Errorf("outcome %s", v.Outcome)
			}
		})
	}
}

// TestEvaluateQuickly: the verdict is that of Evaluate. Nothing is judged quickly that conditions may walk for long.
func TestEvaluateQuickly(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse(policy.DefaultSource())
	if err != nil {
		t.Fatal(err)
	}
	facts := func(change int, refs ...string) policy.Facts {
		return policy.Facts{
			Tenant: "default", Proposer: &gatehouse.Principal{Name: "bot", Kind: gatehouse.KindAgent},
			Proposal: &gatehouse.Proposal{
				ActionType: "price_change", Connector: "shop", Operation: "update",
				Target:         gatehouse.Target{EntityType: "item", EntityRefs: refs},
				ProposedChange: gatehouse.JSON(`{"price":"12.50","text":"` + strings.Repeat("x", change) + `"}`),
			},
		}
	}
	small := facts(10, "A", "B")
	if v, ok := p.EvaluateQuickly(small); !ok || !reflect.DeepEqual(v, p.Evaluate(t.Context(), small)) {
		t.Errorf("a small proposal: %v, %+v", ok, v)
	}
	checked := facts(0)
	checked.Proposal.Evaluations = []gatehouse.Evaluation{{Name: "check", Details: strings.Repeat("x", 16<<10)}}
	for name, large := range map[string]policy.Facts{
		"evaluation": checked,
		"change":     facts(2 << 10), "keys": facts(0, strings.Repeat("x", 8<<10), strings.Repeat("y", 8<<10)),
	} {
		if _, ok := p.EvaluateQuickly(large); ok {
			t.Errorf("a large %s was judged quickly", name)
		}
	}
}
