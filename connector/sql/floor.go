package sqlconn

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Floor implements [connector.Floorer]. An operation on several keys is a bulk operation, whatever
// its name. A declared operation has its declared floor. Otherwise, an update of one row whose
// columns are all declared has the highest of their levels. Only a declared operation lowers the
// floor of an insert, a delete or a bulk operation.
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	op, many, ok := splitOperation(call.Operation)
	if !ok {
		return gatehouse.L5
	}
	if many = many || len(call.Target.EntityRefs) > 0; many {
		op = bulk + op
	}
	entity := call.Target.EntityType
	fields, all := c.cfg.Entities[entity].Fields.Of(touched(call, many))
	if !c.cfg.declares(entity, op) && op == opUpdate && all {
		return fields
	}
	return max(c.cfg.floor(entity, op), fields)
}

// touched lists the columns that a change may name. In a bulk operation, these are the members of
// the change or of its members; both are listed.
func touched(call connector.Call, many bool) []string {
	names := connector.Fields(call.ProposedChange)
	if !many {
		return names
	}
	rows, err := call.ProposedChange.Fields()
	if err != nil {
		return names
	}
	for _, row := range rows {
		names = append(names, connector.Fields(row.Value)...)
	}
	return names
}

func (c *Config) declared(entity, op string) gatehouse.RiskLevel {
	if o, ok := c.Entities[entity].Operations[op]; ok {
		return o.Floor
	}
	return c.Operations[op].Floor
}

func (c *Config) declares(entity, op string) bool { return c.declared(entity, op) != 0 }

// floor is the level of an operation on an entity, independent of the change.
func (c *Config) floor(entity, op string) gatehouse.RiskLevel {
	if c.declares(entity, op) {
		return c.declared(entity, op)
	}
	return connector.UndeclaredFloor(op, false, false)
}

// checkBulk refuses a bulk operation with a lower floor than the same operation on one row.
func (c *Config) checkBulk(entity string) error {
	for _, op := range []string{opInsert, opUpdate, opDelete} {
		if one, many := c.floor(entity, op), c.floor(entity, bulk+op); many < one {
			return fmt.Errorf("entities.%s: the floor of %s is %d, below the %d of %s", entity, bulk+op, many, one, op)
		}
	}
	return nil
}

func checkOperations(at string, operations map[string]Operation) error {
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		if _, _, ok := splitOperation(name); !ok {
			return fmt.Errorf("%s.%s: must be insert, update or delete, or one of them with bulk_ before it", at, name)
		}
		if !operations[name].Floor.Valid() {
			return fmt.Errorf("%s.%s.floor: must be 1 to 5", at, name)
		}
	}
	return nil
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, entity := range slices.Sorted(maps.Keys(c.cfg.Entities)) {
		for _, one := range []string{opInsert, opUpdate, opDelete} {
			for _, op := range []string{one, bulk + one} {
				if l := c.cfg.floor(entity, op); l < gatehouse.L3 {
					out = append(out, connector.Declaration{Operation: op, EntityType: entity, Level: l})
				}
			}
		}
		if c.cfg.declares(entity, opUpdate) {
			continue // the fields can only raise it
		}
		fields := c.cfg.Entities[entity].Fields
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if fields[name] < gatehouse.L3 {
				out = append(out, connector.Declaration{Operation: opUpdate, EntityType: entity, Field: name, Level: fields[name]})
			}
		}
	}
	return out
}
