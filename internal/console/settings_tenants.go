package console

import (
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

func (c *Console) tenantRoutes() []route {
	admins := []gatehouse.Role{gatehouse.RoleAdmin}
	return []route{
		{pattern: "GET " + tenantsPath, roles: admins, handle: c.tenants},
		{pattern: "POST " + tenantsPath, roles: admins, changesRights: true, handle: c.createTenant},
		{pattern: "GET " + providersPath, roles: admins, handle: c.providers},
	}
}

const (
	tenantsPath   = "/settings/tenants"
	providersPath = "/settings/sign-in"
)

// tenantsView lists the tenants.
type tenantsView struct {
	list    []*gatehouse.Tenant
	id      string // as it was typed
	created string
	failed  *gatehouse.Error
}

// managesTenants reports whether the person manages tenants besides their own.
func (v *view) managesTenants() bool {
	return v.has(gatehouse.RoleAdmin) && v.person.Tenant == gatehouse.DefaultTenant
}

// tenantsOf lists the tenants for a person who manages them, nil for everybody else.
func (c *Console) tenantsOf(v *view) ([]*gatehouse.Tenant, error) {
	if !v.managesTenants() {
		return nil, nil
	}
	return c.cfg.Admin.ListTenants(v.ctx)
}

func (c *Console) tenants(v *view) error { return c.showTenants(v, http.StatusOK, &tenantsView{}) }

func (c *Console) showTenants(v *view, status int, p *tenantsView) error {
	var err error
	if p.list, err = c.cfg.Admin.ListTenants(v.ctx); err != nil {
		return err
	}
	return v.render(status, "Tenants", settingsPath, tenantsBody(v, p))
}

func (c *Console) createTenant(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	p := &tenantsView{id: strings.TrimSpace(v.form("id"))}
	made, err := c.cfg.Admin.CreateTenant(v.ctx, p.id)
	if err == nil {
		p.created, p.id = made.ID, ""
		return c.showTenants(v, http.StatusOK, p)
	}
	if p.failed = refusalOf(err); p.failed == nil || p.failed.Code == gatehouse.CodeRoleRequired {
		return err
	}
	return c.showTenants(v, gatehouse.StatusOf(p.failed.Code), p)
}

// providers shows the sign-in providers; they can be changed in the configuration only.
func (c *Console) providers(v *view) error {
	return v.render(http.StatusOK, "Sign-in", settingsPath, providersBody(v, c.cfg.SignIn.Options()))
}
