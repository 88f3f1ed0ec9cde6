package connector

import "github.com/gatehouse-dev/gatehouse"

// Typed tells the shape of what a connector's operations take, for people and
// programs that write proposals. A [Validator] of the same connector refuses what
// does not have it.
type Typed interface {
	// Schema returns the JSON Schema (2020-12, without references) of the proposed
	// change of an operation on an entity type; false where there is no such
	// operation, or the entity type is not one of its own.
	Schema(operation, entityType string) (gatehouse.JSON, bool)
}
