package cli

import (
	"context"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// pushCmd groups the commands about pushes.
type pushCmd struct {
	List    pushListCmd    `cmd:"" help:"List pushes."`
	Health  pushHealthCmd  `cmd:"" help:"Print the state of each connector and of the queue."`
	Drain   pushDrainCmd   `cmd:"" help:"Show due pushes, or send them now."`
	Resolve pushResolveCmd `cmd:"" help:"Settle a push whose outcome is unknown."`
	Ask     pushAskCmd     `cmd:"" help:"Ask targets about unknown outcomes."`
	Mark    pushMarkCmd    `cmd:"" name:"mark-unknown" help:"Hold back pushes that a restored backup would send again."`
}

// pushListCmd lists pushes.
type pushListCmd struct {
	Status gatehouse.PushStatus `enum:",queued,picking,sent,applied,failed,unknown,canceled" default:"" placeholder:"STATUS" help:"queued, picking, sent, applied, failed, unknown or canceled."`
	paging `embed:""`
}

func (*pushListCmd) Help() string {
	return `
Piped, the columns are: id, action, connector, status, attempts, created, next
attempt, last error, change.

Examples:

    gatehouse push list --status unknown
    gatehouse push list --all --json
`
}

func (c *pushListCmd) Run(g *globals, api service) error {
	page, err := collect(g.Ctx, &c.paging,
		func(ctx context.Context, cursor string, limit int) (gatehouse.Page[*gatehouse.Push], error) {
			return api.ListPushes(ctx, gatehouse.PushFilter{Status: c.Status, Cursor: cursor, Limit: limit})
		})
	if err != nil {
		return err
	}
	var changes []string
	if !g.JSON {
		if changes, err = g.changesOf(api, page.Items); err != nil {
			return err
		}
	}
	return showPage(g, page, nil, "No pushes.", func() *term.Table {
		t := &term.Table{
			Header: []string{"ID", "ACTION", "CONNECTOR", "STATUS", "ATTEMPTS", "CREATED", "NEXT ATTEMPT",
				"LAST ERROR", "CHANGE"},
			Wide: 8, Drop: []int{1, 2, 6, 4, 5},
		}
		ids := term.IDsOf(&g.IO, page.Items, func(p *gatehouse.Push) string { return p.ID })
		actions := term.IDsOf(&g.IO, page.Items, func(p *gatehouse.Push) string { return p.ActionID })
		for i, p := range page.Items {
			failure := p.LastError
			if g.TTY {
				failure = term.Shorten(term.Safe(failure), maxListedError)
			}
			t.Add(ids[i], actions[i], p.Connector, string(p.Status), strconv.Itoa(p.Attempts), g.At(p.CreatedAt),
				g.AtPtr(p.NextAttempt), failure, changes[i])
		}
		return t
	})
}

// maxListedError is how many columns of an error a list shows on a terminal.
const maxListedError = 40

// changesOf returns the change of each push as text, "" for an action that the caller may not
// read.
func (g *globals) changesOf(api service, pushes []*gatehouse.Push) ([]string, error) {
	changes := make([]string, len(pushes))
	for i, p := range pushes {
		a, err := api.FindAction(g.Ctx, p.ActionID)
		switch gatehouse.CodeOf(err) {
		case "":
			changes[i] = card.RowText(a)
		case gatehouse.CodeNotFound, gatehouse.CodeRoleRequired:
		default:
			return nil, err
		}
	}
	return changes, nil
}

// changeText is the change of an operation as the text of a row.
func changeText(connector, operation string, target gatehouse.Target, before, after gatehouse.JSON) string {
	return card.RowText(&gatehouse.Action{Proposal: gatehouse.Proposal{
		Operation: operation, Target: target, Connector: connector, CurrentState: before, ProposedChange: after,
	}})
}

// pushDrainCmd lists the pushes that are due, and with --send sends them.
type pushDrainCmd struct {
	Send  bool `help:"Send them. Without this flag nothing is sent."`
	Limit int  `default:"100" help:"Maximum number of items."`
}

func (*pushDrainCmd) Help() string {
	return `
Exits 13 when the outcome of a push that was sent is unknown, 1 when one failed.
Piped, the columns are: push, action, connector, class, change, outcome, detail.

Examples:

    gatehouse push drain
    gatehouse push drain --send --limit 10
`
}

func (c *pushDrainCmd) Run(g *globals, api service) error {
	if c.Limit < 1 {
		return term.Usagef("--limit must be at least 1")
	}
	dry := !c.Send
	answer, err := api.Drain(g.Ctx, gatehouse.DrainRequest{DryRun: &dry, Limit: c.Limit})
	err = printOutcome(g, answer, err, func() error { return g.printDrain(answer) })
	if err != nil || answer.DryRun {
		return err
	}
	return drainExit(answer)
}

func (g *globals) printDrain(answer *gatehouse.DrainAnswer) error {
	t := &term.Table{Header: []string{"PUSH", "ACTION", "CONNECTOR", "CLASS", "CHANGE", "OUTCOME", "DETAIL"}, Wide: 4,
		Drop: []int{3, 2, 1}}
	for _, i := range answer.Items {
		t.Add(i.PushID, i.ActionID, i.Connector, i.Class, changeText(i.Connector, i.Operation, i.Target, "", i.Change),
			i.Outcome, i.Detail)
	}
	if err := g.Print(t, "Nothing is due."); err != nil {
		return err
	}
	if answer.DryRun && len(answer.Items) > 0 {
		g.Say("Nothing was sent: this was a dry run. To send: gatehouse push drain --send")
	}
	return nil
}

func drainExit(answer *gatehouse.DrainAnswer) error {
	var err error
	for _, i := range answer.Items {
		switch gatehouse.PushStatus(i.Outcome) {
		case gatehouse.PushUnknown:
			return term.Exit(term.ExitUnknown)
		case gatehouse.PushFailed:
			err = term.Exit(term.ExitError)
		}
	}
	return err
}

// pushResolveCmd records an operator's statement about an unknown outcome.
type pushResolveCmd struct {
	ID      string `arg:"" help:"The push."`
	Outcome string `required:"" enum:"applied,failed" placeholder:"OUTCOME" help:"What you found at the target: applied or failed."`
	Reason  string `required:"" placeholder:"TEXT" help:"How you know."`
}

func (*pushResolveCmd) Help() string {
	return `
Only a push whose outcome is unknown can be resolved: look at the target first.
Nothing is sent.

Examples:

    gatehouse push resolve psh_01993b7e --outcome applied --reason "order 1042 shows the refund"
`
}

func (c *pushResolveCmd) Run(g *globals, api service) error {
	p, err := api.ResolvePush(g.Ctx, c.ID, gatehouse.Resolution{Outcome: c.Outcome, Reason: c.Reason})
	return show(g, p, err, func() *term.Table {
		return term.Row([]string{"ID", "ACTION", "STATUS"}, p.ID, p.ActionID, string(p.Status))
	})
}
