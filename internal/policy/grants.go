package policy

import (
	"cmp"
	"context"
	"strings"
	"time"

	"cel.dev/cel-go/common/ast"
	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// advance says which approvals the policy allows people to give in advance.
type advance struct {
	upTo      gatehouse.RiskLevel
	maxWindow time.Duration
}

// GrantUpTo is the highest level that a grant may cover; 0, the default, for no grants.
func (p *Policy) GrantUpTo() gatehouse.RiskLevel { return p.grants.upTo }

// GrantWindow is the longest duration of a grant.
func (p *Policy) GrantWindow() time.Duration { return p.grants.maxWindow }

// MandateUpTo is the highest level that a mandate may cover; 0, the default, for no
// mandates.
func (p *Policy) MandateUpTo() gatehouse.RiskLevel { return p.mandates.upTo }

// MandateWindow is the longest duration of a mandate.
func (p *Policy) MandateWindow() time.Duration { return p.mandates.maxWindow }

// inAdvance reads what grants and mandates may cover.
func (p *parser) inAdvance(grants, mandates *yaml.Node) {
	p.policy.grants = p.advance(grants, "grants", gatehouse.MaxGrantLevel, gatehouse.MaxGrantWindow,
		gatehouse.MaxGrantWindow)
	p.policy.mandates = p.advance(mandates, "mandates", gatehouse.MaxMandateLevel, gatehouse.MaxMandateWindow,
		gatehouse.DefaultMandateWindow)
	if p.policy.grants.upTo == 0 && p.policy.mandates.upTo == 0 {
		return
	}
	// The calendar's functions are left out: an approval in advance holds for days.
	language, err := expr.New(expr.Config{Facts: facts(), Cost: costLimit})
	if err != nil {
		p.Fail(cmp.Or(grants, mandates), "%v", err)
		return
	}
	p.policy.conditions = language
}

func (p *parser) advance(
	n *yaml.Node, what string, highest gatehouse.RiskLevel, longest, window time.Duration,
) advance {
	a := advance{maxWindow: window}
	if n == nil {
		return a
	}
	f := p.Mapping(n, what, "up_to", "max_window")
	if v := f.Values["max_window"]; v != nil {
		a.maxWindow = p.Duration(v, "max_window",
			gatehouse.Duration(gatehouse.MinGrantWindow), gatehouse.Duration(longest)).D()
	}
	a.upTo = p.upTo(f, "up_to", 0, 0, highest, "higher levels are never approved in advance")
	return a
}

// GrantCondition is the compiled condition of a grant or of a step of a mandate. It is safe for concurrent use.
type GrantCondition struct {
	policy *Policy
	when   *expr.Expression
}

// GrantCondition compiles a condition. The policy must allow grants or mandates. The
// error has code invalid.
func (p *Policy) GrantCondition(source string) (*GrantCondition, error) {
	return p.grantCondition(source, nil)
}

// CheckGrantCondition checks a new condition. It refuses what GrantCondition refuses, and a
// comparison of action.type with a name that it never has in this version of the policy.
func (p *Policy) CheckGrantCondition(source string) error {
	_, err := p.grantCondition(source, func(root ast.Expr, fail func(at ast.Expr, format string, args ...any)) {
		reachableTypes(p.risk, root, fail)
	})
	return err
}

func (p *Policy) grantCondition(source string, check expr.Check) (*GrantCondition, error) {
	e, errs := p.conditions.Compile(source, wantCondition, withoutTimes(check))
	if len(errs) > 0 {
		details := make([]string, len(errs))
		for i, err := range errs {
			details[i] = form.OneLine(err.Detail)
		}
		return nil, gatehouse.Violations{{Pointer: "/when", Detail: strings.Join(details, "; ")}}.Err()
	}
	return &GrantCondition{p, e}, nil
}

// withoutTimes extends a check, which may be nil: it also refuses CEL's own functions of a time.
func withoutTimes(check expr.Check) expr.Check {
	return func(root ast.Expr, fail func(at ast.Expr, format string, args ...any)) {
		ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
			if name, ok := celTimeFunction(e); ok {
				fail(e, "%s is not supported in a condition of an approval in advance", name)
			}
		}))
		if check != nil {
			check(root, fail)
		}
	}
}

// Holds reports whether the condition holds for a proposal that was judged at a level.
// What cannot be evaluated does not hold.
func (c *GrantCondition) Holds(ctx context.Context, f Facts, level gatehouse.RiskLevel) bool {
	v := c.policy.newView(&f)
	v.risk = level
	var err error
	if v.budget, err = c.policy.conditions.Budget(ctx); err != nil {
		return false
	}
	holds, err := (&expression{Expression: c.when}).holds(v)
	return err == nil && holds
}
