package workerconn

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

func (o *Operation) levels() connector.Levels {
	return connector.Levels{Floor: o.Floor, Fields: o.Fields}
}

func (o *Operation) checkLevels(name string) error {
	return o.levels().Validate("operations."+name, connector.UndeclaredFloor(name, false, false))
}

// Floor implements [connector.Floorer].
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	o, ok := c.operations[call.Operation]
	if !ok {
		return gatehouse.L5
	}
	undeclared := connector.UndeclaredFloor(call.Operation, false, len(call.Target.EntityRefs) > 0)
	return o.levels().Of(undeclared, call.ProposedChange)
}

// Validate implements [connector.Validator]: it refuses a field whose name is another spelling of a declared one,
// since a target may treat both as one field.
func (c *Connector) Validate(call connector.Call) error {
	declared := c.operations[call.Operation].Fields
	var v gatehouse.Violations
	for _, field := range connector.Fields(call.ProposedChange) {
		if near, ok := spelling.Near(field, maps.Keys(declared)); ok {
			v.Add("/proposed_change"+gatehouse.JoinPointer(field), "is another spelling of %s; use that spelling",
				gatehouse.Quote(near))
		}
	}
	return v.Err()
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, name := range slices.Sorted(maps.Keys(c.operations)) {
		o := c.operations[name]
		out = append(out, o.levels().Declarations(name, "")...)
	}
	return out
}
