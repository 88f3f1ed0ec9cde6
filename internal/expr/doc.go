// Package expr is CEL as Gatehouse has it: the language of the conditions of
// policies and of the templates of workflows. The rooms that use it bring their
// facts and functions, and get compiled expressions with a bounded cost.
//
// Two properties of CEL are not wanted, and are rewritten away between checking
// an expression and planning it: && and || no longer absorb an error in a term
// that was evaluated, and no number is ever a float. See rewriter. JSON goes in
// and out by its exact text: see [ToValue] and [ToJSON].
package expr
