package cli

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// tenantCmd groups the commands about tenants.
type tenantCmd struct {
	Create tenantCreateCmd `cmd:"" help:"Create a tenant."`
	List   tenantListCmd   `cmd:"" help:"List tenants."`
}

// tenantCreateCmd creates a tenant.
type tenantCreateCmd struct {
	ID string `arg:"" help:"The tenant's name."`
}

func (*tenantCreateCmd) Help() string {
	return `
Tenants are isolated: nobody sees the data of another tenant. Create the first
administrator of a new tenant with "gatehouse principal create --tenant".

Examples:

    gatehouse tenant create acme
    gatehouse principal create --tenant acme --name root --kind person --role admin
`
}

func (c *tenantCreateCmd) Run(g *globals, api service) error {
	t, err := api.CreateTenant(g.Ctx, c.ID)
	return show(g, t, err, func() *term.Table { return g.tenantTable(t) })
}

func (g *globals) tenantTable(tenants ...*gatehouse.Tenant) *term.Table {
	t := &term.Table{Header: []string{"ID", "CREATED"}}
	for _, x := range tenants {
		t.Add(x.ID, g.At(x.CreatedAt))
	}
	return t
}

// tenantListCmd lists tenants.
type tenantListCmd struct{}

func (*tenantListCmd) Help() string {
	return `
Examples:

    gatehouse tenant list
`
}

func (c *tenantListCmd) Run(g *globals, api service) error {
	tenants, err := api.ListTenants(g.Ctx)
	return showPage(g, pageOf(tenants), err, "No tenants.", func() *term.Table { return g.tenantTable(tenants...) })
}
