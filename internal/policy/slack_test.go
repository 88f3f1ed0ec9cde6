package policy

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestSlackUpTo: L2 by default, L3 if stated, and never L4.
func TestSlackUpTo(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]gatehouse.RiskLevel{
		"version: 1\n":                             gatehouse.L2,
		"version: 1\nslack: {}\n":                  gatehouse.L2,
		"version: 1\nslack: {decide_up_to: 2}\n":   gatehouse.L2,
		"version: 1\nslack: {decide_up_to: 3}\n":   gatehouse.L3,
		"version: 1\nslack: {decide_up_to: 4}\n":   0,
		"version: 1\nslack: {decide_up_to: 0}\n":   0,
		"version: 1\nslack: {decide_up_to: [3]}\n": 0,
		"version: 1\nslack: {decide: 3}\n":         0,
		"version: 1\nslack: 3\n":                   0,
	} {
		p, err := Parse([]byte(source))
		if want == 0 {
			if err == nil {
				t.Errorf("%q is accepted", source)
			}
			continue
		}
		if err != nil || p.SlackUpTo() != want {
			t.Errorf("%q: %v, want %s", source, err, want)
		}
	}
	if strings.Contains(string(DefaultSource()), "slack:") || Default().SlackUpTo() != gatehouse.L2 {
		t.Error("the default lets more be decided from Slack")
	}
}
