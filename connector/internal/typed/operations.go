// Package typed holds a connector's built-in operations, each with the JSON Schema of its change.
package typed

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

// Operation is a built-in operation of a connector.
type Operation struct {
	connector.Operation
	// Change is the JSON Schema of the proposed change.
	Change string
}

// Of is an operation with the schema of its change. If undo is nil, reverses states whether the
// effect can be undone.
func Of(
	name string, class connector.Class, floor gatehouse.RiskLevel, reverses bool, change string, undo *gatehouse.Undo,
) Operation {
	return Operation{Change: change, Operation: connector.Operation{
		Name: name, Class: class, Floor: floor, Reverses: reverses, Undo: undo,
	}}
}

// Connector has the abilities of a connector whose targets can be read.
type Connector interface {
	connector.Connector
	connector.Checker
	connector.StateReader
	connector.ReadBacker
	connector.Validator
	connector.Floorer
	connector.Declarer
	connector.Typed
	connector.Prober
}

// Operations are a connector's built-in operations, by name.
type Operations struct{ byName map[string]operation }

type operation struct {
	connector.Operation
	change gatehouse.JSON
	schema *jsonshape.Schema
}

// NewOperations compiles operations.
func NewOperations(list ...Operation) (*Operations, error) {
	out := &Operations{byName: make(map[string]operation, len(list))}
	for _, o := range list {
		change, err := gatehouse.Canonicalize([]byte(o.Change))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Name, err)
		}
		schema, err := jsonshape.Compile(change)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Name, err)
		}
		out.byName[o.Name] = operation{o.Operation, change, schema}
	}
	return out, nil
}

// Operation describes an operation; false if the name is unknown.
func (o *Operations) Operation(name string) (connector.Operation, bool) {
	op, ok := o.byName[name]
	return op.Operation, ok
}

// Floor is the minimum level of a call, given the declared levels: L5 for an unknown operation, or
// for several entities.
func (o *Operations) Floor(c connector.Call, declared connector.Levels) gatehouse.RiskLevel {
	op, ok := o.byName[c.Operation]
	if !ok || len(c.Target.EntityRefs) > 0 {
		return gatehouse.L5
	}
	return declared.Of(op.Floor, c.ProposedChange)
}

// Schema is the JSON Schema of the proposed change of an operation.
func (o *Operations) Schema(name string) (gatehouse.JSON, bool) {
	op, ok := o.byName[name]
	return op.change, ok
}

// Check adds a violation if the operation is unknown, the call names several entities, or the
// change does not match the operation's schema.
func (o *Operations) Check(v *gatehouse.Violations, c connector.Call) {
	op, ok := o.byName[c.Operation]
	if !ok {
		v.Add("/operation", "is not an operation of this connector")
		return
	}
	if len(c.Target.EntityRefs) > 0 {
		v.Add("/target/entity_refs", "cannot be used: this connector changes one entity at a time; give entity_ref")
	}
	*v = append(*v, op.schema.Check("/proposed_change", c.ProposedChange)...)
}

// Names are the operations' names, sorted.
func (o *Operations) Names() []string { return slices.Sorted(maps.Keys(o.byName)) }
