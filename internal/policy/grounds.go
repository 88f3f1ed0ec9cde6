package policy

import (
	"errors"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
)

// maxFactBytes bounds a fact's value that is shown, in bytes of JSON.
const maxFactBytes = 512

// Grounds explains a judgement: it returns the facts that the rules with the given
// ids name, with their values, and the levels from which the level was computed. It
// evaluates no rule.
func (p *Policy) Grounds(f Facts, rules []string) gatehouse.Grounds {
	out := gatehouse.Grounds{Floor: f.Floor, Rules: []gatehouse.RuleGround{}}
	if f.Proposal == nil {
		return out
	}
	v := p.newView(&f)
	out.Type, out.Listed, out.Claimed = v.actionType, p.risk[v.actionType], f.Proposal.RiskLevel
	for i := range p.rules {
		r := &p.rules[i]
		if !slices.Contains(rules, r.id) {
			continue
		}
		out.Rules = append(out.Rules, gatehouse.RuleGround{
			Rule: r.id, Outcome: r.then, When: r.when.Source, Risk: r.risk, Facts: v.read(r.when.Tree()),
		})
	}
	return out
}

// read returns the facts that an expression names, without duplicates, in the order
// of the text.
func (v *view) read(root ast.Expr) []gatehouse.RuleFact {
	out := []gatehouse.RuleFact{}
	names := make(map[string]bool)
	for _, f := range facts() {
		names[f.Name] = true
	}
	var visit func(e ast.Expr)
	visit = func(e ast.Expr) {
		fact, steps, ok := chain(e)
		if ok && !names[fact] && len(steps) > 0 {
			fact, steps = fact+"."+steps[0], steps[1:]
		}
		if ok && names[fact] {
			f := gatehouse.RuleFact{Name: fact}
			for _, step := range steps {
				f.Name += "." + step
			}
			if !slices.ContainsFunc(out, func(o gatehouse.RuleFact) bool { return o.Name == f.Name }) {
				f.Value, f.Long = v.factValue(fact, steps)
				out = append(out, f)
			}
			return
		}
		for _, child := range children(e) {
			visit(child)
		}
	}
	visit(root)
	return out
}

// factValue returns the value of a fact as JSON; "" when the fact is missing, or its value too long
// to show.
func (v *view) factValue(fact string, steps []string) (value gatehouse.JSON, long bool) {
	found, ok := v.ResolveName(fact)
	if !ok {
		return "", false
	}
	at, ok := found.(ref.Val)
	for _, step := range steps {
		m, isMap := at.(traits.Mapper)
		if !ok || !isMap {
			return "", false
		}
		at, ok = m.Find(types.String(step))
	}
	if !ok {
		return "", false
	}
	if value, err := expr.ToJSON(at, maxFactBytes); err == nil {
		return value, false
	} else if !errors.Is(err, expr.ErrTooLarge) {
		return "", false
	}
	return "", true
}

// chain splits an expression into a fact and the fields selected from it, such as
// change.price or metadata["of origin"].
func chain(e ast.Expr) (fact string, steps []string, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return strings.TrimPrefix(e.AsIdent(), expr.GivenPrefix), nil, true // has(fact) has the prefix
	case ast.SelectKind:
		fact, steps, ok = chain(e.AsSelect().Operand())
		return fact, append(steps, e.AsSelect().FieldName()), ok
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || len(call.Args()) != 2 || call.Args()[1].Kind() != ast.LiteralKind {
			return "", nil, false
		}
		key, isText := call.Args()[1].AsLiteral().(types.String)
		fact, steps, ok = chain(call.Args()[0])
		return fact, append(steps, string(key)), ok && isText
	}
	return "", nil, false
}

// children returns the parts of an expression that can name facts.
func children(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			return append([]ast.Expr{call.Target()}, call.Args()...)
		}
		return call.Args()
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	case ast.MapKind:
		var out []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			out = append(out, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return out
	}
	return nil
}
