package policy

import (
	"fmt"
	"maps"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/gatehouse-dev/gatehouse"
)

// Remark is a linter's finding in a policy that parses.
type Remark struct {
	Problem
	// Error marks a rule or level that certainly does not have the intended effect. Other remarks are for a
	// person to look at.
	Error bool `json:"error"`
}

// Lint looks for text that parses but is probably a mistake. Findings marked as
// errors do no harm at the gate, which overrides such rules and levels.
func (p *Policy) Lint() []Remark {
	var out []Remark
	say := func(at Problem, isError bool, format string, args ...any) {
		at.Detail = fmt.Sprintf(format, args...)
		out = append(out, Remark{at, isError})
	}

	untested, unguarded := p.untested(), p.unguarded()
	for i := range p.rules {
		r := &p.rules[i]
		if why := p.unreached(r); why != "" {
			say(r.at, false, "rule %s never has an effect: %s", r.id, why)
		} else if untested[r.id] {
			say(r.at, false, "no test of the policy reaches rule %s", r.id)
		}
		if missing := unguarded[r.id]; missing != "" {
			say(r.at, false, "rule %s %s without a value that it reads (%s): guard it with has(), or name action.type", r.id,
				map[gatehouse.Outcome]string{
					gatehouse.OutcomeDeny:          "also denies proposals",
					gatehouse.OutcomeNeedsApproval: "also asks people about proposals",
					gatehouse.OutcomeAllow:         "keeps other rules from allowing proposals",
				}[r.then], missing)
		}
		if why := p.neverAllows(r); why != "" {
			say(r.at, true, "rule %s can never allow anything: %s, and L3 and above always need a person", r.id, why)
		}
		if least := minimum(r.risk); r.risk != 0 && r.required != 0 && r.required < least {
			say(r.at, true, "rule %s requires %d, but %s always needs %d persons", r.id, r.required, r.risk, least)
		}
		lintAudience("rule "+r.id, r.at, r.audience, say)
		lintStages("rule "+r.id, r.question, say)
	}

	for level := gatehouse.L1; level <= gatehouse.L5; level++ {
		lintStages(level.String(), p.approvals[level], say)
		q, at := p.approvals[level], p.levelAt[level]
		if q.required < minimum(level) {
			say(at, true, "%s always needs %d persons, whatever is required here", level, minimum(level))
		}
		lintAudience(level.String(), at, q.audience, say)
	}

	for i := range p.ceilings {
		if c := &p.ceilings[i]; c.amount != nil && c.currency == "" && c.amountCurrency == nil {
			say(c.at, false,
				"ceiling %s states no currency: each currency that a change names has the whole limit; write currency", c.name)
		}
	}

	usual := Default()
	for _, name := range slices.Sorted(maps.Keys(p.risk)) {
		if ships, ok := usual.risk[name]; ok && p.risk[name] < ships {
			say(p.riskAt[name], false, "%s is %s here, and %s in the default policy", name, p.risk[name], ships)
		}
	}
	if len(p.tests) == 0 {
		say(Problem{Line: 1, Column: 1}, false, "the policy has no tests")
	}

	slices.SortStableFunc(out, func(a, b Remark) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return out
}

// lintAudience reports people and groups that the role approver includes anyway.
func lintAudience(what string, at Problem, a audience, say func(at Problem, isError bool, format string, args ...any)) {
	if a.everyone() && (len(a.people) > 0 || len(a.groups) > 0) {
		say(at, false, "%s names people or groups in addition to the role approver, which everyone who can decide has", what)
	}
}

// neverAllows says why an allow rule can match L3 and above only, "" when that is
// not certain.
func (p *Policy) neverAllows(r *rule) string {
	if r.then != gatehouse.OutcomeAllow {
		return ""
	}
	if r.risk.NeedsPerson() {
		return fmt.Sprintf("it raises the risk to %s", r.risk)
	}
	for _, term := range conjuncts(r.when.Tree()) {
		if why := p.pinned(term); why != "" {
			return why
		}
	}
	return ""
}

// conjuncts returns the terms that must all hold for e to hold.
func conjuncts(e ast.Expr) []ast.Expr {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.LogicalAnd {
		return []ast.Expr{e}
	}
	var terms []ast.Expr
	for _, arg := range e.AsCall().Args() {
		terms = append(terms, conjuncts(arg)...)
	}
	return terms
}

// pinned says why a term holds for L3 and above only, "" when that is not certain.
func (p *Policy) pinned(term ast.Expr) string {
	if term.Kind() != ast.CallKind || len(term.AsCall().Args()) != 2 {
		return ""
	}
	call := term.AsCall()
	left, right := call.Args()[0], call.Args()[1]
	switch call.FunctionName() {
	case operators.Equals:
		if name, ok := p.riskyType(left, right); ok {
			return fmt.Sprintf("%s is %s", name, p.levelOf(name))
		}
		if name, ok := p.riskyType(right, left); ok {
			return fmt.Sprintf("%s is %s", name, p.levelOf(name))
		}
		if n, ok := whole(right); ok && isFact(left, "risk") && n >= int64(gatehouse.L3) {
			return fmt.Sprintf("it asks for risk %d", n)
		}
	case operators.GreaterEquals, operators.Greater:
		n, ok := whole(right)
		if call.FunctionName() == operators.Greater {
			n++
		}
		if ok && isFact(left, "risk") && n >= int64(gatehouse.L3) {
			return fmt.Sprintf("it asks for risk %d and above", n)
		}
	case operators.In:
		if !isFact(left, "action.type") || right.Kind() != ast.ListKind || right.AsList().Size() == 0 {
			return ""
		}
		for _, e := range right.AsList().Elements() {
			if _, ok := p.riskyType(left, e); !ok {
				return ""
			}
		}
		return "all types that it lists are L3 or above"
	}
	return ""
}

// riskyType reports whether fact is action.type and value the name of a type at L3
// or above.
func (p *Policy) riskyType(fact, value ast.Expr) (string, bool) {
	if !isFact(fact, "action.type") || value.Kind() != ast.LiteralKind {
		return "", false
	}
	name, ok := value.AsLiteral().(types.String)
	return string(name), ok && p.levelOf(string(name)).NeedsPerson()
}

// isFact reports whether e is the fact with that name, which may have a dot.
func isFact(e ast.Expr, name string) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent() == name
	case ast.SelectKind:
		sel := e.AsSelect()
		return sel.Operand().Kind() == ast.IdentKind && sel.Operand().AsIdent()+"."+sel.FieldName() == name
	}
	return false
}

func whole(e ast.Expr) (int64, bool) {
	if e.Kind() != ast.LiteralKind {
		return 0, false
	}
	n, ok := e.AsLiteral().(types.Int)
	return int64(n), ok
}
