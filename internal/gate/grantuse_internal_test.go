package gate

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// TestGrantable: only a first proposal for one target, on which only the policy asks people, can be
// approved in advance.
func TestGrantable(t *testing.T) {
	t.Parallel()
	var plain gatehouse.Action
	plain.Connector, plain.Target.EntityRef = "shop", "A"
	several, question := plain, plain
	several.Target = gatehouse.Target{EntityRefs: []string{"A"}}
	question.Connector = workflow.ApprovalConnector
	other := &gatehouse.Action{ID: "act_1"}
	for what, c := range map[string]struct {
		action gatehouse.Action
		from   lineage
		want   bool
	}{
		"a proposal":                       {plain, lineage{}, true},
		"of a run":                         {plain, lineage{starter: &gatehouse.Principal{}}, false},
		"a revision":                       {plain, lineage{supersedes: other}, false},
		"a reversal":                       {plain, lineage{reverses: other}, false},
		"rebased or edited":                {plain, lineage{author: &gatehouse.Principal{}}, false},
		"of a step that asks people":       {plain, lineage{required: 1}, false},
		"a policy":                         {plain, lineage{own: true}, false},
		"a bulk operation":                 {several, lineage{}, false},
		"the question of an approval step": {question, lineage{}, false},
	} {
		if got := grantable(&c.action, &c.from); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
