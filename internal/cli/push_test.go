package cli

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

func TestDrainExitAndPrint(t *testing.T) {
	t.Parallel()
	item := func(outcome string) gatehouse.DrainItem {
		return gatehouse.DrainItem{
			PushID: "psh_1", ActionID: "act_1", Connector: "shop", Operation: "update", Class: "B",
			Target: gatehouse.Target{EntityType: "item", EntityRef: "A"}, Change: `{"price":"1.00"}`, Outcome: outcome,
			Detail: "x\ty",
		}
	}
	for want, outcomes := range map[int][]string{
		term.ExitDone: {"applied", "queued"}, term.ExitError: {"applied", "failed"},
		term.ExitUnknown: {"failed", "unknown", "failed"},
	} {
		answer := &gatehouse.DrainAnswer{}
		for _, o := range outcomes {
			answer.Items = append(answer.Items, item(o))
		}
		if got := exitCode(drainExit(answer)); got != want {
			t.Errorf("%v: exit code %d, want %d", outcomes, got, want)
		}
	}
	g, out, errOut := testGlobals(t)
	must(t, g.printDrain(&gatehouse.DrainAnswer{DryRun: true, Items: []gatehouse.DrainItem{item("due")}}))
	if want := "psh_1\tact_1\tshop\tB\tSet price of A: 1.00\tdue\tx<U+0009>y\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if !strings.Contains(errOut.String(), "Nothing was sent") {
		t.Errorf("got %q", errOut)
	}
}
