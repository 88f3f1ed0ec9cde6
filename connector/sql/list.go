package sqlconn

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// List implements [connector.Lister].
func (c *Connector) List() []connector.Listed {
	entities := func(op string) []string {
		return slices.DeleteFunc(slices.Collect(maps.Keys(c.cfg.Entities)), func(name string) bool {
			return op == bulkPrefix+opInsert && c.cfg.Entities[name].KeyFrom == keyFromDatabase
		})
	}
	names := []string{
		opInsert, opUpdate, opDelete, bulkPrefix + opInsert, bulkPrefix + opUpdate, bulkPrefix + opDelete,
		opUpsert, opUpdateWhere,
	}
	names = slices.DeleteFunc(names, func(op string) bool { return len(entities(op)) == 0 })
	return connector.ListOf(c, names, entities)
}
