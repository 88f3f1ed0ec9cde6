package cli

import (
	"cmp"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// pushMarkCmd holds back the pushes that a restored store would send again.
type pushMarkCmd struct {
	Before    string `required:"" placeholder:"TIME" help:"Only pushes created before this time (RFC 3339): the time when the server first ran on the restored store."`
	Mark      bool   `help:"Mark them. Without this flag nothing is changed."`
	Tenant    string `placeholder:"TENANT" help:"The tenant: the caller's own, which is the default; no other is allowed."`
	Connector string `placeholder:"NAME" help:"Only those of this connector."`
	Class     string `enum:",A,B,C" default:"" placeholder:"CLASS" help:"Only those of this class: A, B or C."`
}

func (*pushMarkCmd) Help() string {
	return `
A store that was restored from a backup would send again the pushes that were queued
at the time of the backup. An administrator marks the pushes of their own tenant as
unknown, with the error code "restored": they are not sent before their outcome is
settled with push ask or push resolve. Exits 13 when a push was marked. Piped, the
columns are: push, tenant, action, connector, class, change, was, made.

Examples:

    gatehouse push mark-unknown --before 2026-11-20T10:00:00Z
    gatehouse push mark-unknown --before 2026-11-20T10:00:00Z --mark
`
}

// Run marks the pushes, in as many calls as needed. Without --mark it makes one call, which only lists pushes.
func (c *pushMarkCmd) Run(g *globals, api service) error {
	before, err := time.Parse(time.RFC3339, c.Before)
	if err != nil {
		return term.Usagef("--before must be a time such as 2026-11-20T10:00:00Z")
	}
	dry := !c.Mark
	out := &gatehouse.MarkUnknownAnswer{DryRun: dry, Items: []gatehouse.MarkedPush{}}
	var failed error
	for more := true; more; {
		answer, err := api.MarkUnknown(g.Ctx, gatehouse.MarkUnknownRequest{
			Before: before, Tenant: c.Tenant, Connector: c.Connector, Class: c.Class, DryRun: &dry,
		})
		if err != nil {
			failed = err
			break
		}
		out.Items, out.Marked, out.More = append(out.Items, answer.Items...), out.Marked+answer.Marked, answer.More
		// Each call lists only pushes that are still queued, picking or sent. Marked and ended pushes are none of
		// these, so the loop ends.
		more = answer.More && !dry
	}
	if failed != nil && len(out.Items) == 0 {
		return failed
	}
	// The pushes that earlier calls marked are printed even if a later call failed.
	err = cmp.Or(printOutcome(g, out, nil, func() error { return g.printMarked(out) }), failed)
	if err == nil && out.Marked > 0 {
		err = term.Exit(term.ExitUnknown)
	}
	return err
}

func (g *globals) printMarked(out *gatehouse.MarkUnknownAnswer) error {
	t := &term.Table{Header: []string{"PUSH", "TENANT", "ACTION", "CONNECTOR", "CLASS", "CHANGE", "WAS", "MADE"},
		Wide: 5, Drop: []int{7, 2, 1}}
	for _, m := range out.Items {
		t.Add(m.PushID, m.Tenant, m.ActionID, m.Connector, m.Class,
			changeText(m.Connector, m.Operation, m.Target, "", m.Change), string(m.Was), g.At(m.CreatedAt))
	}
	if err := g.Print(t, "No queued or sent push was created before that time."); err != nil {
		return err
	}
	switch {
	case out.DryRun && out.More:
		g.Say("There are more. Nothing was changed: this was a dry run. To mark all: --mark")
	case out.DryRun && len(out.Items) > 0:
		g.Say("Nothing was changed: this was a dry run. To mark them: --mark")
	case out.Marked > 0:
		g.Say("%d marked as unknown. Next: gatehouse push ask; for what is left: gatehouse push resolve", out.Marked)
	}
	return nil
}

// pushAskCmd asks targets about unknown outcomes.
type pushAskCmd struct {
	IDs []string `arg:"" optional:"" name:"id" help:"The pushes; all that are unknown when none is named."`
}

func (*pushAskCmd) Help() string {
	return `
Asks the target of each push with an unknown outcome whether the push had its effect,
and settles the pushes whose outcome it can prove. Nothing is sent. Exits 13 when some
are still unknown. Piped, the columns are: push, outcome, detail.

Examples:

    gatehouse push ask
    gatehouse push ask psh_01993b7e
`
}

// Run asks the targets and prints the results. After a failure, it prints the results of the earlier calls.
func (c *pushAskCmd) Run(g *globals, api service) error {
	out := &gatehouse.AskAnswer{Results: []gatehouse.AskResult{}}
	failed := c.ask(g, api, out)
	if failed != nil && len(out.Results) == 0 {
		return failed
	}
	err := showList(g, out, nil, "No outcome is unknown.", func() *term.Table {
		t := &term.Table{Header: []string{"PUSH", "OUTCOME", "DETAIL"}, Wide: 2}
		for _, r := range out.Results {
			t.Add(r.PushID, string(r.Outcome), r.Detail)
		}
		return t
	})
	err = cmp.Or(err, failed)
	if err == nil && out.Settled < len(out.Results) {
		err = term.Exit(term.ExitUnknown)
	}
	return err
}

// ask adds the results to out, page by page.
func (c *pushAskCmd) ask(g *globals, api service, out *gatehouse.AskAnswer) error {
	add := func(r gatehouse.AskRequest) (cursor string, err error) {
		answer, err := api.AskTargets(g.Ctx, r)
		if err != nil {
			return "", err
		}
		out.Results, out.Settled = append(out.Results, answer.Results...), out.Settled+answer.Settled
		return answer.NextCursor, nil
	}
	if len(c.IDs) == 0 {
		for cursor, more := "", true; more; more = cursor != "" {
			var err error
			if cursor, err = add(gatehouse.AskRequest{Cursor: cursor}); err != nil {
				return err
			}
		}
	}
	for ids := c.IDs; len(ids) > 0; {
		n := min(len(ids), gatehouse.MaxAsked)
		if _, err := add(gatehouse.AskRequest{IDs: ids[:n]}); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}
