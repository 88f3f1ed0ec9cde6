package cli

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// policyUsageCmd shows the usage of the ceilings.
type policyUsageCmd struct{}

func (*policyUsageCmd) Help() string {
	return `
Lists the accounts of each ceiling of the active policy, the fullest first, at
most 50 of one. Piped, the columns are: ceiling, scope, used, left, limit,
currency, window.

Examples:

    gatehouse policy usage
`
}

func (c *policyUsageCmd) Run(g *globals, api service) error {
	accounts, err := api.PolicyUsage(g.Ctx)
	return showPage(g, pageOf(accounts), err, "The active policy has no ceilings.", func() *term.Table {
		t := &term.Table{Header: []string{"CEILING", "FOR", "USED", "LEFT", "LIMIT", "CURRENCY", "WINDOW"}}
		for _, a := range accounts {
			t.Add(a.Ceiling, accountOf(a), string(a.Used), string(a.Left), string(a.Limit), a.Currency,
				a.Window.String())
		}
		return t
	})
}

// accountOf names the scope of an account; for an agent, its name.
func accountOf(a *gatehouse.CeilingAccount) string {
	switch {
	case a.Name != "":
		return "agent " + a.Name
	case a.Scope == "":
		return "each " + a.Per + ", none yet"
	}
	return a.Scope
}
