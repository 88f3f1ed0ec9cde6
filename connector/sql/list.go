package sqlconn

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// List implements [connector.Lister].
func (c *Connector) List() []connector.Listed {
	return connector.ListOf(
		c,
		[]string{
			opInsert, opUpdate, opDelete, bulk + opInsert, bulk + opUpdate, bulk + opDelete, opUpsert, opUpdateWhere,
		},
		func(string) []string { return slices.Collect(maps.Keys(c.cfg.Entities)) },
	)
}
