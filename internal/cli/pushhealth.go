package cli

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// pushHealthCmd shows the health of the connectors, or the queue.
type pushHealthCmd struct {
	Queue bool `help:"Print the queue over the last 24 hours instead."`
}

func (*pushHealthCmd) Help() string {
	return `
Piped, the columns are: connector, breaker, queued, in flight, oldest, applied and
failed in the last hour, last success, last error, its code, the target's answer.
The last success and the last error look back 24 hours. Where a breaker is open, stderr
says since when, why, and when the next trial is.

--queue prints the pushes that were due and had no outcome, at 48 points of the last
24 hours. Piped, the columns are: time, depth, how long the oldest had waited.

Examples:

    gatehouse push health
    gatehouse push health --queue
`
}

// Run prints one of the tables, or everything as JSON.
func (c *pushHealthCmd) Run(g *globals, api service) error {
	h, err := api.DispatchHealth(g.Ctx)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(h)
	}
	if h.Capped {
		g.Say("Only the newest %d pushes are counted.", gatehouse.MaxPushFacts)
	}
	if c.Queue {
		t := &term.Table{Header: []string{"AT", "DEPTH", "OLDEST"}}
		for _, q := range h.Queue {
			oldest := ""
			if q.Depth > 0 {
				oldest = q.Oldest.String()
			}
			t.Add(g.At(q.At), strconv.Itoa(q.Depth), oldest)
		}
		return g.Print(t, "")
	}
	t := &term.Table{
		Header: []string{"CONNECTOR", "BREAKER", "QUEUED", "IN FLIGHT", "OLDEST", "APPLIED/H", "FAILED/H", "LAST SUCCESS",
			"LAST ERROR", "CODE", "TARGET SAYS"},
		Wide: 10, Drop: []int{4, 3, 7, 9},
	}
	for _, x := range h.Connectors {
		t.Add(x.Connector, x.Breaker.State, strconv.Itoa(x.Queued), strconv.Itoa(x.InFlight), g.AtPtr(x.OldestAt),
			strconv.Itoa(x.AppliedLastHour), strconv.Itoa(x.FailedLastHour), g.AtPtr(x.LastSuccessAt), g.AtPtr(x.LastErrorAt),
			x.LastErrorCode, x.LastWords)
	}
	if err := g.Print(t, "No connectors."); err != nil {
		return err
	}
	for _, x := range h.Connectors {
		if x.Breaker.State != gatehouse.BreakerClosed {
			g.Say("%s", term.Safe(serve.BreakerSentence(x.Breaker)))
		}
	}
	return nil
}
