package netsuite

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// levels are the declared levels of an entity's fields.
func (e *entity) levels() connector.FieldLevels {
	out := make(connector.FieldLevels)
	for name, f := range e.fields {
		if f.Level != 0 {
			out[name] = f.Level
		}
	}
	return out
}

// operationFloor is the declared level of an operation; by default 4 for a create, 5 for a bulk
// update and 3 for an update.
func (c *Config) operationFloor(op string) gatehouse.RiskLevel {
	switch declared := c.Operations[op].Floor; {
	case declared != 0:
		return declared
	case op == opCreate:
		return gatehouse.L4
	case op == opBulkUpdate:
		return gatehouse.L5
	}
	return gatehouse.L3
}

// Floor implements [connector.Floorer]. If each field of an update has a declared level, and the update
// operation has no declared floor, the update has the highest of these levels. Any other call has the
// operation's floor; a higher level of one of its fields raises the floor. A call with an unknown entity
// type or operation, or with entity_refs and another operation than bulk_update, has L5.
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	e, ok := c.entities[call.Target.EntityType]
	_, known := c.Operation(call.Operation)
	switch {
	case ok && call.Operation == opBulkUpdate:
		level := c.cfg.operationFloor(opBulkUpdate)
		for _, line := range linesOf(call) {
			fields, _ := e.levels().Of(connector.Fields(line.ProposedChange))
			level = max(level, fields)
		}
		return level
	case !ok || !known || len(call.Target.EntityRefs) > 0:
		return gatehouse.L5
	}
	fields, all := e.levels().Of(connector.Fields(call.ProposedChange))
	if call.Operation == opUpdate && c.cfg.Operations[opUpdate].Floor == 0 && all {
		return fields
	}
	return max(c.cfg.operationFloor(call.Operation), fields)
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, entity := range slices.Sorted(maps.Keys(c.entities)) {
		for _, op := range []string{opCreate, opUpdate, opBulkUpdate} {
			l := connector.Levels{Floor: c.cfg.Operations[op].Floor, Fields: c.entities[entity].levels()}
			if op != opUpdate {
				l = l.Raising(c.cfg.operationFloor(op))
			}
			out = append(out, l.Declarations(op, entity)...)
		}
	}
	return out
}
