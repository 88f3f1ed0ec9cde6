package cli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// grantCmd groups the commands about grants.
type grantCmd struct {
	Create grantCreateCmd `cmd:"" help:"Approve the next actions of one agent in advance."`
	List   grantListCmd   `cmd:"" help:"List grants."`
	Show   grantShowCmd   `cmd:"" help:"Show a grant, with what has been used of it."`
	Revoke grantRevokeCmd `cmd:"" help:"End a grant at once."`
}

// grantCreateCmd creates a grant.
type grantCreateCmd struct {
	Agent     string             `placeholder:"AGENT" help:"Who may use it, by name or id."`
	Connector string             `placeholder:"NAME" help:"The connector of the actions."`
	Operation string             `placeholder:"NAME" help:"The operation of the actions."`
	Like      string             `placeholder:"ACTION" help:"Use the agent, connector and operation of this action."`
	When      string             `required:"" placeholder:"CEL" help:"The condition to meet; true for none."`
	Count     int                `required:"" placeholder:"N" help:"How many actions."`
	Amount    []string           `placeholder:"CURRENCY=AMOUNT" help:"How much money in all, such as EUR=2000."`
	For       gatehouse.Duration `required:"" placeholder:"DURATION" help:"How long, such as 4h; a day at most."`
	Yes       bool               `short:"y" help:"Do not ask on the terminal."`
	DryRun    bool               `help:"Only print the worst case."`
}

func (*grantCreateCmd) Help() string {
	return `
The active policy has to allow grants (grants: {up_to: 1..3}). It still judges each
action: an action that it denies, raises to a higher level, or requires two people
for is not covered. The worst case is shown before the grant is given. Without
--amount the grant covers no action that moves money. The command needs your edit
token (GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse grant create --agent bot --connector shop --operation refund --when true --count 9 --for 4h
    gatehouse grant create --like act_01993b7e --when 'change.price < 20' --count 10 --amount USD=200 --for 1h --dry-run
`
}

func (c *grantCreateCmd) Run(g *globals, api service) error {
	n := gatehouse.NewGrant{
		Agent: c.Agent, Connector: c.Connector, Operation: c.Operation, When: c.When, For: c.For, DryRun: true,
	}
	n.Count = c.Count
	var err error
	if n.Amounts, err = amountFlags(c.Amount, "--amount"); err != nil {
		return err
	}
	if c.Like != "" {
		a, err := api.FindAction(g.Ctx, c.Like)
		if err != nil {
			return err
		}
		if len(n.Amounts) == 0 && mayMoveMoney(a) {
			return term.Usagef("%s moves money: give --amount CURRENCY=AMOUNT, without which the grant covers no such action",
				a.ID)
		}
		n = likeAction(n, a)
	}
	if n.Agent == "" || n.Connector == "" || n.Operation == "" {
		return term.Usagef("give --agent, --connector and --operation, or --like")
	}
	tried, err := api.CreateGrant(g.Ctx, n)
	if err != nil {
		return err
	}
	g.Say("Worst case: %s.", term.Safe(tried.Worst))
	if c.DryRun {
		if g.JSON {
			return g.PrintJSON(tried)
		}
		return nil
	}
	if err := c.ask(g); err != nil {
		return err
	}
	n.DryRun = false
	return g.printGrant(api.CreateGrant(g.Ctx, n))
}

// amountFlags reads values such as EUR=2000.
func amountFlags(texts []string, flag string) (list []gatehouse.Magnitude, err error) {
	for _, text := range texts {
		currency, amount, found := strings.Cut(text, "=")
		if !found {
			return nil, term.Usagef("%s must be a currency and an amount, such as EUR=2000", flag)
		}
		list = append(list, gatehouse.Magnitude{Amount: gatehouse.Decimal(amount), Currency: currency})
	}
	return list, nil
}

// mayMoveMoney reports whether an action moves money, or may move money that cannot be counted: a grant
// without amounts covers no such action.
func mayMoveMoney(a *gatehouse.Action) bool {
	return len(card.Amounts(a)) > 0 || !card.Countable(a) || a.Magnitude != nil && a.Magnitude.Amount != ""
}

// likeAction fills in missing bounds from an action.
func likeAction(n gatehouse.NewGrant, a *gatehouse.Action) gatehouse.NewGrant {
	if n.Agent == "" {
		n.Agent = a.ProposerID
	}
	if n.Connector == "" {
		n.Connector = a.Connector
	}
	if n.Operation == "" {
		n.Operation = a.Operation
	}
	return n
}

// ask asks for confirmation of the worst case if there is a terminal.
func (c *grantCreateCmd) ask(g *globals) error {
	if c.Yes || g.Terminal == nil { // without a terminal, the flags are the confirmation
		return nil
	}
	tty, err := g.Terminal()
	if err != nil {
		return term.Usagef("there is no terminal to ask on (%v): give --yes", err)
	}
	defer tty.Close()
	fmt.Fprint(tty, "Approve this in advance? [y/N] ")
	if yes, err := (&prompt{ctx: g.Ctx, in: bufio.NewReader(tty)}).yes(); err != nil || yes {
		return err
	}
	return errors.New("not granted; nothing was stored")
}

// grantListCmd lists grants.
type grantListCmd struct{}

func (*grantListCmd) Help() string {
	return `
Lists the tenant's 500 newest grants, in that order. Piped output has these columns: id, agent, connector, operation, used, amounts, until, by, state.

Examples:

    gatehouse grant list
`
}

func (*grantListCmd) Run(g *globals, api service) error {
	list, err := api.ListGrants(g.Ctx)
	return showPage(g, pageOf(list), err, "No grants.", func() *term.Table { return grantTable(g, list...) })
}

// grantShowCmd shows one grant.
type grantShowCmd struct {
	ID string `arg:"" help:"The grant, such as grt_01993b7e."`
}

func (*grantShowCmd) Help() string {
	return `
Prints the columns of grant list, then the condition and the worst case.

Examples:

    gatehouse grant show grt_01993b7e
`
}

func (c *grantShowCmd) Run(g *globals, api service) error {
	grant, err := api.FindGrant(g.Ctx, c.ID)
	if err := g.printGrant(grant, err); err != nil || g.JSON {
		return err
	}
	g.Say("When: %s", term.Safe(grant.When))
	g.Say("Worst case: %s.", term.Safe(grant.Worst))
	return nil
}

// grantRevokeCmd ends a grant.
type grantRevokeCmd struct {
	ID string `arg:"" help:"The grant, such as grt_01993b7e."`
}

func (*grantRevokeCmd) Help() string {
	return `
Any approver can end a grant. Actions that it approved stay approved; cancel them
during their hold. The command needs your edit token (GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse grant revoke grt_01993b7e
`
}

func (c *grantRevokeCmd) Run(g *globals, api service) error {
	return g.printGrant(api.RevokeGrant(g.Ctx, c.ID))
}

func (g *globals) printGrant(grant *gatehouse.Grant, err error) error {
	return show(g, grant, err, func() *term.Table { return grantTable(g, grant) })
}

func grantTable(g *globals, list ...*gatehouse.Grant) *term.Table {
	t := &term.Table{
		Header: []string{"ID", "AGENT", "CONNECTOR", "OPERATION", "USED", "AMOUNTS", "UNTIL", "BY", "STATE"},
		Drop:   []int{5, 7, 2},
	}
	for _, x := range list {
		used := fmt.Sprintf("%d of %d", x.Used, x.Count)
		t.Add(x.ID, x.AgentName, x.Connector, x.Operation, used, amountsText(&x.Budget),
			g.At(x.ExpiresAt), x.GrantorName, x.State(g.Now()))
	}
	return t
}
