package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// maxScopes bounds the claims that a bulk operation makes on one ceiling per target.
const maxScopes = 100

// What a ceiling can be counted per.
const (
	perTenant = "tenant"
	perAgent  = "agent"
	perType   = "type"
	perTarget = "target"
)

// claim adds what the action takes from the ceilings. A ceiling of which that
// cannot be said denies: there is nothing to reserve.
func (p *Policy) claim(verdict *gatehouse.Verdict, v *view) {
	for i := range p.ceilings {
		c := &p.ceilings[i]
		if c.when != nil {
			applies, err := c.when.holds(v)
			if err != nil {
				refuse(verdict, fmt.Sprintf("ceiling %s: cannot tell whether it applies: %v", c.name, err))
				continue
			}
			if !applies {
				continue
			}
		}
		scopes, err := c.scopes(v)
		if err != nil {
			refuse(verdict, fmt.Sprintf("ceiling %s: %v", c.name, err))
			continue
		}
		amount, err := c.take(v)
		if err != nil {
			refuse(verdict, fmt.Sprintf("ceiling %s: ceiling amount not computable: %v", c.name, err))
			continue
		}
		for _, scope := range scopes {
			verdict.Ceilings = append(verdict.Ceilings, gatehouse.CeilingClaim{
				Ceiling: c.name, Scope: scope, Amount: amount, Limit: c.limit, Window: c.window,
			})
		}
	}
}

func refuse(v *gatehouse.Verdict, reason string) {
	if v.Outcome != gatehouse.OutcomeDeny {
		v.Outcome, v.Rules, v.Reasons = gatehouse.OutcomeDeny, []string{}, nil
	}
	v.Reasons = append(v.Reasons, reason)
}

// scopes names what the limit is counted for.
func (c *ceiling) scopes(v *view) ([]string, error) {
	switch c.per {
	case perTenant:
		return []string{perTenant}, nil
	case perType:
		return []string{"type:" + v.actionType}, nil
	case perAgent:
		if v.Proposer == nil || v.Proposer.ID == "" {
			return nil, errors.New("there is no proposer to count for")
		}
		return []string{"agent:" + v.Proposer.ID}, nil
	}
	refs := targets(v.Proposal)
	switch {
	case len(refs) == 0:
		return nil, errors.New("there is no target to count for")
	case len(refs) > maxScopes:
		return nil, fmt.Errorf("%d targets are too many for a ceiling per target; at most %d", len(refs), maxScopes)
	}
	scopes := make([]string, len(refs))
	for i, r := range refs {
		scopes[i] = "target:" + v.Proposal.Connector + "/" + v.Proposal.Target.EntityType + "/" + r
	}
	return scopes, nil
}

// take returns what the action takes: 1 of a count, else the size of the
// amount, whatever its sign; the proposer's own magnitude can only raise it.
func (c *ceiling) take(v *view) (gatehouse.Decimal, error) {
	if c.amount == nil {
		return "1", nil
	}
	out, err := c.amount.Eval(v)
	if err != nil {
		return "", brief(err)
	}
	n, err := expr.ToNumber(out)
	if err != nil {
		return "", err
	}
	amount := n.Dec().Abs()
	if m := v.Proposal.Magnitude; m != nil {
		claimed, err := gatehouse.ParseDecimal(string(m.Amount))
		if err != nil {
			return "", fmt.Errorf("magnitude: %w", err)
		}
		if claimed = claimed.Abs(); claimed.Cmp(amount) > 0 {
			amount = claimed
		}
	}
	if _, err := amount.Micros(); err != nil {
		return "", err
	}
	return amount, nil
}

// brief cuts an evaluation's error to one short line.
func brief(err error) error {
	s := form.OneLine(err.Error())
	if fact, ok := strings.CutPrefix(s, "no such attribute(s): "); ok {
		s = "the proposal does not give " + fact
	}
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return errors.New(s)
}
