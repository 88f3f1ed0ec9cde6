package cli

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// cancelCmd cancels an action.
type cancelCmd struct {
	ID string `arg:"" help:"The action."`
}

func (*cancelCmd) Help() string {
	return `
The proposer can cancel while the action is pending; an approver while an
approved action rests before it is sent. Later it is too late: exit code 12.

Examples:

    gatehouse cancel act_01993b7e
`
}

// Run cancels.
func (c *cancelCmd) Run(g *globals, api service) error {
	answer, err := api.Cancel(g.Ctx, c.ID)
	return show(g, answer, err, func() *term.Table {
		return term.Row([]string{"ID", "RESULT"}, answer.Action.ID, answer.Result)
	})
}

// reviseCmd replaces a pending action.
type reviseCmd struct {
	ID            string `arg:"" help:"The pending action that is replaced."`
	proposalFlags `embed:""`
}

func (*reviseCmd) Help() string {
	return `
Makes a new action, with a digest of its own; the old one is superseded and its
votes do not carry over. The proposal is given whole, as to "gatehouse propose".

Examples:

    gatehouse revise act_01993b7e -f change.json
`
}

// Run revises.
func (c *reviseCmd) Run(g *globals, api service) error {
	p, err := c.proposal(g)
	if err != nil {
		return err
	}
	a, err := api.Revise(g.Ctx, c.ID, p)
	if err != nil {
		return err
	}
	return g.printProposed(a)
}

// rebaseCmd proposes a pending action anew on the present state of its target.
type rebaseCmd struct {
	ID string `arg:"" help:"The pending action whose target has changed."`
}

func (*rebaseCmd) Help() string {
	return `
Proposes the same change on the present state of its target, which the gate reads.
The new action stays its proposer's; the old one is superseded and its votes do not
carry over. What has moved since is printed to stderr.

Examples:

    gatehouse rebase act_01993b7e
`
}

// Run rebases.
func (c *rebaseCmd) Run(g *globals, api service) error {
	old, err := api.FindAction(g.Ctx, c.ID)
	if err != nil {
		return err
	}
	a, err := api.Rebase(g.Ctx, old.ID)
	if err != nil {
		return err
	}
	g.Say("The target has moved:")
	for _, m := range card.Moved(old, a) {
		g.Say("  %s", sheet.MovedText(m))
	}
	return g.printProposed(a)
}

// reverseCmd proposes to undo an applied action.
type reverseCmd struct {
	ID        string `arg:"" help:"The applied action."`
	Rationale string `placeholder:"TEXT" help:"Why."`
}

func (*reverseCmd) Help() string {
	return `
Proposes the reversal that the receipt describes. It is an action of its own, and
goes through the gate like any other.

Examples:

    gatehouse reverse act_01993b7e --rationale "wrong supplier"
`
}

// Run proposes the reversal.
func (c *reverseCmd) Run(g *globals, api service) error {
	a, err := api.Reverse(g.Ctx, c.ID, gatehouse.ReverseRequest{Rationale: c.Rationale})
	if err != nil {
		return err
	}
	return g.printProposed(a)
}

// printProposed prints a new action and its state. If the policy denied it at once, the exit code
// is 10.
func (g *globals) printProposed(a *gatehouse.Action) error {
	if err := g.printAction(a); err != nil {
		return err
	}
	g.tellNext(a)
	if a.Status == gatehouse.StatusDenied {
		return term.Exit(term.ExitRejected)
	}
	return nil
}
