package cli

import (
	"cmp"
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// starterConfig is the configuration that config init writes. It is valid unchanged.
// It shows only some sections, and its comments explain them.
//
//go:embed starter.yaml
var starterConfig []byte

// configCmd groups the commands about the configuration file. They need no
// server.
type configCmd struct {
	Check serve.CheckCommand `cmd:"" help:"Check the configuration, and everything that it names."`
	Init  configInitCmd      `cmd:"" help:"Write a first configuration."`
}

type configInitCmd struct {
	serve.DataFlags
}

func (*configInitCmd) Help() string {
	return `
Writes a gatehouse.yaml with comments into the data folder, or to --config. The
server can start with it unchanged. It has examples of the most important
sections: remove their comment signs to use them. An existing file is never
overwritten.

Examples:

    gatehouse config init --data ./gatehouse-data
    gatehouse config init --config gatehouse.yaml
`
}

func (c *configInitCmd) Run(g *globals) error {
	name := c.Config
	if name == "" {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return err
		}
		name = filepath.Join(c.Data, "gatehouse.yaml")
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return gatehouse.E(gatehouse.CodeAlreadyExists, "%s exists already and was not changed", name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(starterConfig)
	if err := cmp.Or(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	if g.JSON {
		return g.PrintJSON(map[string]string{"file": name})
	}
	g.Say("Wrote %s. Next: edit it, then: gatehouse config check --config %s", term.ShownPath(name),
		term.ShellWord(name))
	return nil
}
