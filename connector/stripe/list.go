package stripe

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// List implements [connector.Lister].
func (c *Connector) List() []connector.Listed {
	return connector.ListOf(
		c,
		slices.Collect(maps.Keys(c.operations)),
		func(operation string) []string { return c.operations[operation].entities },
	)
}
