package httpconn

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// List implements [connector.Lister].
func (c *Connector) List() []connector.Listed {
	types := slices.Collect(maps.Keys(c.entities))
	return connector.ListOf(c, slices.Collect(maps.Keys(c.operations)), func(string) []string { return types })
}
