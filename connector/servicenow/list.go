package servicenow

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// List implements [connector.Lister].
func (c *Connector) List() []connector.Listed {
	return connector.ListOf(
		c,
		c.Names(),
		func(string) []string { return slices.Collect(maps.Keys(c.tables)) },
	)
}
