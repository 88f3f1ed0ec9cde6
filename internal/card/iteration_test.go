package card

import (
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestRevisedTargets: an iteration for other targets, or for targets of another type, differs.
func TestRevisedTargets(t *testing.T) {
	t.Parallel()
	of := func(target gatehouse.Target) *gatehouse.Action {
		return &gatehouse.Action{Proposal: gatehouse.Proposal{Target: target, ProposedChange: `{"price":1}`}}
	}
	bulk := gatehouse.Target{EntityType: "item", EntityRefs: []string{"A", "B"}}
	for name, c := range map[string]struct {
		older, newer gatehouse.Target
		want         []string
	}{
		"the same": {bulk, bulk, nil},
		"another":  {bulk, gatehouse.Target{EntityType: "item", EntityRefs: []string{"A", "C"}}, []string{"/targets/1"}},
		"one more": {bulk, gatehouse.Target{EntityType: "item", EntityRefs: []string{"A", "B", "C"}},
			[]string{"/targets/2"}},
		"another type": {bulk, gatehouse.Target{EntityType: "order", EntityRefs: bulk.EntityRefs}, []string{"/target type"}},
		"one instead": {bulk, gatehouse.Target{EntityType: "item", EntityRef: "A"},
			[]string{"/target", "/targets/0", "/targets/1"}},
	} {
		var got []string
		for _, x := range Revised(of(c.older), of(c.newer)) {
			got = append(got, x.Path)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
