package policy_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

func TestOpens(t *testing.T) {
	t.Parallel()
	const head = "version: 1\nrisk: {note: 1, tag: 1, field: 2, price: 3}\n"
	at := func(level gatehouse.RiskLevel) policy.Facts {
		return policy.Facts{Tenant: "default", Floor: level, Proposal: &gatehouse.Proposal{
			Connector: "shop", Operation: "update", Target: gatehouse.Target{EntityType: "item"},
		}}
	}
	for name, c := range map[string]struct {
		source string
		facts  policy.Facts
		want   policy.Opening
		open   bool
	}{
		"the default": {string(policy.DefaultSource()), at(2), policy.Opening{As: "classification", Sure: true},
			true},
		"the default at L3": {string(policy.DefaultSource()), at(3), policy.Opening{}, false},
		"no rule":           {head, at(1), policy.Opening{}, false},
		"no type below L3": {"version: 1\nrules: [{id: a, when: 'true', then: allow}]\n", at(1), policy.Opening{},
			false},
		"one type": {head + "rules: [{id: a, when: 'action.type == \"tag\"', then: allow}]\n", at(1),
			policy.Opening{As: "tag", Sure: true}, true},
		"another connector": {head + "rules: [{id: a, when: 'action.connector == \"crm\"', then: allow}]\n", at(1),
			policy.Opening{}, false},
		"L1 only": {head + "rules: [{id: a, when: risk <= 1, then: allow}]\n", at(2), policy.Opening{},
			false},
		"the change decides": {head + "rules: [{id: a, when: 'has(change.note)', then: allow}]\n", at(1),
			policy.Opening{As: "note"}, true},
		"the proposer decides": {head + "rules: [{id: a, when: 'proposer.name == \"bot\"', then: allow}]\n", at(1),
			policy.Opening{As: "note"}, true},
		"the level decides first": {head + "rules: [{id: a, when: 'risk <= 1 && has(change.note)', then: allow}]\n", at(2),
			policy.Opening{}, false},
		"the connector comes last": {head +
			"rules: [{id: a, when: 'has(change.note) && action.connector == \"crm\"', then: allow}]\n", at(1),
			policy.Opening{As: "note"}, true},
		"a change is denied": {
			head + "rules: [{id: a, when: risk <= 2, then: allow}, {id: b, when: 'has(change.price)', then: deny}]\n", at(1),
			policy.Opening{As: "note"}, true,
		},
		"approval by entity type": {
			head + "rules: [{id: a, when: risk <= 2, then: allow}, {id: b, when: 'target.type == \"item\"', then: " +
				"needs_approval}]\n", at(1), policy.Opening{}, false,
		},
		"the level is raised": {head + "rules: [{id: a, when: risk <= 2, then: allow, risk: 3}]\n", at(1), policy.Opening{},
			false},
		"approval by action type": {
			head + "rules: [{id: a, when: risk <= 2, then: allow}, {id: b, when: 'action.type == \"note\"', then: " +
				"needs_approval}]\n", at(1),
			policy.Opening{As: "tag", Sure: true}, true,
		},
	} {
		p, err := policy.Parse([]byte(c.source))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, open := p.Opens(c.facts); got != c.want || open != c.open {
			t.Errorf("%s: %+v, %v, want %+v, %v", name, got, open, c.want, c.open)
		}
	}
}
