package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// connectorCmd groups the commands about configured connectors. They need no
// server.
type connectorCmd struct {
	List       connectorListCmd       `cmd:"" help:"List the configured connectors, and what they have open below L3."`
	Operations connectorOperationsCmd `cmd:"" help:"List what a proposal can name of a connector."`
	Schema     connectorSchemaCmd     `cmd:"" help:"Print the JSON Schema of the proposed change of an operation."`
	Import     connectorImportCmd     `cmd:"" help:"Derive operations of an http connector from an OpenAPI document."`
	Test       connectorTestCmd       `cmd:"" help:"Ask the target of a connector, with its credentials, whether it can be used."`
}

type connectorListCmd struct{ serve.DataFlags }

func (*connectorListCmd) Help() string {
	return `
Reads the configuration, and calls nothing. Piped, the columns are: name, type,
tenants, the operations and fields that are declared below L3, and the classes of
the operations.

Examples:

    gatehouse connector list --config gatehouse.yaml
    gatehouse connector list --data ./gatehouse-data --json
`
}

// listedConnector is a line of connector list.
type listedConnector struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Tenants []string `json:"tenants"`
	Open    []string `json:"open"`
	// Classes are the classes of its operations.
	Classes []string `json:"classes"`
}

// Run lists the connectors.
func (c *connectorListCmd) Run(g *globals) error {
	cfg, err := c.Load()
	if err != nil {
		return err
	}
	all := []listedConnector{}
	t := &term.Table{Header: []string{"NAME", "TYPE", "TENANTS", "BELOW L3", "CLASS"}, Wide: 3}
	redactor := connector.NewRedactor(cfg.SecretValues())
	for _, name := range slices.Sorted(maps.Keys(cfg.Connectors)) {
		entry := cfg.Connectors[name]
		b, err := serve.BuildConnector(g.Ctx, cfg, entry, serve.Elsewhere)
		if err != nil {
			return fmt.Errorf("connector %s: %s", name, redactor.Text(err.Error()))
		}
		one := listedConnector{
			Name: name, Type: entry.Type, Tenants: entry.Tenants, Open: serve.OpenOf(b.Connector),
			Classes: classesOf(b.Connector),
		}
		if one.Tenants == nil {
			one.Tenants = []string{"default"}
		}
		_ = b.Close()
		all = append(all, one)
		t.Add(one.Name, one.Type, strings.Join(one.Tenants, ", "), strings.Join(one.Open, ", "),
			strings.Join(one.Classes, ", "))
	}
	return showList(g, map[string]any{"connectors": all}, nil, "There is no connector.",
		func() *term.Table { return t })
}

type connectorTestCmd struct {
	serve.DataFlags
	Name string `arg:"" help:"The connector."`
}

func (*connectorTestCmd) Help() string {
	return `
Asks the target as config check does: reads only. Exits 1 when it fails. Piped,
the columns are: check, result (ok, note or fail), detail.

Examples:

    gatehouse connector test shop --config gatehouse.yaml
`
}

// Run asks the target.
func (c *connectorTestCmd) Run(g *globals) error {
	cfg, err := c.Load()
	if err != nil {
		return err
	}
	entry, ok := cfg.Connectors[c.Name]
	if !ok {
		return term.Usagef("there is no connector %s in the configuration", gatehouse.Quote(c.Name))
	}
	l := &serve.Looker{}
	l.Connector(g.Ctx, c.Name, entry, cfg)
	return g.PrintChecks(l.Checks)
}
