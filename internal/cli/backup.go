package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

type backupCmd struct {
	Data string `help:"The data folder." env:"GATEHOUSE_DATA" default:"gatehouse-data" placeholder:"DIR"`
	To   string `required:"" placeholder:"FILE" help:"The file to write. It must not exist."`
}

func (*backupCmd) Help() string {
	return `
Writes a consistent copy of a data folder's store, whether it is being served or not,
and prints the heads of its audit logs. The file gets its name when it is
complete and durable; an interrupted backup leaves no file. Keep the output of
--json apart from the backup: with it "doctor --deep --held" can later show
whether a store has lost entries that this backup had. A PostgreSQL database is
backed up with PostgreSQL's own tools.

Piped, the columns are: tenant, entries, root.

Examples:

    gatehouse backup --data ./gatehouse-data --to backup.db --json > heads.json
    gatehouse doctor --deep --data ./gatehouse-data --held heads.json
`
}

// backupAnswer describes the written backup.
type backupAnswer struct {
	File  string              `json:"file"`
	Bytes int64               `json:"bytes"`
	Heads []gatehouse.LogHead `json:"heads"`
}

func (c *backupCmd) Run(g *globals) error {
	if err := sqlite.Backup(g.Ctx, filepath.Join(c.Data, serve.DatabaseFile), c.To); err != nil {
		return err
	}
	info, err := os.Stat(c.To)
	if err != nil {
		return err
	}
	heads, err := fileHeads(g.Ctx, c.To)
	if err != nil {
		return fmt.Errorf("the backup was written, but cannot be read: %w", err)
	}
	if g.JSON {
		return g.PrintJSON(backupAnswer{c.To, info.Size(), heads})
	}
	t := &term.Table{Header: []string{"TENANT", "ENTRIES", "ROOT"}}
	for _, h := range heads {
		t.Add(h.Tenant, strconv.FormatInt(h.Size, 10), term.HashText(h.Root))
	}
	if err := g.Print(t, ""); err != nil {
		return err
	}
	g.Say("%s: %d bytes.", term.Safe(c.To), info.Size())
	return nil
}

// fileHeads reads the heads of all logs in a file.
func fileHeads(ctx context.Context, path string) (heads []gatehouse.LogHead, err error) {
	s, err := sqlite.Inspect(ctx, sqlite.Config{Path: path, Logger: slog.New(slog.DiscardHandler), Readers: 1})
	if err != nil {
		return nil, err
	}
	err = s.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		heads = []gatehouse.LogHead{}
		tenants, err := q.ListTenants()
		if err != nil {
			return err
		}
		for _, t := range tenants {
			h, err := audit.Head(q.In(t.ID), t.ID)
			if err != nil {
				return err
			}
			heads = append(heads, h)
		}
		return nil
	})
	return heads, errors.Join(err, s.Close())
}
