package connector

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// Typed returns the schema of the changes that a connector's operations accept, for
// people and programs that write proposals. A [Validator] of the same connector
// refuses changes that do not match.
type Typed interface {
	// Schema returns the JSON Schema (2020-12, without references) of the proposed
	// change of an operation on an entity type; false when the connector has no such operation or
	// entity type.
	Schema(operation, entityType string) (gatehouse.JSON, bool)
}

// Lister lists what a proposal can name.
type Lister interface {
	// List returns the operations by name.
	List() []Listed
}

// Listed is an operation with the entity types that it accepts, none when the
// proposer names them freely.
type Listed struct {
	Operation
	EntityTypes []string
}

// ListOf describes the named operations of a connector, sorted, without duplicates.
// entities returns the entity types of an operation, and may be nil.
func ListOf(c Connector, names []string, entities func(operation string) []string) []Listed {
	names = slices.Clone(names)
	slices.Sort(names)
	var out []Listed
	for _, name := range slices.Compact(names) {
		if op, ok := c.Operation(name); ok {
			one := Listed{Operation: op}
			if entities != nil {
				one.EntityTypes = slices.Clone(entities(name))
				slices.Sort(one.EntityTypes)
			}
			out = append(out, one)
		}
	}
	return out
}
