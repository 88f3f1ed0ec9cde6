package cli

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// keyCmd groups the commands about API keys.
type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make another key for a principal."`
	List   keyListCmd   `cmd:"" help:"List a principal's keys."`
	Revoke keyRevokeCmd `cmd:"" help:"End a key at once and permanently."`
}

// keyCreateCmd makes a key.
type keyCreateCmd struct {
	Principal string `arg:"" help:"Name or id."`
}

func (*keyCreateCmd) Help() string {
	return `
Examples:

    gatehouse key create pricing-bot --json
`
}

func (c *keyCreateCmd) Run(g *globals, api service) error {
	return g.printCredentials(api.CreateKey(g.Ctx, c.Principal))
}

// keyListCmd lists keys.
type keyListCmd struct {
	Principal string `arg:"" help:"Name or id."`
}

func (*keyListCmd) Help() string {
	return `
Lists the keys without their secrets, which are not stored. Piped, the columns are:
id, principal, created, revoked.

Examples:

    gatehouse key list pricing-bot
`
}

func (c *keyListCmd) Run(g *globals, api service) error {
	keys, err := api.ListKeys(g.Ctx, c.Principal)
	return showPage(g, pageOf(keys), err, "No keys.", func() *term.Table {
		t := &term.Table{Header: []string{"ID", "PRINCIPAL", "CREATED", "REVOKED"}}
		for _, k := range keys {
			t.Add(k.ID, k.PrincipalID, g.At(k.CreatedAt), g.AtPtr(k.RevokedAt))
		}
		return t
	})
}

// pageOf makes one page of a list that the API returns whole.
func pageOf[T any](items []T) gatehouse.Page[T] {
	if items == nil {
		items = []T{}
	}
	return gatehouse.Page[T]{Items: items}
}

// keyRevokeCmd ends a key.
type keyRevokeCmd struct {
	ID string `arg:"" help:"The key's id, key_…, never the key itself."`
}

func (*keyRevokeCmd) Help() string {
	return `
Examples:

    gatehouse key revoke key_01993b7e
`
}

func (c *keyRevokeCmd) Run(g *globals, api service) error {
	if strings.HasPrefix(c.ID, "gth_") {
		return term.Usagef("name the key by its id, key_…: a secret does not belong on the command line")
	}
	if err := api.RevokeKey(g.Ctx, c.ID); err != nil {
		return err
	}
	return show(g, map[string]any{"id": c.ID, "revoked": true}, nil, func() *term.Table {
		return term.Row([]string{"ID", "RESULT"}, c.ID, "revoked")
	})
}
