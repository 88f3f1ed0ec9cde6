package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// classesOf are the classes of a connector's operations.
func classesOf(c connector.Connector) []string {
	classes := []string{}
	if l, ok := c.(connector.Lister); ok {
		for _, op := range l.List() {
			classes = append(classes, string(op.Class))
		}
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

type connectorOperationsCmd struct {
	serve.ConnectorFlags
	Name string `arg:"" help:"The connector."`
}

func (*connectorOperationsCmd) Help() string {
	return `
Reads the configuration, and calls nothing. Piped, the columns are: operation, class,
level without declared fields, whether it can be undone (yes or no), the entity types
that it takes, * for any, the fields that are declared as amounts of money, and the
declared levels of the operation and of its fields.

Examples:

    gatehouse connector operations shop --config gatehouse.yaml
`
}

func (c *connectorOperationsCmd) Run(g *globals) error {
	made, done, err := c.Connector(g.Ctx, c.Name)
	if err != nil {
		return err
	}
	defer done()
	all := serve.OperationsOf(made)
	if all == nil {
		return fmt.Errorf("connector %s does not list its operations", c.Name)
	}
	t := &term.Table{
		Header: []string{"OPERATION", "CLASS", "LEVEL", "UNDONE", "ENTITY TYPES", "AMOUNTS", "DECLARED LEVELS"},
		Wide:   4,
	}
	for _, one := range all {
		undone, types := "no", strings.Join(one.EntityTypes, ", ")
		if one.Reverses {
			undone = "yes"
		}
		if types == "" {
			types = "*"
		}
		t.Add(one.Operation, one.Class, fmt.Sprintf("L%d", one.Level), undone, types,
			strings.Join(one.Amounts, ", "), strings.Join(one.Levels, ", "))
	}
	return showList(g, map[string]any{"operations": all}, nil, "There is no operation.",
		func() *term.Table { return t })
}

type connectorSchemaCmd struct {
	serve.ConnectorFlags
	Name      string `arg:"" help:"The connector."`
	Operation string `arg:"" help:"The operation."`
	Entity    string `help:"The entity type; by default the first one that the operation takes." placeholder:"TYPE"`
}

func (*connectorSchemaCmd) Help() string {
	return `
Prints the JSON Schema (2020-12) of proposed_change. Reads the configuration, and
calls nothing.

Examples:

    gatehouse connector schema shop update --config gatehouse.yaml --entity item
`
}

func (c *connectorSchemaCmd) Run(g *globals) error {
	made, done, err := c.Connector(g.Ctx, c.Name)
	if err != nil {
		return err
	}
	defer done()
	if _, ok := made.Operation(c.Operation); !ok {
		return term.Usagef("connector %s has no operation %s", c.Name, gatehouse.Quote(c.Operation))
	}
	entity := c.Entity
	if l, ok := made.(connector.Lister); ok && entity == "" {
		for _, op := range l.List() {
			if op.Name == c.Operation && len(op.EntityTypes) > 0 {
				entity = op.EntityTypes[0]
			}
		}
	}
	typed, ok := made.(connector.Typed)
	if !ok {
		return fmt.Errorf("connector %s accepts any change: its operations have no schema", c.Name)
	}
	schema, ok := typed.Schema(c.Operation, entity)
	if !ok {
		return fmt.Errorf("operation %s has no schema for entity type %s", c.Operation, gatehouse.Quote(entity))
	}
	return g.PrintJSON(schema)
}
