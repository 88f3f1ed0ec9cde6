package connector

import "github.com/gatehouse-dev/gatehouse"

// Describer declares what people see of one call, by its entity. It overrides the
// declarations of [Operation], and makes no call.
type Describer interface {
	Declared(c Call) gatehouse.Declared
}

// DeclaredOf returns what is declared about a call; nil for nothing.
func DeclaredOf(c Connector, op Operation, call Call) *gatehouse.Declared {
	out := gatehouse.Declared{Amounts: op.Amounts}
	if d, ok := c.(Describer); ok {
		out = d.Declared(call)
	}
	if out.IsZero() {
		return nil
	}
	return &out
}
