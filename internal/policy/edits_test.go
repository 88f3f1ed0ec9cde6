package policy

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestEditUpTo: L3 by default, any level if stated, and 0 forbids.
func TestEditUpTo(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]int{
		"version: 1\n":                              3,
		"version: 1\nedits: {}\n":                   3,
		"version: 1\nedits: {approve_up_to: 0}\n":   0,
		"version: 1\nedits: {approve_up_to: 2}\n":   2,
		"version: 1\nedits: {approve_up_to: 5}\n":   5,
		"version: 1\nedits: {approve_up_to: 6}\n":   -1,
		"version: 1\nedits: {approve_up_to: -1}\n":  -1,
		"version: 1\nedits: {approve_up_to: no}\n":  -1,
		"version: 1\nedits: {approve_up_to: ''}\n":  -1,
		"version: 1\nedits: {approve_up_to: [3]}\n": -1,
		"version: 1\nedits: {approve: 3}\n":         -1,
		"version: 1\nedits: 3\n":                    -1,
	} {
		p, err := Parse([]byte(source))
		if want < 0 {
			if err == nil {
				t.Errorf("%q is accepted", source)
			}
			continue
		}
		if err != nil || p.EditUpTo() != gatehouse.RiskLevel(want) {
			t.Errorf("%q: %v, want L%d", source, err, want)
			continue
		}
		facts := Facts{Proposal: &gatehouse.Proposal{ActionType: "note"}, Proposer: &gatehouse.Principal{}}
		if v := p.Evaluate(t.Context(), facts); v.EditUpTo != p.EditUpTo() {
			t.Errorf("%q: a verdict says L%d", source, v.EditUpTo)
		}
	}
}
