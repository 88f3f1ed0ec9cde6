package app

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// CheckPolicy lints a policy's text and runs its tests. Nothing is stored.
func (g *Gate) CheckPolicy(ctx context.Context, source string) (*gatehouse.PolicyCheck, error) {
	if _, err := gatehouse.CallerFrom(ctx); err != nil {
		return nil, err
	}
	var out gatehouse.PolicyCheck
	p, err := policy.Parse([]byte(source))
	var problems *policy.Problems
	switch {
	case errors.As(err, &problems):
		for _, x := range problems.List {
			out.Findings = append(out.Findings, gatehouse.PolicyFinding{Line: x.Line, Column: x.Column, Detail: x.Detail})
		}
		return &out, nil
	case err != nil:
		return nil, policyError(err)
	}
	for _, r := range p.Lint() {
		out.Findings = append(out.Findings, gatehouse.PolicyFinding{Line: r.Line, Column: r.Column, Detail: r.Detail, Remark: !r.Error})
	}
	for _, r := range p.Test() {
		out.Tests = append(out.Tests, gatehouse.PolicyTest{Name: r.Name, Line: r.Line, Differences: r.Differences})
	}
	return &out, nil
}
