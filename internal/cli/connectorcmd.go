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

// connectorCmd groups the commands about connectors. Apply, show, versions and import --propose call a server.
type connectorCmd struct {
	List       connectorListCmd       `cmd:"" help:"List the configured connectors, and their declared levels."`
	Operations connectorOperationsCmd `cmd:"" help:"List the operations and entity types that a proposal can name."`
	Schema     connectorSchemaCmd     `cmd:"" help:"Print the JSON Schema of the proposed change of an operation."`
	Import     connectorImportCmd     `cmd:"" help:"Derive operations of an http connector from an OpenAPI document."`
	Apply      connectorApplyCmd      `cmd:"" help:"Propose to replace the connectors in the store."`
	Show       connectorShowCmd       `cmd:"" help:"Print the connectors in the store."`
	Versions   connectorVersionsCmd   `cmd:"" help:"List the versions of the connectors in the store."`
	Test       connectorTestCmd       `cmd:"" help:"Check that the target of a connector can be used with the connector's credentials."`
}

type connectorListCmd struct{ serve.ConnectorFlags }

func (*connectorListCmd) Help() string {
	return `
Reads the configuration and the connectors of the store, and calls nothing. Piped, the
columns are: name, type, tenants, the operations and fields with a declared level,
the classes of the operations, and where it is configured (file, or store with the
version).

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
	// Levels are the declared levels of operations and fields.
	Levels []string `json:"levels"`
	// Classes are the classes of its operations.
	Classes []string `json:"classes"`
	// Source is file or store, Version the version of the store's connectors.
	Source  string `json:"source"`
	Version int    `json:"version,omitempty"`
}

func (c *connectorListCmd) Run(g *globals) error {
	cfg, version, err := c.LoadAll(g.Ctx)
	if err != nil {
		return err
	}
	all := []listedConnector{}
	t := &term.Table{Header: []string{"NAME", "TYPE", "TENANTS", "DECLARED LEVELS", "CLASS", "SOURCE"}, Wide: 3}
	redactor := connector.NewRedactor(cfg.SecretValues())
	for _, name := range slices.Sorted(maps.Keys(cfg.Connectors)) {
		entry := cfg.Connectors[name]
		b, err := serve.BuildConnector(g.Ctx, cfg, entry, serve.NoStoredSecret)
		if err != nil {
			return fmt.Errorf("connector %s: %s", name, redactor.Text(err.Error()))
		}
		one := listedConnector{
			Name: name, Type: entry.Type, Tenants: entry.Tenants, Levels: serve.LevelsOf(b.Connector, ""),
			Classes: classesOf(b.Connector), Source: "file",
		}
		source := one.Source
		if entry.InStore() {
			one.Source, one.Version = "store", version
			source = fmt.Sprintf("store, version %d", version)
		}
		if one.Tenants == nil {
			one.Tenants = []string{"default"}
		}
		_ = b.Close()
		all = append(all, one)
		t.Add(one.Name, one.Type, strings.Join(one.Tenants, ", "), strings.Join(one.Levels, ", "),
			strings.Join(one.Classes, ", "), source)
	}
	return showList(g, map[string]any{"connectors": all}, nil, "There is no connector.",
		func() *term.Table { return t })
}

type connectorTestCmd struct {
	serve.ConnectorFlags
	Name string `arg:"" help:"The connector."`
}

func (*connectorTestCmd) Help() string {
	return `
Signs in to the target as config check does; it only reads. Prints the result of
each check, such as that the target accepts the credentials. A connector of type
http needs the key probe for it. Exits 1 when a check fails. Piped, the columns are:
check, result (ok, note or fail), detail.

Examples:

    gatehouse connector test shop --config gatehouse.yaml
`
}

func (c *connectorTestCmd) Run(g *globals) error {
	cfg, _, err := c.LoadAll(g.Ctx)
	if err != nil {
		return err
	}
	entry, ok := cfg.Connectors[c.Name]
	if !ok {
		return term.Usagef("there is no connector %s", gatehouse.Quote(c.Name))
	}
	l := &serve.ConfigChecker{}
	l.OpenSecrets(g.Ctx, cfg, c.Data, string(c.DatabaseURL))
	l.Connector(g.Ctx, c.Name, entry, cfg)
	return g.PrintChecks(l.Checks)
}
