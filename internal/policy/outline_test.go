package policy

import (
	"reflect"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func TestOutline(t *testing.T) {
	t.Parallel()
	p, err := Parse([]byte(`version: 1
levels: {3: Medium write}
risk: {refund: 3, note: 1, credit: 3}
approvals:
  3: {required: 2, groups: [finance], expiry: 2h}
rules:
  - {id: zeta, when: risk <= 2, then: allow, reason: small, hold: 5s}
  - {id: alpha, when: 'action.type == "refund"', then: needs_approval, required: 3, people: [ana, bo, cy],
      expiry: 1h, risk: 4}
`))
	if err != nil {
		t.Fatal(err)
	}
	levels, rules := p.Outline()
	hold := gatehouse.Duration(5 * time.Second)
	want := []gatehouse.PolicyRule{
		{ID: "zeta", Line: 7, When: "risk <= 2", Then: "allow", Reason: "small",
			PolicyAsk: gatehouse.PolicyAsk{Who: []string{}, Hold: &hold}},
		{
			ID: "alpha", Line: 8, When: `action.type == "refund"`, Then: "needs_approval", Risk: 4,
			PolicyAsk: gatehouse.PolicyAsk{Required: 3, Who: []string{"ana", "bo", "cy"},
				Expiry: gatehouse.Duration(time.Hour)},
		},
	}
	if !reflect.DeepEqual(rules, want) {
		t.Errorf("the rules are %+v", rules)
	}
	medium := gatehouse.PolicyLevel{
		Level: gatehouse.L3, Name: "Medium write", Types: []string{"credit", "refund"}, Line: 5,
		PolicyAsk: gatehouse.PolicyAsk{Required: 2, Who: []string{"group finance"},
			Expiry: gatehouse.Duration(2 * time.Hour)},
	}
	if len(levels) != 5 || !reflect.DeepEqual(levels[2], medium) {
		t.Errorf("the levels are %+v", levels)
	}
	// A level that the text does not mention has its standard, L5 two people.
	if l := levels[4]; l.Required != 2 || l.Line != 0 || len(l.Who) != 1 {
		t.Errorf("L5 is %+v", l)
	}
}
