package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/app"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// adminResetCmd makes an administrator's secrets anew.
type adminResetCmd struct {
	storeFlags
	Name   string `arg:"" optional:"" default:"admin" help:"The administrator's name; admin, if absent."`
	Tenant string `default:"default" placeholder:"TENANT" help:"The administrator's tenant; default, if absent."`
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

// Run resets.
func (c *adminResetCmd) Run(g *globals) error {
	gate, store, err := c.openGate(g)
	if err != nil {
		return err
	}
	creds, err := gate.ResetAdmin(g.Ctx, app.AdminReset{Tenant: c.Tenant, Name: c.Name, Revoke: c.Revoke})
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	return g.printCredentials(creds)
}

// openGate opens the store that the flags name, which must be there, with a gate
// that knows no connector: for what works on the store alone.
func (f *storeFlags) openGate(g *globals) (*app.Gate, gatehouse.Store, error) {
	log := newLogger(g, "text", "warn")
	store, err := f.openStore(g.Ctx, g)
	if err != nil {
		return nil, nil, err
	}
	return app.New(store, nil, &wake.Hub{}, app.Config{}, log), store, nil
}

func (f *storeFlags) openStore(ctx context.Context, g *globals) (gatehouse.Store, error) {
	log := newLogger(g, "text", "warn")
	if f.DatabaseURL != "" {
		return postgres.Open(ctx, postgres.Config{URL: string(f.DatabaseURL), MaxConns: f.DatabaseConnections, Logger: log})
	}
	path := filepath.Join(f.Data, databaseFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no store: name the data folder with --data, or the database with --database-url", f.Data)
	}
	store, err := openFolder(ctx, f.Data, log)
	if errors.Is(err, sqlite.ErrInUse) {
		return nil, fmt.Errorf("%w; stop that server first", err)
	}
	return store, err
}
