package cli

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// runShowCmd shows one run.
type runShowCmd struct {
	ID string `arg:"" help:"The run."`
}

func (*runShowCmd) Help() string {
	return `
Shows the run's status, the graph of its steps, when each step worked and waited,
what it proposed and who decided, which attempts failed, and what models cost. On
a terminal the steps share one time axis: waits for people have a sign and a
colour of their own, and time in which no step worked is compressed.

Piped, a step of the timeline has the columns: key, status, uses, attempts,
action or child run, started at, ended at.

Examples:

    gatehouse run show run_01993b7e
    gatehouse run show run_01993b7e --json
`
}

func (c *runShowCmd) Run(g *globals, api service) error {
	d, err := api.RunDetail(g.Ctx, c.ID)
	return printOutcome(g, d, err, func() error {
		sheet.New(&g.IO).Run(d, g.definitionOf(api, d.Run))
		return nil
	})
}

// definitionOf reads the workflow version of a run, to draw it. It returns nil if the server does
// not return the version or this program cannot parse it; the rest is shown anyway.
func (g *globals) definitionOf(api service, r *gatehouse.Run) *workflow.Definition {
	w, err := api.FindWorkflow(g.Ctx, r.Workflow, r.Version)
	if err != nil {
		return nil
	}
	def, err := workflow.Parse([]byte(w.Source))
	if err != nil {
		return nil
	}
	return def
}
