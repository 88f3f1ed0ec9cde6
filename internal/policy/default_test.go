package policy_test

import (
	"context"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

func TestDefault(t *testing.T) {
	t.Parallel()
	results := policy.Default().Test()
	if len(results) < 10 {
		t.Fatalf("the default policy has only %d tests", len(results))
	}
	for _, r := range results {
		if !r.Passed() {
			t.Errorf("line %d, %s: %v", r.Line, r.Name, r.Differences)
		}
	}
}

// seeds lists every action type, with its level, of the systems from which
// Gatehouse descends.
var seeds = map[string]gatehouse.RiskLevel{
	"note": 1, "tag": 1, "classification": 1,
	"ns_field_update": 2, "field_update": 2, "spec_update": 2, "create_customer_program": 2, "other": 2,
	"price_change": 3, "bid_status_update": 3, "quote_draft": 3, "vendor_failover": 3, "bulk_cost_basis": 3,
	"collection_action": 3, "update_vendor_cost": 3, "propose_email_to_customer": 3,
	"propose_create_customer": 4, "propose_create_vendor": 4, "propose_create_item": 4, "soft_delete": 4,
	"create_customer": 4, "create_vendor": 4, "create_item": 4,
	"bulk_delete": 5, "destructive_bulk": 5, "mass_price_change": 5,
}

// TestDefaultLevels covers the level of each known type, with and without each
// prefix, and the default question at that level.
func TestDefaultLevels(t *testing.T) {
	t.Parallel()
	p := policy.Default()
	for name, level := range seeds {
		names := []string{name}
		for _, prefix := range []string{"ns_", "propose_", "workflow_"} {
			names = append(names, prefix+name)
		}
		for _, name := range names {
			v := p.Evaluate(context.Background(), facts(name, `{}`))
			outcome, required := gatehouse.OutcomeNeedsApproval, 1
			if level <= gatehouse.L2 {
				outcome = gatehouse.OutcomeAllow
			}
			if level == gatehouse.L5 {
				required = 2
			}
			if v.RiskLevel != level || v.Outcome != outcome || v.Required != required || v.Hold != nil {
				t.Errorf("%s: expected %s %s by %d and no hold, got %+v", name, level, outcome, required, v)
			}
			if claims := len(v.Ceilings); (claims == 1) != (level == gatehouse.L5) {
				t.Errorf("%s: %d claims", name, claims)
			}
		}
	}
}
