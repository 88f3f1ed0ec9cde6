package policy

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestGrants: by default there are no grants, and never any above L3 or for more than a day.
func TestGrants(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]struct {
		level  gatehouse.RiskLevel
		window time.Duration
		bad    bool
	}{
		"version: 1\n":                                      {window: 24 * time.Hour},
		"version: 1\ngrants: {}\n":                          {window: 24 * time.Hour},
		"version: 1\ngrants: {max_window: 4h}\n":            {window: 4 * time.Hour},
		"version: 1\ngrants: {up_to: 0}\n":                  {window: 24 * time.Hour},
		"version: 1\ngrants: {up_to: 3}\n":                  {level: 3, window: 24 * time.Hour},
		"version: 1\ngrants: {up_to: 2, max_window: 90m}\n": {level: 2, window: 90 * time.Minute},
		"version: 1\ngrants: {up_to: 4}\n":                  {bad: true},
		"version: 1\ngrants: {up_to: -1}\n":                 {bad: true},
		"version: 1\ngrants: {up_to: [3]}\n":                {bad: true},
		"version: 1\ngrants: {up_to: 3, max_window: 25h}\n": {bad: true},
		"version: 1\ngrants: {up_to: 3, max_window: 1s}\n":  {bad: true},
		"version: 1\ngrants: 3\n":                           {bad: true},
		"version: 1\ngrants: {level: 3}\n":                  {bad: true},
	} {
		p, err := Parse([]byte(source))
		if want.bad {
			if err == nil {
				t.Errorf("%q is accepted", source)
			}
			continue
		}
		if err != nil || p.GrantUpTo() != want.level || p.GrantWindow() != want.window {
			t.Errorf("%q: %v; L%d for %s", source, err, p.GrantUpTo(), p.GrantWindow())
		}
	}
}

// TestGrantCondition: a condition that cannot be evaluated does not hold, and the
// calendar's functions are unknown.
func TestGrantCondition(t *testing.T) {
	t.Parallel()
	p, err := Parse([]byte("version: 1\ngrants: {up_to: 3}\nrisk: {refund: 3}\n"))
	if err != nil {
		t.Fatal(err)
	}
	f := Facts{
		Proposal: &gatehouse.Proposal{ActionType: "ns_refund", ProposedChange: `{"amount":40,"note":"x"}`},
		Proposer: &gatehouse.Principal{Name: "bot"},
	}
	for source, want := range map[string]bool{
		"true":                                true,
		"false":                               false,
		"change.amount <= 40":                 true,
		"change.amount < 40":                  false,
		"change.missing < 40":                 false,
		"change.note < 40":                    false,
		"risk == 3 && change.note == 'x'":     true,
		"action.type == 'refund'":             true,
		"proposer.name == 'bot'":              true,
		"magnitude.amount < 10 || 1 == 1":     false,
		"[1, 2].exists(x, change.amount > x)": true,
	} {
		c, err := p.GrantCondition(source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if got := c.Holds(t.Context(), f, gatehouse.L3); got != want {
			t.Errorf("%q: %v", source, got)
		}
	}
	for _, source := range []string{"", "1 +", "workday(proposed_at, 'UTC')", "unknown == 1",
		"proposed_at.getHours('Europe/Berlin') < 17", "risk == 3 && proposed_at.getFullYear() > 2000"} {
		if _, err := p.GrantCondition(source); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("%q is accepted: %v", source, err)
		}
	}
	for _, source := range []string{"", "unknown == 1", "action.type == 'ns_refund'"} {
		if err := p.CheckGrantCondition(source); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("a new condition %q is accepted: %v", source, err)
		}
	}
	if err := p.CheckGrantCondition("action.type == 'refund'"); err != nil {
		t.Error(err)
	}
}
