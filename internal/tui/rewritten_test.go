package tui

import (
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
)

// TestRewrittenFieldIsShown: a card folds a field that keeps its value only if the target was read: otherwise the
// agent may lie about the value before.
func TestRewrittenFieldIsShown(t *testing.T) {
	t.Parallel()
	a := &gatehouse.Action{
		ID: "act_1", Status: gatehouse.StatusPending, Approval: &gatehouse.Approval{Required: 1},
		Proposal: gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target:         gatehouse.Target{EntityType: "item", EntityRef: "A"},
			CurrentState:   `{"bank_account":"EVIL","name":"x","price":"10.00"}`,
			ProposedChange: `{"bank_account":"EVIL","price":"12.50"}`,
		},
	}
	const (
		claimed = `= bank_account set to "EVIL" (unchanged, as the agent says)`
		changed = `~ bank_account "GOOD" → "EVIL"`
		one     = "… 1 field is unchanged"
		two     = "… 2 fields are unchanged"
	)
	for name, c := range map[string]struct {
		read *gatehouse.TargetState
		want []string
	}{
		"not read": {nil, []string{claimed, one}},
		"gone":     {&gatehouse.TargetState{Gone: true}, []string{claimed, one}},
		"read":     {&gatehouse.TargetState{Matches: true, CurrentState: a.CurrentState}, []string{two}},
		"differs": {
			&gatehouse.TargetState{CurrentState: `{"bank_account":"GOOD","name":"x","price":"10.00"}`},
			[]string{changed, one},
		},
	} {
		p := cardPage(a, view{width: 100, target: sheet.Target{State: c.read}})
		shown := strings.Join(p.lines[:p.payload], "\n")
		for _, text := range []string{claimed, changed, one, two} {
			want := slices.Contains(c.want, text)
			if strings.Contains(shown, text) != want {
				t.Errorf("%s: %q is shown: %v\n%s", name, text, !want, shown)
			}
		}
	}
}
