package cli

import (
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// secretCmd groups the commands about the secrets of the store.
type secretCmd struct {
	List   secretListCmd   `cmd:"" help:"List the secrets of the store, never their values."`
	Set    secretSetCmd    `cmd:"" help:"Store a secret that does not exist, or was revoked."`
	Rotate secretRotateCmd `cmd:"" help:"Replace the value of a secret."`
	Revoke secretRevokeCmd `cmd:"" help:"Delete a secret's value."`
}

// secretListCmd lists secrets.
type secretListCmd struct{}

func (*secretListCmd) Help() string {
	return `
Lists the secrets of your tenant. missing: the configuration names it, but it is not
set. unreadable: it is sealed under a master key that the server does not have.
Piped, the columns are: name, version, state, set, set by, last used, used by
(connectors).

Examples:

    gatehouse secret list
`
}

func (*secretListCmd) Run(g *globals, api service) error {
	list, err := api.ListSecrets(g.Ctx)
	return showPage(g, pageOf(list), err, "No secrets.", func() *term.Table {
		return secretTable(g, list...)
	})
}

func secretTable(g *globals, list ...*gatehouse.Secret) *term.Table {
	t := &term.Table{
		Header: []string{"NAME", "VERSION", "STATE", "SET", "SET BY", "LAST USED", "USED BY"}, Drop: []int{4, 3, 1},
	}
	for _, s := range list {
		t.Add(s.Name, strconv.Itoa(s.Version), string(s.State), g.AtPtr(s.SetAt), s.SetByName, g.AtPtr(s.LastUsedAt),
			strings.Join(s.UsedBy, ", "))
	}
	return t
}

func (g *globals) printSecret(s *gatehouse.Secret, err error) error {
	return show(g, s, err, func() *term.Table {
		return secretTable(g, s)
	})
}

// secretInput says where a value is read from; the command line is never a source.
type secretInput struct {
	Name string `arg:"" help:"The name, as in store:NAME of the configuration."`
	File string `help:"Read the value from this file instead of stdin." placeholder:"FILE"`
}

func (c *secretInput) read(g *globals) (gatehouse.NewSecret, error) {
	value, err := term.ReadSecret(&g.IO, c.File, "Value of "+c.Name+": ")
	return gatehouse.NewSecret{Name: c.Name, Value: value}, err
}

// secretSetCmd stores a secret.
type secretSetCmd struct{ secretInput }

func (*secretSetCmd) Help() string {
	return `
Reads the value from stdin, or, on a terminal, asks for it without showing it. One
line break at the end is left out. The command needs your edit token
(GATEHOUSE_EDIT_TOKEN), and all administrators are notified.

Examples:

    gatehouse secret set shop-token
    gatehouse secret set github-key --file app.pem
    pass show shop/token | gatehouse secret set shop-token
`
}

func (c *secretSetCmd) Run(g *globals, api service) error {
	n, err := c.read(g)
	if err != nil {
		return err
	}
	return g.printSecret(api.SetSecret(g.Ctx, n))
}

// secretRotateCmd replaces a value.
type secretRotateCmd struct{ secretInput }

func (*secretRotateCmd) Help() string {
	return `
Reads the new value as "secret set" does. Every server uses it within 5 seconds,
without a restart; approvals stay valid. After that, let the old value expire at the
target. The command needs your edit token (GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse secret rotate shop-token
    gatehouse secret rotate github-key --file new.pem
`
}

func (c *secretRotateCmd) Run(g *globals, api service) error {
	n, err := c.read(g)
	if err != nil {
		return err
	}
	return g.printSecret(api.RotateSecret(g.Ctx, n))
}

// secretRevokeCmd deletes a value.
type secretRevokeCmd struct {
	Name string `arg:"" help:"The name."`
}

func (*secretRevokeCmd) Help() string {
	return `
Connectors that use it make no more calls. Approved changes for them wait, and become
dead letters if the secret is not set again. It needs your edit
token (GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse secret revoke shop-token
`
}

func (c *secretRevokeCmd) Run(g *globals, api service) error {
	return g.printSecret(api.RevokeSecret(g.Ctx, c.Name))
}
