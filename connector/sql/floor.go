package sqlconn

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Floor implements [connector.Floorer]. An operation on several keys is a bulk operation, whatever
// its name. An operation with a declared floor has at least this floor. Without a declared floor, an
// update of one row has the highest level of its columns if each of them has a declared level. Only a
// declared floor lowers the floor of an insert, a delete or a bulk operation. A declared level of a
// column can raise the floor of any operation that names the column.
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	op, many, ok := splitOperation(call.Operation)
	if !ok {
		return gatehouse.L5
	}
	entity := call.Target.EntityType
	switch op {
	case opUpdateWhere:
		return c.cfg.whereFloor(entity, call.ProposedChange)
	case opUpsert:
		call.Operation = upserted(call)
		return max(gatehouse.L3, c.Floor(call))
	}
	if many = many || len(call.Target.EntityRefs) > 0; many {
		op = bulkPrefix + op
	}
	fields, all := c.cfg.Entities[entity].Fields.Of(touched(call, many))
	if !c.cfg.declares(entity, op) && op == opUpdate && all {
		return fields
	}
	return max(c.cfg.floor(entity, op), fields)
}

// touched lists the columns that a change may name. The columns of a bulk change are the members of the
// change, or the members of its members, by key; touched lists both.
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

// whereFloor is the floor of an update_where: at least the floor of an update of these columns, and at least
// L4 if max_rows exceeds the configured l4_above.
func (c *Config) whereFloor(entity string, change gatehouse.JSON) gatehouse.RiskLevel {
	o, ok := c.Entities[entity].Operations[opUpdateWhere]
	if !ok {
		o = c.Operations[opUpdateWhere]
	}
	floor := o.Floor
	if floor == 0 {
		floor = gatehouse.L5
	}
	if rows, ok := change.Get("max_rows"); !ok || tooMany(rows, o.L4Above) {
		floor = max(floor, gatehouse.L4)
	}
	set, _ := change.Get("set")
	fields, _ := c.Entities[entity].Fields.Of(connector.Fields(set))
	return max(floor, c.floor(entity, opUpdate), fields)
}

// tooMany reports whether rows exceeds the limit. It is also true for a value that is not a number.
func tooMany(rows gatehouse.JSON, limit int) bool {
	n, err := strconv.Atoi(string(rows))
	return err != nil || n > limit
}

// checkBulk refuses a bulk operation with a lower floor than the same operation on one row.
func (c *Config) checkBulk(entity string) error {
	for _, op := range []string{opInsert, opUpdate, opDelete} {
		if one, many := c.floor(entity, op), c.floor(entity, bulkPrefix+op); many < one {
			return fmt.Errorf("entities.%s: the floor of %s is %d, below the %d of %s", entity, bulkPrefix+op, many, one, op)
		}
	}
	return nil
}

func checkOperations(at string, operations map[string]Operation) error {
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		o := operations[name]
		_, _, ok := splitOperation(name)
		switch {
		case name == opUpsert:
			return fmt.Errorf(
				"%s.%s: cannot be declared: an upsert has the floor of its insert or update, and at least 3", at, name)
		case !ok:
			return fmt.Errorf(
				"%s.%s: must be insert, update, delete, bulk_insert, bulk_update, bulk_delete or update_where", at, name)
		case !o.Floor.Valid():
			return fmt.Errorf("%s.%s.floor: must be 1 to 5", at, name)
		case name == opUpdateWhere && o.Floor < gatehouse.L3:
			return fmt.Errorf("%s.%s.floor: must be 3 to 5: a proposal does not name the rows", at, name)
		case o.L4Above < 0 || o.L4Above > 0 && name != opUpdateWhere:
			return fmt.Errorf("%s.%s.l4_above: is a number of rows, for update_where", at, name)
		}
	}
	return nil
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, entity := range slices.Sorted(maps.Keys(c.cfg.Entities)) {
		fields := c.cfg.Entities[entity].Fields
		for _, one := range []string{opInsert, opUpdate, opDelete} {
			for _, op := range []string{one, bulkPrefix + one} {
				l := connector.Levels{Floor: c.cfg.declared(entity, op)}
				if one != opDelete { // a delete names no columns
					l.Fields = fields
				}
				if op != opUpdate {
					l = l.Raising(c.cfg.floor(entity, op))
				}
				out = append(out, l.Declarations(op, entity)...)
			}
		}
		where := connector.Levels{Floor: c.cfg.declared(entity, opUpdateWhere), Fields: fields}
		out = append(out, where.Raising(gatehouse.L5).Declarations(opUpdateWhere, entity)...)
	}
	return out
}
