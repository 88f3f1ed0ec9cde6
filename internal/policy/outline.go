package policy

import (
	"cmp"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// Outline lists the policy's settings of each level, and its rules in the order of the text, for
// people to read.
func (p *Policy) Outline() (levels []gatehouse.PolicyLevel, rules []gatehouse.PolicyRule) {
	for level := gatehouse.L1; level <= gatehouse.L5; level++ {
		q := p.approvals[level]
		q.required = max(q.required, minimum(level))
		l := gatehouse.PolicyLevel{Level: level, Name: p.levels[level], Line: p.levelAt[level].Line,
			PolicyAsk: askOf(q)}
		for name, of := range p.risk {
			if of == level {
				l.Types = append(l.Types, name)
			}
		}
		slices.Sort(l.Types)
		levels = append(levels, l)
	}
	for _, r := range p.rules {
		rules = append(rules, gatehouse.PolicyRule{
			ID: r.id, Line: r.at.Line, When: r.when.Source, Then: r.then, Reason: r.reason, Risk: r.risk,
			PolicyAsk: askOf(r.question),
		})
	}
	slices.SortStableFunc(rules, func(a, b gatehouse.PolicyRule) int { return cmp.Compare(a.Line, b.Line) })
	return levels, rules
}

func askOf(q question) gatehouse.PolicyAsk {
	return gatehouse.PolicyAsk{
		Required: q.required, Who: gatehouse.Whom(q.audience.roles, q.audience.groups, q.audience.people),
		Expiry: gatehouse.Duration(q.expiry), Hold: (*gatehouse.Duration)(q.hold), Stages: len(q.stages),
	}
}
