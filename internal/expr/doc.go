// Package expr is Gatehouse's variant of CEL, the language of policy conditions
// and workflow templates. A package that uses it adds its own facts and
// functions and gets compiled expressions with a bounded cost.
//
// It removes two properties of CEL: && and || no longer absorb an error in a
// term that was evaluated, and no number is ever a float. For this, it rewrites
// an expression twice: before it is checked, and again before a second check;
// see rewriter. JSON passes through with its exact text; see [ToValue] and
// [ToJSON].
package expr
