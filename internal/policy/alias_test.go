package policy

import (
	"context"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

const aliases = `
version: 1
risk: {refund: 3, ns_memo: 1}
rules:
  - {id: no-refunds, when: 'action.type == "refund"', then: deny, reason: closed}
  - {id: memos, when: 'action.type == "ns_memo"', then: allow}
ceilings:
  - {name: orders, when: 'action.type == "order"', per: type, window: 1h, count: 3}
`

// A prefix does not evade a rule or a ceiling that names the type.
func TestPrefixIsNoAlias(t *testing.T) {
	t.Parallel()
	p, err := Parse([]byte(aliases))
	if err != nil {
		t.Fatal(err)
	}
	judge := func(actionType string) gatehouse.Verdict {
		return p.Evaluate(context.Background(), Facts{
			Tenant: "default", Proposer: &gatehouse.Principal{ID: "prn_1"},
			Proposal: &gatehouse.Proposal{ActionType: actionType, ProposedChange: "{}"},
		})
	}
	for _, name := range []string{"refund", "ns_refund", "propose_refund", "workflow_ns_refund"} {
		if v := judge(name); v.Outcome != gatehouse.OutcomeDeny {
			t.Errorf("%s: %s", name, v.Outcome)
		}
	}
	for _, name := range []string{"order", "propose_order"} {
		if v := judge(name); len(v.Ceilings) != 1 || v.Ceilings[0].Scope != "type:order" {
			t.Errorf("%s: ceilings %+v", name, v.Ceilings)
		}
	}
	// A type that is listed with its prefix is a type of its own.
	if v := judge("ns_memo"); v.Outcome != gatehouse.OutcomeAllow {
		t.Errorf("ns_memo: %s", v.Outcome)
	}
}

// A rule that compares action.type with a name that it never has is refused.
func TestDeadTypeIsRefused(t *testing.T) {
	t.Parallel()
	for _, when := range []string{
		`action.type == "ns_refund"`, `"propose_refund" != action.type`, `action.type in ["refund", "workflow_refund"]`,
	} {
		_, err := Parse([]byte("version: 1\nrules:\n  - {id: r, when: '" + when + "', then: deny, reason: x}\n"))
		if err == nil || !strings.Contains(err.Error(), "not listed under risk") {
			t.Errorf("%s: %v", when, err)
		}
	}
	_, err := Parse(
		[]byte("version: 1\nrules:\n  - {id: r, when: 'action.proposed_type == \"ns_refund\"', then: deny, reason: x}\n"))
	if err != nil {
		t.Error(err)
	}
}
