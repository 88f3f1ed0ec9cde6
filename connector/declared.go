package connector

import "github.com/gatehouse-dev/gatehouse"

// Describer declares the amounts and the undo of one call, which may depend on the call's entity. Its
// declarations override those of [Operation]. It does not access the target.
type Describer interface {
	Declared(c Call) gatehouse.Declared
}

// DeclaredOf returns what is declared about a call. Without a declaration, an operation that
// Reverses can be undone; if the connector is a [Checker], only until the target changes again.
func DeclaredOf(c Connector, op Operation, call Call) *gatehouse.Declared {
	out := gatehouse.Declared{Amounts: op.Amounts, Undo: op.Undo}
	if d, ok := c.(Describer); ok {
		out = d.Declared(call)
	}
	if out.Undo == nil {
		_, checks := c.(Checker)
		out.Undo = &gatehouse.Undo{Possible: op.Reverses, Unchanged: op.Reverses && checks}
	}
	return &out
}

// NoUndo declares that an effect cannot be undone. why continues "Cannot be undone: ".
func NoUndo(why string) *gatehouse.Undo { return &gatehouse.Undo{Why: why} }

// UndoExcept declares that an effect can be undone, except for what stays.
func UndoExcept(what string) *gatehouse.Undo { return &gatehouse.Undo{Possible: true, Except: what} }
