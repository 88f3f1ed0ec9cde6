package cli

import (
	"errors"

	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
)

// adminResetCmd makes new secrets for an administrator.
type adminResetCmd struct {
	serve.StoreFlags
	Name   string `arg:"" optional:"" default:"admin" help:"The administrator's name; admin by default."`
	Tenant string `default:"default" placeholder:"TENANT" help:"The administrator's tenant; default by default."`
	Revoke bool   `help:"End every other key and every session of the administrator, too."`
}

func (*adminResetCmd) Help() string {
	return `
Works on the data folder or the database itself, and needs no key: it is for
whoever may read them. It makes a new key and a new edit token, shown this once;
the old edit token ends. Where the tenant has no enabled administrator left, the
person named becomes one, and is made if there is none of the name. The act is in
the audit log, and every administrator is told.

On PostgreSQL it works beside running servers. On a data folder, stop the server
first.

Examples:

    gatehouse admin reset --data ./gatehouse-data --json
    gatehouse admin reset ana --revoke --database-url postgres://localhost/gatehouse
`
}

func (c *adminResetCmd) Run(g *globals) error {
	gt, store, err := c.OpenGate(&g.IO)
	if err != nil {
		return err
	}
	creds, err := gt.ResetAdmin(g.Ctx, gate.AdminReset{Tenant: c.Tenant, Name: c.Name, Revoke: c.Revoke})
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	return g.printCredentials(creds, nil)
}
