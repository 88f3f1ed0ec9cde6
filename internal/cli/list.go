package cli

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// pageSize is how many entries of a list are printed without --limit.
const pageSize = 50

// paging says how much of a list is printed.
type paging struct {
	Limit  int    `default:"${page_size}" help:"Maximum number to print."`
	All    bool   `help:"Print all, whatever the limit."`
	Cursor string `placeholder:"CURSOR" help:"Continue where a page ended."`
}

func (p *paging) check() error {
	if p.Limit < 1 {
		return term.Usagef("--limit must be at least 1")
	}
	return nil
}

// collect reads pages until it has p.Limit items, or with p.All all items.
func collect[T any](
	ctx context.Context, p *paging,
	read func(ctx context.Context, cursor string, limit int) (gatehouse.Page[T], error),
) (gatehouse.Page[T], error) {
	out := gatehouse.Page[T]{Items: []T{}, NextCursor: p.Cursor}
	if err := p.check(); err != nil {
		return out, err
	}
	for {
		limit := gatehouse.MaxLimit
		if !p.All {
			limit = min(limit, p.Limit-len(out.Items))
		}
		page, err := read(ctx, out.NextCursor, limit)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, page.Items...)
		out.NextCursor = page.NextCursor
		if out.NextCursor == "" || !p.All && len(out.Items) >= p.Limit {
			return out, nil
		}
	}
}

// listCmd lists actions.
type listCmd struct {
	Status     gatehouse.Status     `enum:",pending,approved,rejected,denied,expired,canceled,superseded,pushing,applied,failed,unknown,reversed" default:"" placeholder:"STATUS" help:"pending, approved, rejected, denied, expired, canceled, superseded, pushing, applied, failed, unknown or reversed."`
	Type       string               `placeholder:"TYPE" help:"The action type."`
	Risk       int                  `enum:"0,1,2,3,4,5" default:"0" placeholder:"1..5" help:"The risk level."`
	ProposedBy string               `placeholder:"NAME" help:"Name or id of the proposer."`
	Query      string               `short:"q" placeholder:"TEXT" help:"Beginnings of words of the type, the target, the title, the proposer, the rationale, the amount, the key or the proposed values; or an id."`
	Sort       gatehouse.Sort       `enum:"newest,urgency" default:"newest" help:"newest; or urgency: what is due, then risk, then age, pending ones only."`
	Group      string               `placeholder:"NAME" help:"Only those that ask this group of people."`
	Assignee   string               `placeholder:"NAME" help:"Only those assigned to this person; me is you."`
	Decided    gatehouse.DecidedHow `enum:",approved,people,allowed" default:"" placeholder:"HOW" help:"approved: by people; people: approved or rejected by people; allowed: by the policy alone."`
	Archived   bool                 `help:"List the archive instead, newest first; --query is then an id."`
	paging     `embed:""`
}

func (*listCmd) Help() string {
	return `
Piped, the columns are: id, status, risk, type, change, proposed by, proposed at,
expires at. If a pending action exceeds ceilings now, its change ends with
"exceeds" and their names.

Examples:

    gatehouse list --sort urgency
    gatehouse list --status pending --risk 4
    gatehouse list --status failed --all --json
    gatehouse list --status pending | cut -f1
`
}

func (c *listCmd) Run(g *globals, api service) error {
	f := gatehouse.ActionFilter{
		Status: c.Status, ActionType: c.Type, RiskLevel: gatehouse.RiskLevel(c.Risk),
		ProposedBy: c.ProposedBy, Query: c.Query, Sort: c.Sort, Decided: c.Decided, AskedGroup: c.Group,
		Assignee: c.Assignee, Archived: c.Archived,
	}
	page, err := collect(g.Ctx, &c.paging,
		func(ctx context.Context, cursor string, limit int) (gatehouse.Page[*gatehouse.Action], error) {
			f.Cursor, f.Limit = cursor, limit
			return api.ListActions(ctx, f)
		})
	what, risk := "actions", ""
	switch {
	case c.Archived:
		what = "archived actions"
	case c.Sort == gatehouse.SortUrgency:
		what = "pending actions"
	}
	if c.Risk != 0 {
		risk = f.RiskLevel.String()
	}
	none := g.none(len(page.Items), err, what, filters("type", c.Type, "proposer", c.ProposedBy, "query", c.Query,
		"group", c.Group, "assignee", c.Assignee),
		filters("status", string(c.Status), "risk", risk, "decided", string(c.Decided)))
	return showPage(g, page, err, none, func() *term.Table { return g.actionTable(page.Items...) })
}

// showCmd shows one action in full.
type showCmd struct {
	ID string `arg:"" help:"The action, or its approval."`
}

func (*showCmd) Help() string {
	return `
Shows everything: what the server knows first, then each field before and after
with its exact value, evaluations, the policy's reasons, the rationale in the
agent's own words, votes, push and receipt. Nothing is cut; characters that do
not show are made visible, such as <U+202E>. Principals who may propose, decide
or undo also see the present state of the target, if its connector can read it.
Those who decide, operate, administer or audit see the effect of the change, if the
target can preview it.

Examples:

    gatehouse show act_01993b7e
    gatehouse show act_01993b7e --json
`
}

func (c *showCmd) Run(g *globals, api service) error {
	a, err := api.FindAction(g.Ctx, c.ID)
	return printOutcome(g, a, err, func() error {
		s := sheet.New(&g.IO)
		if a.RebasedBy != "" {
			if s.Older, err = api.FindAction(g.Ctx, a.Supersedes); err != nil {
				return err
			}
		}
		if n, previous := card.Iteration(a); n > 1 && previous != "" {
			before, err := api.FindAction(g.Ctx, previous)
			switch {
			case gatehouse.CodeOf(err) == gatehouse.CodeNotFound:
			case err != nil:
				return err
			case card.Precedes(before, a):
				s.Before = before
			}
		}
		s.Target = sheet.ReadTarget(a, func(id string) (*gatehouse.TargetState, error) { return api.ReadTarget(g.Ctx, id) })
		s.Preview = sheet.AskPreview(a, func(id string) (*gatehouse.Preview, error) { return api.Preview(g.Ctx, id) })
		s.Action(a)
		return nil
	})
}
