package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

func TestGrounds(t *testing.T) {
	t.Parallel()
	p := mustParse(t, rulesFor(
		`{id: dear, when: 'action.type == "price" && change.price > 10 && has(magnitude.amount) && metadata["of origin"] `+
			`== "x"', then: needs_approval}`,
		`{id: tested, when: 'evaluations.exists(e, e.result == "pass") && size(change) > 0 && change.price < 99', `+
			`then: needs_approval, risk: 4}`,
		`{id: other, when: 'proposer.name == "bot"', then: needs_approval}`,
	))
	long := gatehouse.StringJSON(string(make([]byte, 600)))
	proposal := &gatehouse.Proposal{
		ActionType: "ns_price", RiskLevel: 2, ProposedChange: "{\"note\":" + long + ",\"price\":12.50}",
		Metadata:    `{"of origin":"x"}`,
		Evaluations: []gatehouse.Evaluation{{Name: "schema", Kind: "deterministic", Result: "pass"}},
	}
	got := p.Grounds(policy.Facts{Tenant: "default", Proposal: proposal, Floor: 1}, []string{"dear", "tested"})
	want := gatehouse.Grounds{Type: "price", Listed: 3, Floor: 1, Claimed: 2, Rules: []gatehouse.RuleGround{
		{Rule: "dear", Outcome: "needs_approval",
			When: `action.type == "price" && change.price > 10 && has(magnitude.amount) && metadata["of origin"] == "x"`,
			Facts: []gatehouse.RuleFact{
				{Name: "action.type", Value: `"price"`}, {Name: "change.price", Value: "12.50"}, {Name: "magnitude.amount"},
				{Name: "metadata.of origin", Value: `"x"`},
			}},
		{Rule: "tested", Outcome: "needs_approval", Risk: 4,
			When: `evaluations.exists(e, e.result == "pass") && size(change) > 0 && change.price < 99`,
			Facts: []gatehouse.RuleFact{
				{Name: "evaluations", Value: `[{"kind":"deterministic","name":"schema","result":"pass"}]`},
				{Name: "change", Long: true}, {Name: "change.price", Value: "12.50"},
			}},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("grounds (-want +got):\n%s", d)
	}
	if none := p.Grounds(policy.Facts{Proposal: proposal}, nil); len(none.Rules) != 0 || none.Listed != 3 {
		t.Errorf("without rules: %+v", none)
	}
}
