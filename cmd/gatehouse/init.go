package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/gatehouse-dev/gatehouse"
)

type initCmd struct{ storeFlags }

// Help is shown by init --help.
func (*initCmd) Help() string {
	return `Makes a data folder with the tenant "default" and its administrator, and
prints the administrator's API key and edit token. They are shown this once.

Example: gatehouse init --data ./gatehouse-data --json`
}

// Run makes the data folder.
func (c *initCmd) Run(g *globals) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	n, err := c.open(g.ctx, cfg, &backplane{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	creds, err := n.gate.Bootstrap(g.ctx)
	if err := errors.Join(err, n.Close()); err != nil {
		return initError(err, c.place())
	}
	if g.JSON {
		return writeJSON(g.stdout, adminCredentials{creds.Key, creds.EditToken})
	}
	g.say("The administrator's secrets, shown this once:")
	_, err = fmt.Fprintf(g.stdout, "admin_key\t%s\nedit_token\t%s\n", creds.Key, creds.EditToken)
	return err
}

func initError(err error, place string) error {
	if gatehouse.CodeOf(err) == gatehouse.CodeAlreadyExists {
		return gatehouse.E(gatehouse.CodeAlreadyExists, "%s has an administrator already", place)
	}
	return err
}
