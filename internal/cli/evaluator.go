package cli

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// evaluatorCmd groups the commands about registered evaluators.
type evaluatorCmd struct {
	Add    evaluatorAddCmd    `cmd:"" help:"Register an evaluator, and print its key."`
	List   evaluatorListCmd   `cmd:"" help:"List the evaluators."`
	Revoke evaluatorRevokeCmd `cmd:"" help:"Disable an evaluator: its keys are refused."`
}

type evaluatorAddCmd struct {
	Name string `arg:"" help:"The name that people see beside its results."`
}

func (*evaluatorAddCmd) Help() string {
	return `
An evaluator is a service with the role evaluator. The card shows its
results under its own name with a check mark, apart from the proposer's words.
Prints the key only once; rotate keys as for every service: gatehouse key.

Examples:

    gatehouse evaluator add fraud-check --json
`
}

func (c *evaluatorAddCmd) Run(g *globals, api service) error {
	return g.printCredentials(api.CreatePrincipal(g.Ctx, gatehouse.NewPrincipal{
		Name: c.Name, Kind: gatehouse.KindService, Roles: []gatehouse.Role{gatehouse.RoleEvaluator},
	}))
}

type evaluatorListCmd struct{}

func (*evaluatorListCmd) Help() string {
	return `
Piped, the columns are those of principal list.

Examples:

    gatehouse evaluator list
`
}

func (*evaluatorListCmd) Run(g *globals, api service) error {
	page, err := collect(g.Ctx, &paging{Limit: 1, All: true}, api.ListPrincipals)
	page.Items = slices.DeleteFunc(page.Items, func(p *gatehouse.Principal) bool {
		return !slices.Contains(p.Roles, gatehouse.RoleEvaluator)
	})
	return showPage(g, page, err, "No evaluators.", func() *term.Table { return g.principalTable(page.Items...) })
}

type evaluatorRevokeCmd struct {
	Name string `arg:"" help:"Name or id."`
}

func (*evaluatorRevokeCmd) Help() string {
	return `
Its earlier results stay on the cards. "gatehouse principal update NAME --enable"
enables it again.

Examples:

    gatehouse evaluator revoke fraud-check
`
}

func (c *evaluatorRevokeCmd) Run(g *globals, api service) error {
	p, err := api.FindPrincipal(g.Ctx, c.Name)
	if err != nil {
		return err
	}
	if !slices.Contains(p.Roles, gatehouse.RoleEvaluator) {
		return term.Usagef("%s is not an evaluator", gatehouse.Quote(c.Name))
	}
	off := true
	return g.printPrincipal(api.UpdatePrincipal(g.Ctx, p.ID, gatehouse.PrincipalChange{Disabled: &off}))
}

type evaluateCmd struct {
	ID     string            `arg:"" help:"The action."`
	Result string            `required:"" enum:"pass,warn,fail" placeholder:"RESULT" help:"pass, warn or fail."`
	Score  gatehouse.Decimal `placeholder:"NUMBER" help:"From 0 to 1."`
	Text   string            `placeholder:"TEXT" help:"The explanation that people read."`
	Digest gatehouse.Digest  `placeholder:"DIGEST" help:"The digest of what was evaluated; by default, the present one."`
}

func (*evaluateCmd) Help() string {
	return `
Only a registered evaluator can use this command, with its own key. The result decides
nothing. Give the digest of the action that you have read, so that the result cannot
belong to another revision.

Examples:

    gatehouse evaluate act_01993b7e --result warn --score 0.4 --text "the supplier is new"
`
}

func (c *evaluateCmd) Run(g *globals, api service) error {
	n := gatehouse.NewEvaluated{Digest: c.Digest, Result: c.Result, Score: c.Score, Text: c.Text}
	if n.Digest == "" {
		a, err := api.FindAction(g.Ctx, c.ID)
		if err != nil {
			return err
		}
		n.Digest = a.Digest
	}
	out, err := api.Evaluate(g.Ctx, c.ID, n)
	return show(g, out, err, func() *term.Table {
		return term.Row([]string{"ACTION", "BY", "RESULT", "SCORE"}, c.ID, out.By, out.Result, string(out.Score))
	})
}
