package cli

import (
	"errors"
	"io"

	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
)

// adminResetCmd makes new secrets for an administrator.
type adminResetCmd struct {
	serve.StoreFlags
	Name   string `arg:"" optional:"" default:"admin" help:"The administrator's name; admin by default."`
	Tenant string `default:"default" placeholder:"TENANT" help:"The administrator's tenant; default by default."`
	Revoke bool   `help:"End every other key, session, passkey and set-up link, too."`
}

func (*adminResetCmd) Help() string {
	return `
Works on the data folder or the database itself, and needs no key: anybody with
access to them can run it. It makes a new key and a new edit token, shown only
once; the old edit token ends. If the tenant has no enabled administrator left, the
named person becomes one, and is created if missing. The reset is recorded in the
audit log, and every administrator is notified.

On PostgreSQL it works beside running servers. On a data folder, stop the server
first.

With --revoke, identities at a sign-in provider and Slack accounts stay linked:
look for unknown ones, and unlink them.

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
	return c.reset(g, gt, store)
}

// reset makes the secrets, closes the store, and prints the secrets. They cannot be read again, so an error of Close
// does not keep them from being printed.
func (c *adminResetCmd) reset(g *globals, gt *gate.Gate, store io.Closer) error {
	creds, err := gt.ResetAdmin(g.Ctx, gate.AdminReset{Tenant: c.Tenant, Name: c.Name, Revoke: c.Revoke})
	closed := store.Close()
	if err != nil {
		return errors.Join(err, closed)
	}
	return errors.Join(g.printCredentials(creds, nil), closed)
}
