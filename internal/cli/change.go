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
The proposer can cancel while the action is pending; an approver during the hold of
an approved action. After that the command exits 12. A canceled action has ended;
"gatehouse undo" asks people again instead.

Examples:

    gatehouse cancel act_01993b7e
`
}

func (c *cancelCmd) Run(g *globals, api service) error {
	answer, err := api.Cancel(g.Ctx, c.ID)
	return show(g, answer, err, func() *term.Table {
		return term.Row([]string{"ID", "RESULT"}, answer.Action.ID, answer.Result)
	})
}

// undoCmd takes decisions back.
type undoCmd struct {
	IDs []string `arg:"" name:"id" help:"The actions."`
}

func (*undoCmd) Help() string {
	return `
Takes back a decision before it has had any effect: an approval during its hold,
and a rejection that was given with --hold. A new revision of the same change is
judged and decided again; votes do not carry over. Everybody who was asked can undo.
After that the command exits 12. Use "gatehouse reverse" for a change that was
already sent.

Examples:

    gatehouse undo act_01993b7e
`
}

// failedUndo is an action whose decision was not taken back.
type failedUndo struct {
	ID     string         `json:"id"`
	Code   gatehouse.Code `json:"code"`
	Detail string         `json:"detail"`
}

// Run takes the decisions back. It prints the result for each action, then fails with the first
// error.
func (c *undoCmd) Run(g *globals, api service) error {
	t := &term.Table{Header: []string{"ID", "RESULT", "REVISION", "STATUS"}}
	answers, failed, first := []*gatehouse.UndoAnswer{}, []failedUndo{}, error(nil)
	for _, id := range c.IDs {
		answer, err := api.Undo(g.Ctx, id)
		switch {
		case err == nil:
			answers = append(answers, answer)
			t.Add(answer.Action.Supersedes, answer.Result, answer.Action.ID, string(answer.Action.Status))
		case len(c.IDs) == 1:
			return err
		default:
			t.Add(id, string(gatehouse.CodeOf(err)), "", "")
			failed = append(failed, failedUndo{id, gatehouse.CodeOf(err), err.Error()})
			if first == nil {
				first = err
			}
		}
	}
	if g.JSON {
		if err := g.PrintJSON(map[string]any{"items": answers, "failed": failed}); err != nil {
			return err
		}
		return first
	}
	if err := g.Print(t, ""); err != nil {
		return err
	}
	return first
}

// reviseCmd replaces a pending action.
type reviseCmd struct {
	ID            string `arg:"" help:"The pending action that is replaced."`
	proposalFlags `embed:""`
}

func (*reviseCmd) Help() string {
	return `
Makes a new action with its own digest; the old one is superseded and its votes
do not carry over. Takes the whole proposal, as "gatehouse propose" does.

Examples:

    gatehouse revise act_01993b7e -f change.json
`
}

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

// rebaseCmd proposes a pending action again on the present state of its target.
type rebaseCmd struct {
	ID string `arg:"" help:"The pending action whose target has changed."`
}

func (*rebaseCmd) Help() string {
	return `
Proposes the same change on the present state of its target, which the gate reads.
The proposer stays the same; the old action is superseded and its votes do not
carry over. The changes of the target are printed on stderr.

Examples:

    gatehouse rebase act_01993b7e
`
}

func (c *rebaseCmd) Run(g *globals, api service) error {
	old, err := api.FindAction(g.Ctx, c.ID)
	if err != nil {
		return err
	}
	a, err := api.Rebase(g.Ctx, old.ID)
	if err != nil {
		return err
	}
	g.Say("The target has changed:")
	for _, m := range card.Moved(old, a) {
		g.Say("  %s", sheet.MovedText(m))
	}
	return g.printProposed(a)
}

// reverseCmd proposes the reversal of an applied action.
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
	g.printNext(a)
	if a.Status == gatehouse.StatusDenied {
		return term.Exit(term.ExitRejected)
	}
	return nil
}
