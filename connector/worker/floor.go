package workerconn

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

func (o *Operation) checkLevels(name string) error {
	at := "operations." + name
	if o.Floor != 0 && !o.Floor.Valid() {
		return fmt.Errorf("%s.floor: must be 1 to 5", at)
	}
	if len(o.Fields) > 0 && o.Floor == 0 && connector.UndeclaredFloor(name, false, false) > gatehouse.L3 {
		return fmt.Errorf("%s.fields: only floor lowers a delete or a bulk operation", at)
	}
	return o.Fields.Validate(at + ".fields")
}

// Floor implements [connector.Floorer].
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	o, ok := c.operations[call.Operation]
	if !ok {
		return gatehouse.L5
	}
	fields, all := o.Fields.Of(connector.Fields(call.ProposedChange))
	if o.Floor != 0 {
		return max(o.Floor, fields)
	}
	undeclared := connector.UndeclaredFloor(call.Operation, false, len(call.Target.EntityRefs) > 0)
	if all && undeclared == gatehouse.L3 {
		return fields
	}
	return max(undeclared, fields)
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, name := range slices.Sorted(maps.Keys(c.operations)) {
		o := c.operations[name]
		if o.Floor != 0 {
			if o.Floor < gatehouse.L3 {
				out = append(out, connector.Declaration{Operation: name, Level: o.Floor})
			}
			continue // the fields can only raise it
		}
		for _, field := range slices.Sorted(maps.Keys(o.Fields)) {
			if l := o.Fields[field]; l < gatehouse.L3 {
				out = append(out, connector.Declaration{Operation: name, Field: field, Level: l})
			}
		}
	}
	return out
}
