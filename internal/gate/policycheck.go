package gate

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// CheckPolicy lints a policy's text and runs its tests. Nothing is stored.
func (g *Gate) CheckPolicy(ctx context.Context, source string) (*gatehouse.PolicyCheck, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
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
	findings := lint(p)
	err = g.Store.View(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) (err error) {
		out.Findings, err = policyRemarks(tx, p, findings)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Levels, out.Rules = p.Outline()
	for _, r := range p.Test() {
		out.Tests = append(out.Tests, gatehouse.PolicyTest{Name: r.Name, Line: r.Line, Differences: r.Differences})
	}
	return &out, nil
}
