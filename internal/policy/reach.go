package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/gatehouse-dev/gatehouse"
)

// Ask names the people whom the policy asks in one place, a level or a rule.
type Ask struct {
	Problem
	// What names the place, as "rule refunds" or "L3".
	What           string
	Required       int
	Roles          []gatehouse.Role
	People, Groups []string
}

// Asks lists whom the policy asks, in the order of the file: the levels that it
// mentions, and the rules that name somebody or a number.
func (p *Policy) Asks() []Ask {
	var out []Ask
	add := func(at Problem, what string, required int, a audience) {
		out = append(out, Ask{at, what, required, a.roles, a.people, a.groups})
	}
	// Each stage needs at least one person who can answer, and all stages together need
	// as many as are required.
	stages := func(what string, q question, required int) {
		for i, s := range q.stages {
			least := 1
			if i == len(q.stages)-1 {
				least = required
			}
			add(s.at, fmt.Sprintf("%s, stage %d,", what, i+1), least, everybody(q.stages[:i+1]))
		}
	}

	for level := gatehouse.L1; level <= gatehouse.L5; level++ {
		if at := p.levelAt[level]; at.Line > 0 {
			q := p.approvals[level]
			if len(q.stages) > 0 {
				stages(level.String(), q, max(q.required, minimum(level)))
				continue
			}
			add(at, level.String(), max(q.required, minimum(level)), q.audience)
		}
	}

	for i := range p.rules {
		r := &p.rules[i]
		if r.then == gatehouse.OutcomeNeedsApproval && (r.audience.stated() || r.required > 0) {
			if len(r.stages) > 0 {
				stages("rule "+r.id, r.question, max(r.required, minimum(r.risk), 1))
				continue
			}
			a := r.audience
			if !a.stated() {
				a = standard(gatehouse.L3).audience // the widest audience of any level
			}
			add(r.at, "rule "+r.id, max(r.required, minimum(r.risk), 1), a)
		}
	}
	slices.SortStableFunc(out, func(a, b Ask) int { return a.Line - b.Line })
	return out
}

// unreached says why no action reaches a rule, "" when that is not certain.
func (p *Policy) unreached(r *rule) string {
	terms := r.terms()
	if why := contradiction(terms); why != "" {
		return why
	}
	if r.then == gatehouse.OutcomeDeny {
		return ""
	}
	for i := range p.rules {
		deny := &p.rules[i]
		if deny.then != gatehouse.OutcomeDeny {
			continue
		}
		all := true
		for text := range deny.terms() {
			_, has := terms[text]
			all = all && (has || text == "true")
		}
		if all {
			return fmt.Sprintf("rule %s denies every action that this rule matches", deny.id)
		}
	}
	return ""
}

// terms returns the terms that must all hold, by their text.
func (r *rule) terms() map[string]ast.Expr {
	out := make(map[string]ast.Expr)
	for _, term := range conjuncts(r.when.Tree()) {
		text, err := cel.ExprToString(term, nil)
		if err != nil {
			text = fmt.Sprintf("term %d", term.ID())
		}
		out[text] = term
	}
	return out
}

// contradiction says why the terms can never hold together.
func contradiction(terms map[string]ast.Expr) string {
	texts := make(map[string]string) // fact → the text that it must equal
	least, most := int64(gatehouse.L1), int64(gatehouse.L5)
	for _, text := range slices.Sorted(maps.Keys(terms)) {
		term := terms[text]
		if term.Kind() == ast.LiteralKind && term.AsLiteral() == types.False {
			return "its condition is false"
		}
		if term.Kind() != ast.CallKind || len(term.AsCall().Args()) != 2 {
			continue
		}
		call := term.AsCall()
		left, right := call.Args()[0], call.Args()[1]
		if n, ok := whole(right); ok && isFact(left, "risk") {
			switch call.FunctionName() {
			case operators.Equals:
				least, most = max(least, n), min(most, n)
			case operators.GreaterEquals:
				least = max(least, n)
			case operators.Greater:
				least = max(least, n+1)
			case operators.LessEquals:
				most = min(most, n)
			case operators.Less:
				most = min(most, n-1)
			}
		}
		if want, ok := literal(right); ok && call.FunctionName() == operators.Equals {
			fact, err := cel.ExprToString(left, nil)
			if err != nil {
				continue
			}
			if other, known := texts[fact]; known && other != want {
				both := []string{other, want}
				slices.Sort(both)
				return fmt.Sprintf("%s cannot be %s", fact, strings.Join(both, " and "))
			}
			texts[fact] = want
		}
	}
	if least > most {
		return "its conditions on risk exclude every level"
	}
	return ""
}

// untested returns the ids of the rules that no test of the policy reaches.
func (p *Policy) untested() map[string]bool {
	if len(p.tests) == 0 {
		return nil
	}
	ids := make(map[string]bool, len(p.rules))
	for i := range p.rules {
		ids[p.rules[i].id] = true
	}
	for _, t := range p.tests {
		_, trace := p.Explain(context.Background(), t.facts)
		for _, rule := range trace {
			if rule.Matched {
				delete(ids, rule.Rule)
			}
		}
	}
	return ids
}

// unguarded returns the error of each rule that cannot be evaluated for a proposal of
// an unknown type without fields, because it reads a value that is not there.
func (p *Policy) unguarded() map[string]string {
	_, trace := p.Explain(context.Background(), Facts{
		Tenant: gatehouse.DefaultTenant, Floor: gatehouse.L1, ProposedAt: time.Unix(0, 0),
		Proposer: &gatehouse.Principal{Tenant: gatehouse.DefaultTenant, Kind: gatehouse.KindAgent},
		Proposal: &gatehouse.Proposal{
			Connector: "any", Operation: "any", Target: gatehouse.Target{EntityType: "any", EntityRef: "any"},
			ProposedChange: "{}",
		},
	})
	out := make(map[string]string)
	for _, t := range trace {
		if missing, ok := strings.CutPrefix(t.Detail, "error: "); ok && strings.HasPrefix(missing, "no such key") {
			out[t.Rule] = missing
		}
	}
	return out
}
