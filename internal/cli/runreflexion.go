package cli

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse/internal/sheet"
)

// runReflexionCmd shows the lessons of a run.
type runReflexionCmd struct {
	ID string `arg:"" help:"The run."`
}

func (*runReflexionCmd) Help() string {
	return `
What was attempted, what happened, and what to do otherwise. A run that has not
ended has none yet.

Examples:

    gatehouse run reflexion run_01993b7e
`
}

func (c *runReflexionCmd) Run(g *globals, api service) error {
	x, err := api.RunReflexion(g.Ctx, c.ID)
	switch {
	case err != nil:
		return err
	case g.JSON:
		return g.PrintJSON(x)
	}
	s := sheet.New(&g.IO)
	s.Line("run", x.RunID)
	s.Line("workflow", fmt.Sprintf("%s, version %d", x.Workflow, x.Version))
	s.Line("outcome", string(x.Outcome))
	s.Line("at", s.When(x.At))
	s.Line("attempted", x.Attempted)
	s.Line("happened", x.Happened)
	s.Line("otherwise", x.Otherwise)
	return nil
}
