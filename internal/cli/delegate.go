package cli

import (
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// delegateCmd groups the commands about delegations.
type delegateCmd struct {
	To   delegateToCmd   `cmd:"" help:"Let somebody answer for you, or for another person."`
	List delegateListCmd `cmd:"" help:"List delegations."`
	End  delegateEndCmd  `cmd:"" help:"End a delegation early."`
}

// delegateToCmd makes a delegation.
type delegateToCmd struct {
	Person string              `arg:"" help:"Who answers, by name or id."`
	For    gatehouse.Duration  `placeholder:"DURATION" help:"How long, such as 8h or 14d."`
	Until  string              `placeholder:"TIME" help:"Until when, such as 2026-12-01T08:00:00Z."`
	From   string              `placeholder:"TIME" help:"From when; now by default."`
	Of     string              `placeholder:"PERSON" help:"The person whose questions are delegated; you by default. Only an administrator can name somebody else."`
	Type   []string            `placeholder:"TYPE" help:"Only for these action types."`
	UpTo   gatehouse.RiskLevel `placeholder:"LEVEL" help:"Only up to this risk level, 1 to 5."`
}

func (*delegateToCmd) Help() string {
	return `
The delegate can decide in their own name, for you, and gets the same messages as
you. You and your delegate count as one voter. A delegate cannot pass your questions
on to their own delegates. This command needs your edit token (GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse delegate to ben --for 14d
    gatehouse delegate to ben --from 2026-12-01T08:00:00Z --until 2026-12-15T08:00:00Z --up-to 3
    gatehouse delegate to ben --of ana --for 8h --type price_change
`
}

func (c *delegateToCmd) Run(g *globals, api service) error {
	n := gatehouse.NewDelegation{From: c.Of, To: c.Person, Types: c.Type, Level: c.UpTo}
	var err error
	if c.From != "" {
		if n.Starts, err = time.Parse(time.RFC3339, c.From); err != nil {
			return term.Usagef("--from must be a time such as 2026-12-01T08:00:00Z")
		}
	}
	switch {
	case (c.For > 0) == (c.Until != ""):
		return term.Usagef("give one of --for and --until")
	case c.Until != "":
		if n.Ends, err = time.Parse(time.RFC3339, c.Until); err != nil {
			return term.Usagef("--until must be a time such as 2026-12-01T08:00:00Z")
		}
	default:
		begin := n.Starts
		if begin.IsZero() {
			begin = g.Now()
		}
		n.Ends = begin.Add(c.For.D())
	}
	return g.printDelegation(api.CreateDelegation(g.Ctx, n))
}

// delegateListCmd lists delegations.
type delegateListCmd struct{}

func (*delegateListCmd) Help() string {
	return `
Lists delegations from and to you; an administrator sees all. Piped output has these
columns: id, from, to, starts, ends, types, up to, state.

Examples:

    gatehouse delegate list
`
}

func (*delegateListCmd) Run(g *globals, api service) error {
	list, err := api.ListDelegations(g.Ctx)
	return showPage(g, pageOf(list), err, "No delegations.", func() *term.Table { return delegationTable(g, list...) })
}

// delegateEndCmd ends a delegation.
type delegateEndCmd struct {
	ID string `arg:"" help:"The delegation, such as dlg_01993b7e."`
}

func (*delegateEndCmd) Help() string {
	return `
Either of the two persons, or an administrator, can end it. Votes that were given
stay valid.

Examples:

    gatehouse delegate end dlg_01993b7e
`
}

func (c *delegateEndCmd) Run(g *globals, api service) error {
	return g.printDelegation(api.EndDelegation(g.Ctx, c.ID))
}

func (g *globals) printDelegation(d *gatehouse.Delegation, err error) error {
	return show(g, d, err, func() *term.Table { return delegationTable(g, d) })
}

func delegationTable(g *globals, list ...*gatehouse.Delegation) *term.Table {
	t := &term.Table{Header: []string{"ID", "FROM", "TO", "STARTS", "ENDS", "TYPES", "UP TO", "STATE"},
		Drop: []int{5, 6, 3}}
	for _, d := range list {
		upTo, state := "", "scheduled"
		if d.Level > 0 {
			upTo = d.Level.String()
		}
		switch now := g.Now(); {
		case d.EndedAt != nil:
			state = "ended by " + d.EndedBy
		case !now.Before(d.Ends):
			state = "ended"
		case d.HoldsAt(now):
			state = "active"
		}
		t.Add(d.ID, d.FromName, d.ToName, g.At(d.Starts), g.At(d.Ends), strings.Join(d.Types, ", "), upTo, state)
	}
	return t
}
