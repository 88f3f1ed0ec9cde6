package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// editCmd edits the change of a pending action.
type editCmd struct {
	ID               string           `arg:"" help:"The pending action."`
	Set              []string         `sep:"none" placeholder:"FIELD=TEXT" help:"A field's new value; FIELD:=JSON if it is not text, FIELD:=null removes the field. Repeatable."`
	File             string           `short:"f" placeholder:"FILE" help:"Read the whole new change from a file, - for stdin."`
	Note             string           `aliases:"notes,reason" placeholder:"TEXT" help:"Why; the agent reads it."`
	Digest           gatehouse.Digest `placeholder:"DIGEST" help:"The digest of what you saw. Without it, the changes are shown and you are asked."`
	Approve          bool             `help:"Also approve the edited change; if that fails, nothing is edited."`
	Confirm          string           `placeholder:"VALUE" help:"The value of the edited change that L4 and L5 ask to be retyped, with --approve."`
	AcknowledgeStale bool             `help:"With --approve: approve even if the target has changed since the proposal."`
	DryRun           bool             `help:"Only print what would change, and who may approve it; with --json also the action as it would be."`
}

func (*editCmd) Help() string {
	return `
Replaces a pending action that you may decide by a revision with an edited change.
The agent stays its proposer and learns what was changed and why; both changes are
kept. The policy evaluates the edited change, and votes start again. The
differences, and who may approve them, are printed on stderr before anything is
stored. With --approve and without --digest, the whole edited action is shown.

Examples:

    gatehouse edit act_01993b7e --set price=11.90 --note "the price list says 11.90"
    gatehouse edit act_01993b7e --set price=11.90 --note "typo" --approve \
      --digest sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
    gatehouse edit act_01993b7e -f change.json --dry-run
`
}

func (c *editCmd) Run(g *globals, api service) error {
	e := gatehouse.EditRequest{
		Digest: c.Digest, Note: strings.TrimSpace(c.Note), Approve: c.Approve, Confirm: c.Confirm,
		AcknowledgeStale: c.AcknowledgeStale,
	}
	var err error
	switch {
	case (c.File == "") == (len(c.Set) == 0):
		return term.Usagef("give either --set or --file")
	case e.Note == "" && !c.DryRun:
		return term.Usagef("say why with --note: the agent reads it")
	case c.Digest == "" && g.Terminal == nil && !c.DryRun:
		return term.Usagef(
			"what is edited must have been seen: give --digest (see `gatehouse show %s`), or run this on a terminal",
			term.Safe(c.ID),
		)
	case c.File == "":
		e.Patch, err = fields("--set", c.Set)
	default:
		var b []byte
		if b, err = term.ReadInput(&g.IO, c.File); err == nil {
			e.ProposedChange, err = gatehouse.Canonicalize(b)
		}
	}
	if err != nil {
		return err
	}
	a, err := api.FindAction(g.Ctx, c.ID)
	if err != nil {
		return err
	}
	g.named = a.ID
	ask := e.Digest == ""
	if ask {
		if got := a.ComputeDigest(); got != a.Digest {
			return fmt.Errorf(
				"the content of %s has the digest %s, but the server says %s: do not edit this", a.ID, got, a.Digest)
		}
		e.Digest = a.Digest
	}
	tried, err := c.preview(g, api, a, e)
	if err != nil || c.DryRun {
		return err
	}
	if ask {
		if err := c.confirm(g, a.ID, tried); err != nil {
			return err
		}
	}
	edited, err := api.Edit(g.Ctx, a.ID, e)
	if err != nil {
		return err
	}
	return g.printProposed(edited)
}

// preview asks the server for a dry run of the edit, and prints the changes and who may approve them. It returns
// the action as it would be.
func (c *editCmd) preview(
	g *globals, api service, a *gatehouse.Action, e gatehouse.EditRequest,
) (tried *gatehouse.Action, err error) {
	me, err := api.WhoAmI(g.Ctx)
	if err != nil {
		return nil, err
	}
	e.DryRun, e.Approve = true, false
	if tried, err = api.Edit(g.Ctx, a.ID, e); err != nil {
		return nil, err
	}
	for _, x := range card.Edited(a.ProposedChange, tried.ProposedChange) {
		g.Say("  %s", sheet.MovedText(x))
	}
	g.Say("%s", term.Safe(card.AfterEdit(tried, me)))
	if c.DryRun && g.JSON {
		return tried, g.PrintJSON(tried)
	}
	return tried, nil
}

// confirm asks for confirmation on the person's terminal. With --approve, it first shows all of the edited action,
// since that is what is approved.
func (c *editCmd) confirm(g *globals, id string, tried *gatehouse.Action) error {
	question := "Edit " + id + "?"
	if c.Approve {
		question = fmt.Sprintf("Edit %s, and approve the edited change (%s)?", id, tried.RiskLevel)
	}
	tty, err := g.Terminal()
	if err != nil {
		return term.Usagef("there is no terminal to ask on (%v): give --digest", err)
	}
	defer tty.Close()
	if c.Approve {
		g.sheetOn(tty).Action(tried)
		fmt.Fprintln(tty)
	}
	fmt.Fprintf(tty, "%s [y/N] ", question)
	in := &prompt{ctx: g.Ctx, in: bufio.NewReader(tty)}
	if yes, err := in.yes(); err != nil || yes {
		return err
	}
	return fmt.Errorf("not edited; nothing was stored")
}
