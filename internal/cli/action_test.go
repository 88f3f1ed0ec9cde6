package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TestListNamesTheLevel: on a terminal a list has the tenant's name of the level;
// piped, the column is the level alone.
func TestListNamesTheLevel(t *testing.T) {
	t.Parallel()
	a := &gatehouse.Action{ID: "act_1"}
	a.RiskLevel, a.RiskName = gatehouse.L4, "severe"
	for tty, want := range map[bool]string{true: "L4 severe", false: "L4"} {
		g := &globals{IO: term.IO{TTY: tty}}
		if got := g.actionTable(a).Rows[0][2]; got != want {
			t.Errorf("terminal %v: %q, want %q", tty, got, want)
		}
	}
}

// TestPrintFits: whatever is dropped, an id can be used and the lines fit.
func TestPrintFits(t *testing.T) {
	t.Parallel()
	a := &gatehouse.Action{
		ID: "act_01a1faf352877c4cb69a5d55a1d9ff41", Status: gatehouse.StatusUnknown, ProposedBy: "pricing-bot",
		ProposedAt: time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC),
		Proposal: gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update", RiskLevel: gatehouse.L4,
			Target:         gatehouse.Target{EntityType: "item", EntityRef: "SKU-1042\u202e", Version: "7"},
			CurrentState:   `{"cost":9007199254740993,"name":"old","price":"10.00"}`,
			ProposedChange: `{"big":1234567890123456789,"name":"old","price":"12.50"}`,
		},
	}
	for columns, want := range map[int]string{
		60:  "ID STATUS RISK CHANGE",
		80:  "ID STATUS RISK CHANGE BY EXPIRES",
		100: "ID STATUS RISK TYPE CHANGE BY EXPIRES",
		130: "ID STATUS RISK TYPE CHANGE BY PROPOSED EXPIRES",
	} {
		g, out, _ := testGlobals(t)
		g.TTY, g.Columns = true, columns
		must(t, g.Print(g.actionTable(a), ""))
		header, row, _ := strings.Cut(out.String(), "\n")
		if got := strings.Join(strings.Fields(header), " "); got != want {
			t.Errorf("%d columns: got %s, want %s", columns, got, want)
		}
		if !strings.HasPrefix(row, "act_01a1faf35287  ") {
			t.Errorf("%d columns: %q", columns, row)
		}
		for line := range strings.Lines(row) {
			if term.ColumnsOf(strings.TrimRight(line, " \n")) > columns {
				t.Errorf("%d columns: %q", columns, line)
			}
		}
	}
}
