package netsuite

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// List implements [connector.Lister].
func (c *Connector) List() []connector.Listed {
	entities := make(map[string][]string)
	for name, e := range c.entities {
		for op := range e.schemas {
			if op != opBulkUpdate || c.cfg.bulk() {
				entities[op] = append(entities[op], name)
			}
		}
	}
	return connector.ListOf(
		c,
		slices.Collect(maps.Keys(entities)),
		func(op string) []string { return entities[op] },
	)
}
