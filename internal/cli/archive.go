package cli

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// archiveCmd shows what the archiver would move.
type archiveCmd struct {
	DryRun    bool               `required:"" name:"dry-run" help:"Only report; the server itself archives."`
	Retention gatehouse.Duration `placeholder:"180d" help:"Use this retention instead of the configured one."`
}

func (*archiveCmd) Help() string {
	return `
Counts the actions of your tenant that ended longer ago than the retention and can be
archived now. The server's archiver archives them in the background. Needs an
administrator. Piped, each line is a name and a value.

Examples:

    gatehouse archive --dry-run
    gatehouse archive --dry-run --retention 180d --json
`
}

func (c *archiveCmd) Run(g *globals, api service) error {
	p, err := api.PreviewArchive(g.Ctx, c.Retention.D())
	return printOutcome(g, p, err, func() error {
		t := &term.Table{Header: []string{"WHAT", "VALUE"}, Wide: 1}
		t.Add("retention", p.Retention.String())
		t.Add("ended before", g.At(p.EndedBefore))
		t.Add("actions", strconv.Itoa(p.Actions))
		t.Add("bytes", strconv.FormatInt(p.Bytes, 10))
		if p.Oldest != nil && p.Newest != nil {
			t.Add("oldest ended", g.At(*p.Oldest))
			t.Add("newest ended", g.At(*p.Newest))
		}
		for _, n := range p.Tenants {
			t.Add("of "+n.Tenant, strconv.Itoa(n.Actions))
		}
		if err := g.Print(t, ""); err != nil {
			return err
		}
		switch least := gatehouse.Duration(gatehouse.MinRetention); {
		case !p.Complete:
			g.Say("The time ran out before the end of the store: there may be more.")
		case p.Configured == nil:
			g.Say("The server has no retention: it archives nothing. Set retention.finished, at least %s.", least)
		case *p.Configured != p.Retention:
			g.Say("The server's own retention is %s.", *p.Configured)
		}
		return nil
	})
}
