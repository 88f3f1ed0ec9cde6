package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// lint returns the linter's findings. It runs the policy's tests, so it must not
// be called within a transaction.
func lint(p *policy.Policy) []gatehouse.PolicyFinding {
	var out []gatehouse.PolicyFinding
	for _, r := range p.Lint() {
		out = append(out, gatehouse.PolicyFinding{Line: r.Line, Column: r.Column, Detail: r.Detail, Remark: !r.Error})
	}
	return out
}

// policyRemarks adds a finding for each person or group that the policy asks and the tenant does not have, and for
// each question that too few people can answer. It sorts all findings by line.
func policyRemarks(
	tx gatehouse.IdentityReader,
	p *policy.Policy,
	findings []gatehouse.PolicyFinding,
) ([]gatehouse.PolicyFinding, error) {
	out := slices.Clone(findings)
	people, err := tx.ListPeople()
	if err != nil {
		return nil, err
	}
	for _, ask := range p.Asks() {
		say := func(format string, args ...any) {
			out = append(out,
				gatehouse.PolicyFinding{Line: ask.Line, Column: ask.Column, Detail: ask.What + " " + fmt.Sprintf(format, args...),
					Remark: true})
		}
		for _, name := range ask.People {
			if !slices.ContainsFunc(people, func(q *gatehouse.Principal) bool { return q.ID == name || q.Name == name }) {
				say("asks %s, but no person in this tenant has that name or id", name)
			}
		}
		for _, name := range ask.Groups {
			switch _, err := tx.FindGroup(name); {
			case errors.Is(err, gatehouse.ErrNotFound):
				say("asks the group %s, which does not exist", name)
			case err != nil:
				return nil, err
			}
		}
		question := gatehouse.Approval{Roles: ask.Roles, People: ask.People, Groups: ask.Groups}
		if n := question.CountAnswerers(people); n < ask.Required {
			say("requires %d answers, but only %d of the people asked (%s) can answer", ask.Required, n,
				strings.Join(gatehouse.Whom(ask.Roles, ask.Groups, ask.People), ", "))
		}
	}
	slices.SortStableFunc(out, func(a, b gatehouse.PolicyFinding) int { return a.Line - b.Line })
	return out, nil
}
