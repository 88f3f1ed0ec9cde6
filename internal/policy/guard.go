package policy

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// guardFacts are the texts that a guard can compare. Every proposal has all but the
// proposer's, which are missing when the proposer is unknown.
var guardFacts = [...]string{
	"action.type", "action.proposed_type", "action.connector", "action.operation", "target.type", "tenant",
	"proposer.id", "proposer.name", "proposer.kind",
}

// guard is a leading comparison of a condition: a fact equals one of some texts.
// When the fact is another text, the whole condition is false and need not be
// evaluated. Guards keep a policy of a thousand rules as fast as the few rules that
// apply.
type guard struct {
	fact   int // index in guardFacts
	values []string
}

// guardsOf returns the leading guards of a condition. A comparison after a term of another form is
// not a guard: evaluating the earlier term may fail, and a failure makes the verdict stricter.
func guardsOf(condition ast.Expr) []guard {
	var out []guard
	for _, term := range conjuncts(condition) {
		g, ok := guardOf(term)
		if !ok {
			break
		}
		out = append(out, g)
	}
	return out
}

func guardOf(term ast.Expr) (guard, bool) {
	if term.Kind() != ast.CallKind || len(term.AsCall().Args()) != 2 {
		return guard{}, false
	}
	left, right := term.AsCall().Args()[0], term.AsCall().Args()[1]
	switch term.AsCall().FunctionName() {
	case operators.Equals:
		if left.Kind() == ast.LiteralKind {
			left, right = right, left
		}
		return newGuard(left, right)
	case operators.In:
		if right.Kind() == ast.ListKind && right.AsList().Size() > 0 {
			return newGuard(left, right.AsList().Elements()...)
		}
	}
	return guard{}, false
}

func newGuard(fact ast.Expr, values ...ast.Expr) (guard, bool) {
	g := guard{fact: slices.IndexFunc(guardFacts[:], func(name string) bool { return isFact(fact, name) })}
	if g.fact < 0 {
		return guard{}, false
	}
	for _, v := range values {
		text, ok := literal(v)
		if !ok {
			return guard{}, false
		}
		g.values = append(g.values, text)
	}
	return g, true
}

// guarded holds the facts that guards compare, for one judgement. A nil text is a missing fact.
type guarded [len(guardFacts)]*string

func (v *view) guardedFacts() *guarded {
	var out guarded
	for i, name := range guardFacts {
		if value, given := v.ResolveName(name); given {
			if s, ok := value.(types.String); ok {
				out[i] = (*string)(&s)
			}
		}
	}
	return &out
}

// excluded reports whether a guard of the condition makes the condition false. A missing fact ends the
// search: the comparison with it fails, and a failure makes the verdict stricter.
func (e *expression) excluded(facts *guarded) bool {
	for _, g := range e.guards {
		switch fact := facts[g.fact]; {
		case fact == nil:
			return false
		case !slices.Contains(g.values, *fact):
			return true
		}
	}
	return false
}
