package cli

import (
	"fmt"
	"net/url"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// contextCmd groups the commands about named servers.
type contextCmd struct {
	Add    contextAddCmd    `cmd:"" help:"Name a server, with your key and edit token."`
	Use    contextUseCmd    `cmd:"" help:"Use a named server from now on."`
	List   contextListCmd   `cmd:"" help:"List the named servers."`
	Show   contextShowCmd   `cmd:"" help:"Show a named server, without its secrets."`
	Remove contextRemoveCmd `cmd:"" help:"Forget a named server and its secrets."`
}

type contextAddCmd struct {
	Name string `arg:"" help:"A name for it."`
	File bool   `help:"Keep the secrets in the file, not in the system's keyring."`
}

func (*contextAddCmd) Help() string {
	return `
Takes the address, the key and the edit token from --url, --key and --edit-token
or from the environment. The secrets are stored in the system's keyring, or, if there
is none, in a file that only you can read. The first context is used at once.

Flags take precedence over the environment, and the environment over the context.
The secrets of a context are sent to its own server only: with another --url they
are not used.

Examples:

    eval "$(gatehouse dev env)"; gatehouse context add dev
    gatehouse context add prod --url https://gate.example.com
`
}

func (c *contextAddCmd) Run(g *globals) error {
	u, err := url.Parse(g.URL)
	if g.URL == "" {
		g.URL = defaultURL
	} else if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return g.badURL()
	}
	all, err := loadContexts()
	if err != nil {
		return err
	}
	one := &savedContext{URL: g.URL}
	if err := one.keep(c.Name, contextSecrets{g.Key, g.EditToken}, c.File); err != nil {
		return err
	}
	former := all.Contexts[c.Name]
	all.Contexts[c.Name] = one
	if all.Current == "" {
		all.Current = c.Name
	}
	if err := all.save(); err != nil {
		return err
	}
	if former != nil && former.Keyring && !one.Keyring {
		if err := forget(c.Name); err != nil {
			return fmt.Errorf("context %s is kept, but the system's keyring still has its former secrets: %w", c.Name, err)
		}
	}
	where := "the system's keyring"
	if !one.Keyring {
		where = all.path
	}
	g.Say("Context %s connects to %s; its secrets are in %s.", term.Safe(c.Name), term.Safe(one.URL), where)
	return nil
}

type contextUseCmd struct {
	Name string `arg:"" help:"The name of the server."`
}

func (*contextUseCmd) Help() string {
	return `
Examples:

    gatehouse context use prod
`
}

// Run makes the context the current one.
func (c *contextUseCmd) Run(*globals) error {
	all, err := loadContexts()
	if err != nil {
		return err
	}
	if _, err := all.find(c.Name); err != nil {
		return err
	}
	all.Current = c.Name
	return all.save()
}

type contextListCmd struct{}

func (*contextListCmd) Help() string {
	return `
Piped, the columns are: name, url, where the secrets are kept (keyring or file), and
"current" for the one in use.

Examples:

    gatehouse context list
`
}

// shownContext is a context without its secrets.
type shownContext struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Secrets string `json:"secrets"`
	Current bool   `json:"current"`
}

func (c *contexts) shown(name string) shownContext {
	one := c.Contexts[name]
	return shownContext{name, one.URL, map[bool]string{true: "keyring", false: "file"}[one.Keyring], name == c.Current}
}

func (c *contextListCmd) Run(g *globals) error {
	all, err := loadContexts()
	if err != nil {
		return err
	}
	list := []shownContext{}
	for _, name := range all.names() {
		list = append(list, all.shown(name))
	}
	return showList(g, map[string]any{"items": list}, nil, "No contexts. To add one: gatehouse context add NAME",
		func() *term.Table { return contextTable(list) })
}

func contextTable(list []shownContext) *term.Table {
	t := &term.Table{Header: []string{"NAME", "URL", "SECRETS", "CURRENT"}, Wide: 1}
	for _, one := range list {
		t.Add(one.Name, one.URL, one.Secrets, map[bool]string{true: "current"}[one.Current])
	}
	return t
}

type contextShowCmd struct {
	Name string `arg:"" optional:"" help:"The name of the server; the one in use by default."`
}

func (*contextShowCmd) Help() string {
	return `
Examples:

    gatehouse context show
`
}

func (c *contextShowCmd) Run(g *globals) error {
	all, err := loadContexts()
	if err != nil {
		return err
	}
	name := c.Name
	if name == "" {
		name = all.Current
	}
	if _, err := all.find(name); err != nil {
		return err
	}
	return show(g, all.shown(name), nil, func() *term.Table { return contextTable([]shownContext{all.shown(name)}) })
}

type contextRemoveCmd struct {
	Name string `arg:"" help:"The name of the server."`
}

func (*contextRemoveCmd) Help() string {
	return `
Examples:

    gatehouse context remove dev
`
}

func (c *contextRemoveCmd) Run(*globals) error {
	all, err := loadContexts()
	if err != nil {
		return err
	}
	one, err := all.find(c.Name)
	if err != nil {
		return err
	}
	if one.Keyring {
		if err := forget(c.Name); err != nil {
			return err
		}
	}
	delete(all.Contexts, c.Name)
	if all.Current == c.Name {
		all.Current = ""
	}
	return all.save()
}
