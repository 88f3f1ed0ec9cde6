package gatehouse_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestWorstCaseOfOne: the worst case counts one action, one time and one record in the singular.
func TestWorstCaseOfOne(t *testing.T) {
	t.Parallel()
	one := gatehouse.Limit{Count: 1}
	g := gatehouse.Grant{AgentName: "bot", Connector: "shop", Operation: "update", Budget: gatehouse.Budget{Limit: one}}
	if got := g.WorstCase(); !strings.HasPrefix(got, "at most 1 time: update of shop by bot, without money") {
		t.Error(got)
	}
	terms := gatehouse.Terms{AgentName: "bot", InAll: one, PerDay: &one, Steps: []gatehouse.PlanStep{{
		Cover: gatehouse.Cover{ActionType: "refund", Connector: "shop", Operation: "update", Keys: []string{"r-1"}},
		Limit: one,
	}}}
	got := terms.WorstCase()
	for _, part := range []string{"at most 1 action by bot", ", 1 action a day", ", 1 time, on 1 named record"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q lacks %q", got, part)
		}
	}
}

// TestPlanValidateRefusesAmounts: a plan with amounts that are no numbers is refused.
func TestPlanValidateRefusesAmounts(t *testing.T) {
	t.Parallel()
	limit := gatehouse.Limit{Count: 1, Amounts: []gatehouse.Magnitude{{Amount: "abc", Currency: "EUR"}}}
	p := gatehouse.Plan{Goal: "g", Steps: []gatehouse.PlanStep{{Limit: limit}, {Limit: limit}}}
	if err := p.Validate(); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("Validate: %v", err)
	}
}
