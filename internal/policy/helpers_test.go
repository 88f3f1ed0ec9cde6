package policy_test

import (
	"errors"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// facts is an agent's proposal of a change to item 1 of the shop.
func facts(actionType string, change string, more ...func(*policy.Facts)) policy.Facts {
	c, err := gatehouse.Canonicalize([]byte(change))
	if err != nil {
		panic(err)
	}
	f := policy.Facts{
		Tenant: gatehouse.DefaultTenant,
		Proposal: &gatehouse.Proposal{
			ActionType: actionType, Connector: "shop", Operation: "update", ProposedChange: c,
			Target: gatehouse.Target{EntityType: "item", EntityRef: "1"},
		},
		Proposer: &gatehouse.Principal{
			ID: "prn_agent", Name: "pricer", Kind: gatehouse.KindAgent,
			Roles: []gatehouse.Role{gatehouse.RoleProposer}, Sponsor: "prn_ana",
		},
	}
	for _, m := range more {
		m(&f)
	}
	return f
}

func mustParse(tb testing.TB, source string) *policy.Policy {
	tb.Helper()
	p, err := policy.Parse([]byte(source))
	if err != nil {
		tb.Fatalf("the policy does not parse:\n%v", err)
	}
	return p
}

// problems parses a policy that must fail to parse.
func problems(tb testing.TB, source string) []policy.Problem {
	tb.Helper()
	_, err := policy.Parse([]byte(source))
	var p *policy.Problems
	if !errors.As(err, &p) || len(p.List) == 0 {
		tb.Fatalf("expected *policy.Problems, got %T %v", err, err)
	}
	return p.List
}
