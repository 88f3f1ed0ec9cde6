package netsuite

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// List implements [connector.Lister].
func (c *Connector) List() []connector.Listed {
	names := []string{opCreate, opUpdate}
	if c.cfg.bulk() {
		names = append(names, opBulkUpdate)
	}
	return connector.ListOf(
		c,
		names,
		func(string) []string { return slices.Collect(maps.Keys(c.entities)) },
	)
}
