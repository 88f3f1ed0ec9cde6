package cli

import (
	"net/http"
	"os"
	"path/filepath"
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

// TestPrintFits: whichever columns a terminal leaves out, the row fits and begins with the short id.
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

// TestNextOfAHeldAction: a hold is named, whoever decided.
func TestNextOfAHeldAction(t *testing.T) {
	t.Parallel()
	for hold, want := range map[time.Duration]string{
		0:         "it is being sent.",
		time.Hour: "it is held for 1h before it is sent.",
	} {
		for _, via := range []gatehouse.Channel{gatehouse.ViaPolicy, gatehouse.ViaGrant, gatehouse.ViaMandate} {
			g, _, words := testGlobals(t)
			g.printNext(&gatehouse.Action{Status: gatehouse.StatusApproved, DecidedVia: via, HoldFor: gatehouse.Duration(hold)})
			if !strings.Contains(words.String(), want) {
				t.Errorf("%s, hold %s: %s", via, hold, words)
			}
		}
	}
}

// TestAnIDIsNoFormat: a percent sign in an id of the server is printed as it is.
func TestAnIDIsNoFormat(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "connectors.yaml")
	must(t, os.WriteFile(file, []byte("connectors: {}\n"), 0o600))
	s := answering(t, http.StatusCreated, gatehouse.Action{ID: "act_%d", Status: gatehouse.StatusPending})
	_, words := runCommand(t, term.ExitPending, "connector", "apply", file, "--url", s, "--key", "gth_x")
	if !strings.Contains(words, "approve act_%d.") {
		t.Error(words)
	}
}

// TestQueueOfBuiltInSteps: the queue of the built-in steps has a name, although they have no tool.
func TestQueueOfBuiltInSteps(t *testing.T) {
	t.Parallel()
	queues := []gatehouse.ToolQueue{{}, {Tool: "resize", Leased: true}}
	s := answering(t, http.StatusOK, gatehouse.RunQueues{Queues: queues})
	out, _ := runCommand(t, term.ExitDone, "run", "queues", "--url", s, "--key", "gth_x")
	for _, want := range []string{"queue\tbuilt-in steps\tno step is held\t", "queue\tresize\ta step is held\t"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
}
