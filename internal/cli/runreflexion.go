package cli

import (
	"fmt"
)

// runReflexionCmd shows what a run teaches.
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

// Run shows.
func (c *runReflexionCmd) Run(g *globals, api service) error {
	x, err := api.RunReflexion(g.ctx, c.ID)
	switch {
	case err != nil:
		return err
	case g.json:
		return g.printJSON(x)
	}
	s := newSheet(&g.termIO)
	s.line("run", x.RunID)
	s.line("workflow", fmt.Sprintf("%s, version %d", x.Workflow, x.Version))
	s.line("outcome", string(x.Outcome))
	s.line("at", s.when(x.At))
	s.line("attempted", x.Attempted)
	s.line("happened", x.Happened)
	s.line("otherwise", x.Otherwise)
	return nil
}
