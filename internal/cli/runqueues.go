package cli

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// runQueuesCmd shows the queues, the workers and the schedules of runs.
type runQueuesCmd struct{}

func (*runQueuesCmd) Help() string {
	return `
Lists the tools with ready steps, the steps and pushes that each worker holds, and the
next run of each schedule. Workers without a lease are not listed. Piped, the columns
are: queue, worker or schedule; its name; its content; a time: since when the oldest
step is ready, when the lease ends, or when the next run starts.

Examples:

    gatehouse run queues
    gatehouse run queues --json
`
}

// Run prints the table, or everything as JSON.
func (*runQueuesCmd) Run(g *globals, api service) error {
	q, err := api.RunQueues(g.Ctx)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(q)
	}
	t := &term.Table{Header: []string{"", "NAME", "CONTENT", "TIME"}, Wide: 1}
	for _, x := range q.Queues {
		held := "no step is held"
		if x.Leased {
			held = "a step is held"
		}
		t.Add("queue", cmp.Or(x.Tool, "built-in steps"), held, g.At(x.OldestAt))
	}
	for _, w := range q.Workers {
		held := strconv.Itoa(w.Steps) + " steps, " + strconv.Itoa(w.Pushes) + " pushes: " + strings.Join(w.Tools, ", ")
		t.Add("worker", w.Worker, held, g.At(w.LeaseUntil))
	}
	for _, s := range q.Schedules {
		t.Add("schedule", s.Workflow, "version "+strconv.Itoa(s.Version), g.At(s.NextAt))
	}
	return g.Print(t, "No ready steps, no leases, no schedules.")
}
