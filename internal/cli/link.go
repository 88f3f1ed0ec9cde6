package cli

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// linkCmd groups the commands about the links of mails.
type linkCmd struct {
	Keys linkKeysCmd `cmd:"" help:"The keys that sign links: list, rotate, revoke."`
}

// linkKeysCmd groups the commands about keys.
type linkKeysCmd struct {
	List   linkKeysListCmd   `cmd:"" help:"List the keys that sign links."`
	Rotate linkKeysRotateCmd `cmd:"" help:"Sign links with a new key."`
	Revoke linkKeysRevokeCmd `cmd:"" help:"End all links that a key has signed."`
}

// linkKeysListCmd lists keys.
type linkKeysListCmd struct{}

func (*linkKeysListCmd) Help() string {
	return `
Lists the keys without their secrets. One is active; retired keys still verify the
links that they have signed. Piped output has these columns: id, number, state,
created, ends, revoked, master key.

Examples:

    gatehouse link keys list
`
}

func (*linkKeysListCmd) Run(g *globals, api service) error {
	keys, err := api.ListLinkKeys(g.Ctx)
	return showPage(g, pageOf(keys), err, "No link has been signed yet.", func() *term.Table {
		t := linkKeyTable()
		for _, k := range keys {
			addLinkKey(g, t, k)
		}
		return t
	})
}

func linkKeyTable() *term.Table {
	return &term.Table{Header: []string{"ID", "NUMBER", "STATE", "CREATED", "ENDS", "REVOKED", "MASTER KEY"},
		Drop: []int{6, 1, 4}}
}

func addLinkKey(g *globals, t *term.Table, k *gatehouse.RingKey) {
	t.Add(k.ID, strconv.FormatUint(uint64(k.Number), 10), string(k.State), g.At(k.CreatedAt), g.AtPtr(k.EndsAt),
		g.AtPtr(k.RevokedAt), k.Master)
}

func (g *globals) printLinkKey(k *gatehouse.RingKey, err error) error {
	return show(g, k, err, func() *term.Table {
		t := linkKeyTable()
		addLinkKey(g, t, k)
		return t
	})
}

// linkKeysRotateCmd makes a new key.
type linkKeysRotateCmd struct{}

func (*linkKeysRotateCmd) Help() string {
	return `
Signs new links with a new key. Links that were already sent stay valid until they
expire. The server rotates keys by itself, by default every 30 days. This command
needs your edit token (GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse link keys rotate
`
}

func (*linkKeysRotateCmd) Run(g *globals, api service) error {
	return g.printLinkKey(api.RotateLinkKeys(g.Ctx))
}

// linkKeysRevokeCmd ends a key.
type linkKeysRevokeCmd struct {
	ID string `arg:"" help:"The key, such as rgk_01993b7e."`
}

func (*linkKeysRevokeCmd) Help() string {
	return `
All links that the key has signed end at once. A key in use is replaced by a new
one. Pending actions stay in the inbox. This command needs your edit token
(GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse link keys revoke rgk_01993b7e
`
}

func (c *linkKeysRevokeCmd) Run(g *globals, api service) error {
	return g.printLinkKey(api.RevokeLinkKey(g.Ctx, c.ID))
}
