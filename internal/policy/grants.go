package policy

import (
	"context"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// grants is what the policy allows of approvals given in advance.
type grants struct {
	upTo      gatehouse.RiskLevel
	maxWindow time.Duration
	language  *expr.Language // of conditions; nil where upTo is 0
}

// GrantUpTo is the highest level that a grant may cover; 0, the default, for no grants.
func (p *Policy) GrantUpTo() gatehouse.RiskLevel { return p.grants.upTo }

// GrantWindow is the longest duration of a grant.
func (p *Policy) GrantWindow() time.Duration { return p.grants.maxWindow }

// grants reads what approvals in advance may cover.
func (p *parser) grants(n *yaml.Node) {
	p.policy.grants.maxWindow = gatehouse.MaxGrantWindow
	if n == nil {
		return
	}
	f := p.Mapping(n, "grants", "up_to", "max_window")
	if v := f.Values["max_window"]; v != nil {
		p.policy.grants.maxWindow = p.Duration(v, "max_window",
			gatehouse.Duration(gatehouse.MinGrantWindow), gatehouse.Duration(gatehouse.MaxGrantWindow)).D()
	}
	v := f.Values["up_to"]
	if v == nil {
		return
	}
	if v.Kind != yaml.ScalarNode || len(v.Value) != 1 || v.Value < "0" || v.Value > "3" {
		p.Fail(v, "up_to must be 0 to 3: L4 and L5 are never approved in advance")
		return
	}
	if p.policy.grants.upTo = gatehouse.RiskLevel(v.Value[0] - '0'); p.policy.grants.upTo == 0 {
		return
	}
	// The calendar's functions are left out: a grant holds for at most a day.
	language, err := expr.New(expr.Config{Facts: facts(), Cost: costLimit})
	if err != nil {
		p.Fail(v, "%v", err)
		return
	}
	p.policy.grants.language = language
}

// GrantCondition is the compiled condition of a grant. It is safe for concurrent use.
type GrantCondition struct {
	policy *Policy
	when   *expr.Expression
}

// GrantCondition compiles the condition of a grant. The policy must allow grants. The
// error has code invalid.
func (p *Policy) GrantCondition(source string) (*GrantCondition, error) {
	e, errs := p.grants.language.Compile(source, wantCondition, nil)
	if len(errs) > 0 {
		details := make([]string, len(errs))
		for i, err := range errs {
			details[i] = form.OneLine(err.Detail)
		}
		return nil, gatehouse.Violations{{Pointer: "/when", Detail: strings.Join(details, "; ")}}.Err()
	}
	return &GrantCondition{p, e}, nil
}

// Holds reports whether the condition holds for a proposal that was judged at a level.
// What cannot be evaluated does not hold.
func (c *GrantCondition) Holds(ctx context.Context, f Facts, level gatehouse.RiskLevel) bool {
	v := &view{Facts: &f, actionType: known(c.policy.risk, f.Proposal.ActionType), risk: level}
	var err error
	if v.budget, err = c.policy.grants.language.Budget(ctx); err != nil {
		return false
	}
	holds, err := (&expression{Expression: c.when}).holds(v)
	return err == nil && holds
}
