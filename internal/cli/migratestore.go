package cli

import (
	"log/slog"
	"path/filepath"
	"strconv"

	"github.com/gatehouse-dev/gatehouse/internal/migratestore"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

type migrateStoreCmd struct {
	Data        string            `help:"The data folder." env:"GATEHOUSE_DATA" default:"gatehouse-data" placeholder:"DIR"`
	DatabaseURL serve.DatabaseURL `help:"The PostgreSQL database to copy the folder into: an empty one, or one left by an earlier call." env:"GATEHOUSE_DATABASE_URL" required:"" placeholder:"URL"`
	DryRun      bool              `help:"Only check the database server, verify the folder's audit logs, count its rows and compare the tables. A server may still use the folder."`
}

func (*migrateStoreCmd) Help() string {
	return `
Copies all rows of a data folder into an empty PostgreSQL database, byte for
byte, and compares the two: the number of rows in each table, the entries and the
head of each tenant's audit log, and the entries that have no number yet. The server
on the folder must be stopped.

The command may be killed at any moment: run again, it continues where it stopped. No
server starts on the database before the copy is complete. A database with other
data is refused. Do not serve the folder afterwards: both servers would send the
approved changes.

Piped, the columns are: table, rows. Exits 1 when a comparison fails.

Examples:

    gatehouse migrate-store --data ./gatehouse-data --database-url postgres://gatehouse@db/gatehouse --dry-run
    gatehouse migrate-store --data ./gatehouse-data --database-url postgres://gatehouse@db/gatehouse
`
}

func (c *migrateStoreCmd) Run(g *globals) error {
	r, err := migratestore.Run(g.Ctx, migratestore.Options{
		Path: filepath.Join(c.Data, serve.DatabaseFile), URL: string(c.DatabaseURL), DryRun: c.DryRun,
		Progress: func(table string, done, total int64) { g.Progress("copy "+table, done, total) },
		Logger:   slog.New(slog.NewTextHandler(g.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	return printOutcome(g, r, err, func() error {
		t := &term.Table{Header: []string{"TABLE", "ROWS"}}
		for _, one := range r.Tables {
			t.Add(one.Name, strconv.FormatInt(one.Rows, 10))
		}
		if err := g.Print(t, "The folder has no tables."); err != nil {
			return err
		}
		for _, head := range r.Logs {
			g.Say("audit log of %s: %s, root %s",
				term.Safe(head.Tenant), term.EntryCount(head.Size), term.HashText(head.Root))
		}
		switch {
		case r.State == "finished":
			g.Say("The folder is in the database already.")
		case c.DryRun:
			g.Say("%d rows would be copied; nothing was changed.", r.Rows)
		default:
			g.Say("%d of %d rows copied now; the numbers of rows and the audit logs agree. "+
				"From now on, serve the database and not the folder.",
				r.Copied, r.Rows)
		}
		return nil
	})
}
