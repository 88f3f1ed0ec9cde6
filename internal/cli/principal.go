package cli

import (
	"context"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// principalCmd groups the commands about people, agents and services.
type principalCmd struct {
	Create          principalCreateCmd `cmd:"" help:"Create a person, agent or service."`
	List            principalListCmd   `cmd:"" help:"List principals."`
	Show            principalShowCmd   `cmd:"" help:"Show a principal; yourself by default."`
	Update          principalUpdateCmd `cmd:"" help:"Change roles or sponsor, disable or enable."`
	RotateEditToken rotateTokenCmd     `cmd:"" name:"rotate-edit-token" help:"Make a new edit token for a person; the old one ends."`
	SetupLink       setupLinkCmd       `cmd:"" help:"Make a one-time link that signs a person in to the console."`
}

// principalCreateCmd creates a principal.
type principalCreateCmd struct {
	Name    string           `required:"" placeholder:"NAME" help:"Unique in the tenant."`
	Kind    gatehouse.Kind   `required:"" enum:"person,agent,service" placeholder:"KIND" help:"person, agent or service."`
	Role    []gatehouse.Role `required:"" placeholder:"ROLE" help:"proposer, approver, operator, auditor, viewer, worker, evaluator, admin. Repeatable."`
	Tenant  string           `placeholder:"TENANT" help:"A tenant other than yours; for administrators of the default tenant."`
	Sponsor string           `placeholder:"NAME" help:"The person who answers for an agent."`
	Person  string           `placeholder:"ID" help:"The human behind it, where one human has several principals."`
}

func (*principalCreateCmd) Help() string {
	return `
Prints the key, and a person's edit token, only once: only their hashes are
stored. With --json: {"id", "key", "key_id", "edit_token"}. Piped, the columns
are the same.

Examples:

    gatehouse principal create --name ana --kind person --role approver
    gatehouse principal create --name pricing-bot --kind agent --role proposer --sponsor ana --json
`
}

func (c *principalCreateCmd) Run(g *globals, api service) error {
	cred, err := api.CreatePrincipal(g.Ctx, gatehouse.NewPrincipal{
		Tenant: c.Tenant, Name: c.Name, Kind: c.Kind, Roles: c.Role, Person: c.Person, Sponsor: c.Sponsor,
	})
	if err != nil {
		return err
	}
	if err := g.printCredentials(cred, nil); err != nil || c.Kind != gatehouse.KindPerson || g.JSON {
		return err
	}
	g.Say("To sign in to the console: %s principal setup-link %s", g.Program(), term.ShellWord(term.Safe(c.Name)))
	return nil
}

// printCredentials prints secrets that are shown once.
func (g *globals) printCredentials(c *gatehouse.Credentials, err error) error {
	err = printOutcome(g, c, err, func() error {
		if g.TTY { // in a table, line breaks would make the secrets hard to copy
			s := sheet.New(&g.IO)
			s.Line("id", c.ID)
			s.Line("key", c.Key)
			s.Line("key id", c.KeyID)
			s.Line("edit token", c.EditToken)
			return nil
		}
		return g.Print(term.Row([]string{"ID", "KEY", "KEY ID", "EDIT TOKEN"}, c.ID, c.Key, c.KeyID, c.EditToken), "")
	})
	if err == nil && !g.JSON {
		g.Say("Save the secrets now: they are not shown again.")
	}
	return err
}

// principalListCmd lists principals.
type principalListCmd struct {
	paging `embed:""`
}

func (*principalListCmd) Help() string {
	return `
Piped, the columns are: id, name, kind, roles, sponsor, state, created.

Examples:

    gatehouse principal list
`
}

func (c *principalListCmd) Run(g *globals, api service) error {
	page, err := collect(g.Ctx, &c.paging, api.ListPrincipals)
	return showPage(g, page, err, "No principals.", func() *term.Table { return g.principalTable(page.Items...) })
}

func (g *globals) principalTable(principals ...*gatehouse.Principal) *term.Table {
	t := &term.Table{Header: []string{"ID", "NAME", "KIND", "ROLES", "SPONSOR", "STATE", "CREATED"}, Wide: 3,
		Drop: []int{6, 4}}
	for _, p := range principals {
		state := "enabled"
		if p.Disabled {
			state = "disabled"
		}
		t.Add(p.ID, p.Name, string(p.Kind), rolesText(p.Roles), p.Sponsor, state, g.At(p.CreatedAt))
	}
	return t
}

func rolesText(roles []gatehouse.Role) string {
	words := make([]string, len(roles))
	for i, r := range roles {
		words[i] = string(r)
	}
	return strings.Join(words, ",")
}

func (g *globals) printPrincipal(p *gatehouse.Principal, err error) error {
	return show(g, p, err, func() *term.Table { return g.principalTable(p) })
}

// principalShowCmd shows a principal.
type principalShowCmd struct {
	Name string `arg:"" optional:"" help:"Name or id; yourself by default."`
}

func (*principalShowCmd) Help() string {
	return `
Examples:

    gatehouse principal show
    gatehouse principal show ana --json
`
}

func (c *principalShowCmd) Run(g *globals, api service) error {
	find := func(ctx context.Context) (*gatehouse.Principal, error) { return api.FindPrincipal(ctx, c.Name) }
	if c.Name == "" {
		find = api.WhoAmI
	}
	return g.printPrincipal(find(g.Ctx))
}

// principalUpdateCmd changes a principal.
type principalUpdateCmd struct {
	Name    string           `arg:"" help:"Name or id."`
	Role    []gatehouse.Role `placeholder:"ROLE" help:"The roles from now on, all of them. Repeatable."`
	Sponsor *string          `placeholder:"NAME" help:"The person who answers for an agent; empty for none."`
	Disable bool             `xor:"state" help:"Refuse its keys and sign-in from now on."`
	Enable  bool             `xor:"state" help:"Accept them again."`
}

func (*principalUpdateCmd) Help() string {
	return `
Open approvals count votes by present rights: a person who loses the role loses the
vote.

Examples:

    gatehouse principal update ana --role approver --role operator
    gatehouse principal update pricing-bot --disable
`
}

func (c *principalUpdateCmd) Run(g *globals, api service) error {
	change := gatehouse.PrincipalChange{Sponsor: c.Sponsor}
	if len(c.Role) > 0 {
		change.Roles = &c.Role
	}
	if c.Disable || c.Enable {
		change.Disabled = &c.Disable
	}
	if change == (gatehouse.PrincipalChange{}) {
		return term.Usagef("say what to change: --role, --sponsor, --disable or --enable")
	}
	return g.printPrincipal(api.UpdatePrincipal(g.Ctx, c.Name, change))
}

// rotateTokenCmd makes a new edit token.
type rotateTokenCmd struct {
	Name string `arg:"" help:"Name or id of a person."`
}

func (*rotateTokenCmd) Help() string {
	return `
Examples:

    gatehouse principal rotate-edit-token ana --json
`
}

func (c *rotateTokenCmd) Run(g *globals, api service) error {
	return g.printCredentials(api.RotateEditToken(g.Ctx, c.Name))
}
