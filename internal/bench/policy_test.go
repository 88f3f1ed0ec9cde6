package bench

import (
	"regexp"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// TestBareConditions: the baseline evaluates every condition of the default policy.
func TestBareConditions(t *testing.T) {
	t.Parallel()
	var want []string
	for _, m := range regexp.MustCompile(`\n    when: (.*)`).FindAllSubmatch(policy.DefaultSource(), -1) {
		want = append(want, string(m[1]))
	}
	if !slices.Equal(bareConditions, want) {
		t.Errorf("%q, want %q", bareConditions, want)
	}
}

// TestPolicy: ten rules, of which two ask one person to look at the proposal that is measured.
func TestPolicy(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse(Policy())
	if err != nil {
		t.Fatal(err)
	}
	v, rules := p.Explain(t.Context(), policy.Facts{
		Tenant: gatehouse.DefaultTenant, Proposal: proposal(1),
		Proposer: &gatehouse.Principal{ID: "prn_agent", Name: "agent", Kind: gatehouse.KindAgent},
	})
	if len(rules) != 10 {
		t.Errorf("%d rules", len(rules))
	}
	if v.Outcome != gatehouse.OutcomeNeedsApproval || v.Required != 1 || v.Hold != nil ||
		!slices.Equal(v.Rules, []string{"price", "price-up-by-more-than-a-fifth"}) {
		t.Errorf("%+v", v)
	}
}
