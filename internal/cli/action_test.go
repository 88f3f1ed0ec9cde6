package cli

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestListNamesTheLevel: on a terminal a list has the tenant's name of the level;
// piped, the column is the level alone.
func TestListNamesTheLevel(t *testing.T) {
	t.Parallel()
	a := &gatehouse.Action{ID: "act_1"}
	a.RiskLevel, a.RiskName = gatehouse.L4, "severe"
	for tty, want := range map[bool]string{true: "L4 severe", false: "L4"} {
		g := &globals{tty: tty}
		if got := g.actionTable(a).rows[0][2]; got != want {
			t.Errorf("terminal %v: %q, want %q", tty, got, want)
		}
	}
	if riskStyle("L4 severe") != red || !strings.HasPrefix(riskText(gatehouse.L3, ""), "L3") {
		t.Error("a level with a name has another colour")
	}
}
