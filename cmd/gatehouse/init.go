package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gatehouse-dev/gatehouse"
)

type initCmd struct{ storeFlags }

// Help is shown by init --help.
func (*initCmd) Help() string {
	return `Makes a data folder with the tenant "default" and its administrator, and
prints the administrator's API key, edit token and set-up link. They are shown
this once; the link signs in to the console, once, within 30 minutes.

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
	var link *gatehouse.NewSetupLink
	if err == nil {
		link, err = firstSetupLink(g.ctx, n, creds)
	}
	if err := errors.Join(err, n.Close()); err != nil {
		return initError(err, c.place())
	}
	at := setupURL(cfg.SignIn.PublicURL, link)
	if g.JSON {
		return writeJSON(g.stdout, initAnswer{adminCredentials{creds.Key, creds.EditToken}, at, link.Token})
	}
	g.say("The administrator's secrets, shown this once:")
	_, err = fmt.Fprintf(g.stdout, "admin_key\t%s\nedit_token\t%s\nsetup_url\t%s\n", creds.Key, creds.EditToken, at)
	return err
}

type initAnswer struct {
	adminCredentials
	SetupURL   string `json:"setup_url"`
	SetupToken string `json:"setup_token"`
}

// firstSetupLink makes the administrator's own link.
func firstSetupLink(ctx context.Context, n *node, creds *gatehouse.Credentials) (*gatehouse.NewSetupLink, error) {
	admin, err := n.gate.Authenticate(ctx, creds.Key)
	if err != nil {
		return nil, err
	}
	ctx = gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: admin, StepUp: true, Via: gatehouse.ViaCLI})
	return n.gate.CreateSetupLink(ctx, admin.ID)
}

func initError(err error, place string) error {
	if gatehouse.CodeOf(err) == gatehouse.CodeAlreadyExists {
		return gatehouse.E(gatehouse.CodeAlreadyExists, "%s has an administrator already", place)
	}
	return err
}
