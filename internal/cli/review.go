package cli

import (
	"os"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/tui"
)

// reviewCmd goes through the inbox.
type reviewCmd struct {
	Type  string `placeholder:"TYPE" help:"Only this action type."`
	Risk  int    `enum:"0,1,2,3,4,5" default:"0" placeholder:"1..5" help:"Only this risk level."`
	Query string `short:"q" placeholder:"TEXT" help:"Only those with words that begin with this text, in the type, the target, the title, the proposer, the rationale, the amount, the key or the proposed values; or with this id."`
	Yes   bool   `short:"y" help:"Approve L3 with one key, as L1 and L2; never L4 and L5."`
}

func (*reviewCmd) Help() string {
	return `
Shows the actions that wait for your decision, or for the decision of a person who
has delegated to you, one card at a time: by due time, then by risk, then by age.
The order does not change while you work. Needs a terminal.

    a  approve      d  reject, and say why       u  undo, within the hold
    j  next         k  previous                  e  edit as a revision
    b  rebase on the present state, where the target has changed
    n  next change  p  previous change           w  why you are asked
    x  select       /  filter by a text          g  go: i list, b selection
    space, arrows   scroll                       enter  unchanged fields
    Ctrl-K  go to a number or an id              ?  help     q  quit     Esc  back

L1 and L2 take one key; L3 names the effect and takes Enter; for L4 and L5 you
retype the value that matters and type your edit token. Nothing can be approved
before its whole change has been on the screen. The keys a, d, e and b do nothing for
a moment after another card, or a new warning, has appeared. Selected actions of L1 to
L3 are decided together after their total effect and each change have been on the
screen.

At the end your decisions are printed: id and result.

Examples:

    gatehouse review
    gatehouse review --risk 3 --type price_change
`
}

// errNoTerminal is the error of a review without a terminal.
var errNoTerminal = term.Usagef("review shows one card per screen and is operated by keys: it needs a terminal as " +
	"its stdin. Elsewhere use `gatehouse list --sort urgency` and `gatehouse approve ID --digest DIGEST`")

func (c *reviewCmd) Run(g *globals) error {
	if g.Terminal == nil {
		return errNoTerminal
	}
	if os.Getenv("TERM") == "dumb" {
		return term.Usagef("this terminal (TERM=dumb) cannot show cards: use `gatehouse list --sort urgency` and " +
			"`gatehouse approve ID`")
	}
	api, err := g.connect()
	if err != nil {
		return err
	}
	me, err := api.WhoAmI(g.Ctx)
	if err != nil {
		return err
	}
	if me.Kind != gatehouse.KindPerson || !me.Has(gatehouse.RoleApprover) {
		return gatehouse.E(gatehouse.CodeRoleRequired, "only a person with the role approver decides; this is the key of %s",
			me.Name)
	}
	return tui.Review(&g.IO, tui.Config{
		Me: me, API: api, EditToken: g.EditToken, Yes: c.Yes,
		Connect: func(token string) (tui.Service, error) {
			return client.New(g.URL, g.Key, client.WithEditToken(token), client.WithChannel(gatehouse.ViaCLI))
		},
		Filter: gatehouse.ActionFilter{
			ActionType: c.Type, RiskLevel: gatehouse.RiskLevel(c.Risk), Query: c.Query, Sort: gatehouse.SortUrgency,
			Limit: gatehouse.DefaultLimit,
		},
	})
}
