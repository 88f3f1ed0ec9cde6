package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// approveCmd approves an action.
type approveCmd struct {
	ID               string           `arg:"" help:"The action, or its approval."`
	Digest           gatehouse.Digest `placeholder:"DIGEST" help:"The digest of what you saw. Without it the action is shown and you are asked."`
	Confirm          string           `placeholder:"VALUE" help:"The value that L4 and L5 ask to be retyped."`
	Notes            string           `aliases:"note" placeholder:"TEXT" help:"Kept with your vote."`
	Yes              bool             `short:"y" help:"Show, but do not ask; for L1 to L3 only."`
	AcknowledgeStale bool             `help:"Approve although the target changed since the proposal."`
}

func (*approveCmd) Help() string {
	return `
Nothing can be approved unseen: on a terminal the action is shown first and you
are asked; anywhere else --digest says which bytes you saw. L4 and L5 also need
the value that matters, typed on the terminal or given by --confirm; --yes does
not replace it.

Repeating your approval is not an error. A vote that does not yet meet the
quorum exits 0 too; see "gatehouse wait".

Examples:

    gatehouse approve act_01993b7e
    gatehouse approve act_01993b7e --notes "checked with the supplier" \
      --digest sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
    gatehouse approve act_01993b7e --confirm 480.00 \
      --digest sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
`
}

func (c *approveCmd) Run(g *globals, api service) error {
	if c.Digest == "" && g.Terminal == nil {
		return term.Usagef("what is approved must have been seen: give --digest (see `gatehouse show %s`), or "+
			"run this on a terminal", term.Safe(c.ID))
	}
	d := gatehouse.Decision{
		Decision: gatehouse.Approve, Notes: c.Notes, Digest: c.Digest, Confirm: c.Confirm,
		AcknowledgeStale: c.AcknowledgeStale,
	}
	if c.Digest == "" {
		a, err := api.FindAction(g.Ctx, c.ID)
		if err != nil {
			return err
		}
		if err := c.ask(g, a, &d); err != nil {
			return err
		}
	}
	return g.decide(api, c.ID, d)
}

// ask shows the action on the person's terminal and asks for confirmation. It sets d.Digest to the
// digest of the shown content.
func (c *approveCmd) ask(g *globals, a *gatehouse.Action, d *gatehouse.Decision) error {
	if got := a.ComputeDigest(); got != a.Digest {
		return fmt.Errorf("the content of %s has the digest %s, but the server says %s: do not approve this", a.ID, got,
			a.Digest)
	}
	d.Digest = a.Digest
	if a.Status != gatehouse.StatusPending {
		// Nothing to ask: the server answers with the action's state.
		return nil
	}
	tty, err := g.Terminal()
	if err != nil {
		return term.Usagef("there is no terminal to show the action on (%v): give --digest", err)
	}
	defer tty.Close()
	g.sheetOn(tty).Action(a)
	fmt.Fprintln(tty)
	in := &prompt{ctx: g.Ctx, in: bufio.NewReader(tty)}
	if a.RiskLevel.NeedsConfirmation() && d.Confirm == "" {
		return retype(tty, in, a, d)
	}
	if c.Yes && !a.RiskLevel.NeedsConfirmation() {
		return nil
	}
	fmt.Fprintf(tty, "Approve %s %s? [y/N] ", a.RiskLevel, a.ID)
	if yes, err := in.yes(); err != nil || yes {
		return err
	}
	return fmt.Errorf("not approved; nothing was sent")
}

// sheetOn returns a sheet on the person's terminal.
func (g *globals) sheetOn(tty io.Writer) *sheet.Sheet {
	return sheet.On(tty, g.Now, max(g.Columns, 40), g.Color || g.ColorErr)
}

// retype asks the person to retype the value that confirms the approval.
func retype(tty io.Writer, in *prompt, a *gatehouse.Action, d *gatehouse.Decision) error {
	if a.Approval == nil || a.Approval.Confirm == nil {
		return fmt.Errorf("%s is %s, but the server does not say what to retype", a.ID, a.RiskLevel)
	}
	confirm := a.Approval.Confirm
	fmt.Fprintf(tty, "%s\n> ", term.Safe(confirm.Prompt))
	answer, err := in.line()
	if err != nil {
		return err
	}
	if answer == "" || confirm.Value != "" && answer != confirm.Value {
		return fmt.Errorf("that is not the value asked for; nothing was sent")
	}
	d.Confirm = answer
	return nil
}

// prompt reads answers from a terminal.
type prompt struct {
	ctx context.Context
	in  *bufio.Reader
}

// yes reports whether the next line is y or yes.
func (p *prompt) yes() (bool, error) {
	answer, err := p.line()
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", err
}

// line reads one line; the end of the input is an error. It returns at once when the person
// interrupts, although the read itself ends only with the process.
func (p *prompt) line() (string, error) {
	type answer struct {
		line string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		line, err := p.in.ReadString('\n')
		read <- answer{line, err}
	}()
	select {
	case <-p.ctx.Done():
		return "", p.ctx.Err()
	case a := <-read:
		if a.err != nil {
			return "", fmt.Errorf("no answer; nothing was sent")
		}
		return strings.TrimSpace(a.line), nil
	}
}

// rejectCmd rejects an action.
type rejectCmd struct {
	ID     string           `arg:"" help:"The action, or its approval."`
	Notes  string           `aliases:"note,reason" placeholder:"TEXT" help:"Why; kept with your vote, and what the agent learns from."`
	Digest gatehouse.Digest `placeholder:"DIGEST" help:"The digest of what you saw, to be checked."`
	Hold   bool             `help:"Reject after the action's hold; until then \"gatehouse undo\" takes it back."`
}

func (*rejectCmd) Help() string {
	return `
One rejection by an entitled person decides. On a terminal, without --notes (or
--reason), the action is shown and you are asked why; an empty answer sends
nothing. Piped, a rejection without --notes has none. Repeating a rejection that
is already made is not an error; its notes are not stored, and a message says so.

Examples:

    gatehouse reject act_01993b7e --notes "the price list says 11.90"
`
}

func (c *rejectCmd) Run(g *globals, api service) error {
	d := gatehouse.Decision{Decision: gatehouse.Reject, Notes: c.Notes, Digest: c.Digest, Hold: c.Hold}
	if c.Notes == "" && g.Terminal != nil {
		a, err := api.FindAction(g.Ctx, c.ID)
		if err != nil {
			return err
		}
		if err := g.askWhy(a, &d); err != nil {
			return err
		}
	}
	return g.decide(api, c.ID, d)
}

// askWhy shows the action on the person's terminal and asks for the reason of the rejection. An
// action that is not pending is only shown: the server answers with its state.
func (g *globals) askWhy(a *gatehouse.Action, d *gatehouse.Decision) error {
	tty, err := g.Terminal()
	if err != nil {
		return term.Usagef("there is no terminal to ask on (%v): give --notes", err)
	}
	defer tty.Close()
	g.sheetOn(tty).Action(a)
	fmt.Fprintln(tty)
	if a.Status != gatehouse.StatusPending {
		return nil
	}
	fmt.Fprintf(tty, "Why do you reject %s? The agent reads the answer.\n> ", a.ID)
	in := &prompt{ctx: g.Ctx, in: bufio.NewReader(tty)}
	if d.Notes, err = in.line(); err != nil {
		return err
	}
	if d.Notes == "" {
		return fmt.Errorf("no reason given, not rejected; nothing was sent")
	}
	if d.Digest == "" {
		d.Digest = a.Digest
	}
	return nil
}

// decide sends the decision, and prints the result. It calls Answer, for which a repetition is no error, or
// Decide with --acknowledge-stale, which Answer does not have.
func (g *globals) decide(api service, id string, d gatehouse.Decision) error {
	g.named = id
	if d.AcknowledgeStale {
		answer, err := api.Decide(g.Ctx, id, d)
		if err != nil {
			return err
		}
		if g.JSON {
			return g.PrintJSON(answer)
		}
		status := answer.Code
		if status == gatehouse.Decided {
			status = string(d.Decision)
		}
		g.sayNotesNotStored(answer.NotesStored)
		by, at := g.whoDecided(api, answer.Action, status)
		return g.printAnswer(answer.Action.ID, status, answer.Votes, answer.Required, by, at)
	}
	answer, err := api.Answer(g.Ctx, id, d)
	return printOutcome(g, answer, err, func() error {
		g.sayNotesNotStored(answer.NotesStored)
		by, at := answer.ApprovedBy, g.AtPtr(answer.ApprovedAt)
		if answer.RejectedBy != "" {
			by, at = answer.RejectedBy, g.AtPtr(answer.RejectedAt)
		}
		if by == "" { // set only if the decision was made before
			if a, err := api.FindAction(g.Ctx, answer.ActionID); err == nil {
				by, at = g.whoDecided(api, a, answer.Status)
			}
		}
		return g.printAnswer(answer.ActionID, answer.Status, answer.Votes, answer.Required, by, at)
	})
}

// whoDecided returns who decided an action, and when; if more votes are needed, the caller and the
// time of their vote.
func (g *globals) whoDecided(api service, a *gatehouse.Action, status string) (by, at string) {
	if v, _ := a.HeldRejection(); v != nil {
		return v.Name, g.At(v.At)
	}
	if status != gatehouse.VoteRecorded || a.Approval == nil {
		return a.DecidedBy, g.AtPtr(a.DecidedAt)
	}
	me, err := api.WhoAmI(g.Ctx)
	if err != nil {
		return "", ""
	}
	for _, v := range a.Approval.Votes {
		if v.PrincipalID == me.ID {
			by, at = v.Name, g.At(v.At)
		}
	}
	return by, at
}

// sayNotesNotStored says so if the notes were not stored.
func (g *globals) sayNotesNotStored(stored *bool) {
	if stored != nil && !*stored {
		g.Say("Your notes were not stored: the decision was made before.")
	}
}

func (g *globals) printAnswer(id, status string, votes, required int, by, at string) error {
	t := &term.Table{Header: []string{"ID", "RESULT", "BY", "AT"}}
	t.Add(id, status, by, at)
	if err := g.Print(t, ""); err != nil {
		return err
	}
	switch status {
	case gatehouse.VoteRecorded:
		g.Say("Your vote is recorded: %d of %d approvals.", votes, required)
	case gatehouse.AlreadyApproved, gatehouse.AlreadyRejected:
		g.Say("This decision was already made.")
	}
	return nil
}
