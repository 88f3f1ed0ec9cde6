package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// maxScopes bounds the claims of a bulk operation on one ceiling per target.
const maxScopes = 100

// The values of per: a ceiling keeps one account for each tenant, agent, action type or target.
const (
	perTenant = "tenant"
	perAgent  = "agent"
	perType   = "type"
	perTarget = "target"
)

// claim adds the action's claims on the ceilings. If a claim cannot be computed,
// the verdict is deny: there is no amount to reserve.
func (p *Policy) claim(verdict *gatehouse.Verdict, v *view) {
	var apply []*ceiling
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
		apply = append(apply, c)
	}

	for _, c := range apply {
		currency, err := c.currencyOf(v)
		if err != nil {
			refuse(verdict, fmt.Sprintf("ceiling %s: %v", c.name, err))
			continue
		}
		if c.currency != "" && currency != c.currency {
			if !slices.ContainsFunc(apply, func(o *ceiling) bool { return o.currency == currency }) {
				refuse(verdict,
					fmt.Sprintf("ceiling %s is in %s, the amount in %s, and no ceiling that applies is in %s", c.name, c.currency,
						currency, currency))
			}
			continue
		}

		scopes, err := c.scopes(v)
		if err != nil {
			refuse(verdict, fmt.Sprintf("ceiling %s: %v", c.name, err))
			continue
		}
		amount, err := c.take(v, currency)
		if err != nil {
			refuse(verdict, fmt.Sprintf("ceiling %s: ceiling amount not computable: %v", c.name, err))
			continue
		}
		for _, scope := range scopes {
			if currency != "" {
				scope += "/" + currency
			}
			verdict.Ceilings = append(verdict.Ceilings, gatehouse.CeilingClaim{
				Ceiling: c.name, Scope: scope, Amount: amount, Limit: c.limit, Window: c.window, Currency: currency,
			})
		}
	}
}

// currencyOf returns the currency of the amount, "" for a count and for an amount without a currency.
// A ceiling that states a currency cannot count an amount of unknown currency: that is an error. If neither
// the connector declares a currency nor the change gives one, such a ceiling takes the currency of the
// proposer's magnitude. A ceiling without a currency does not: a proposer's claim must not start a separate sum.
func (c *ceiling) currencyOf(v *view) (string, error) {
	if c.amount == nil {
		return "", nil
	}
	var text string
	if c.amountCurrency != nil {
		out, err := v.eval(c.amountCurrency)
		if err != nil {
			return "", fmt.Errorf("the currency of the amount is not known: %w", brief(err))
		}
		s, ok := out.Value().(string)
		if !ok {
			return "", errors.New("the currency of the amount is not known: amount_currency is not a string")
		}
		text = s
	} else if currency, declared := v.declaredCurrency(); declared {
		text = currency
	} else if v.Declared != nil && card.UnclearMoney(v.action()) {
		// The proposer could otherwise choose the ceiling, or start a separate sum, by another member of the change.
		if c.currency == "" {
			return "", nil
		}
		return "", errors.New("the amounts that the connector declares are in several currencies, or cannot be counted: " +
			"amount_currency can name the currency")
	} else if member, given := v.Proposal.ProposedChange.Get("currency"); given && member != "null" {
		s, ok := member.Text()
		if !ok {
			return "", errors.New("the currency of the change is not text")
		}
		text = s
	} else if m := v.Proposal.Magnitude; c.currency != "" && m != nil && m.Currency != "" {
		text = m.Currency
	} else if c.currency == "" {
		return "", nil
	}
	currency := strings.ToUpper(text)
	if !gatehouse.ValidCurrency(currency) {
		if text == "" {
			return "", errors.New("the currency of the amount is not known")
		}
		return "", fmt.Errorf("%s is not the code of a currency", gatehouse.Quote(text))
	}
	return currency, nil
}

// declaredCurrency returns the currency of the money in the change if the connector declares amounts. It returns false
// if the change has no money, or money in several currencies, without a currency, or that cannot be counted.
func (v *view) declaredCurrency() (string, bool) {
	if v.Declared == nil || len(v.Declared.Amounts) == 0 {
		return "", false
	}
	m := v.moneyOf()
	return m.currency, m.ok && m.currency != ""
}

func refuse(v *gatehouse.Verdict, reason string) {
	if v.Outcome != gatehouse.OutcomeDeny {
		v.Outcome, v.Rules, v.Reasons = gatehouse.OutcomeDeny, []string{}, nil
	}
	v.Reasons = append(v.Reasons, reason)
}

// scopes names the accounts that the limit applies to.
func (c *ceiling) scopes(v *view) ([]string, error) {
	switch c.per {
	case perTenant:
		return []string{perTenant}, nil
	case perType:
		return []string{"type:" + v.actionType}, nil
	case perAgent:
		who := v.Proposer
		if v.Starter != nil {
			who = v.Starter
		}
		if who == nil || who.ID == "" {
			return nil, errors.New("the proposal has no proposer, and the ceiling is per agent")
		}
		return []string{"agent:" + who.ID}, nil
	}
	refs := targets(v.Proposal)
	switch {
	case len(refs) == 0:
		return nil, errors.New("the proposal has no target, and the ceiling is per target")
	case len(refs) > maxScopes:
		return nil, fmt.Errorf("%d targets are too many for a ceiling per target; at most %d", len(refs), maxScopes)
	}
	scopes := make([]string, len(refs))
	for i, r := range refs {
		scopes[i] = "target:" + v.Proposal.Connector + "/" + v.Proposal.Target.EntityType + "/" + r
	}
	return scopes, nil
}

// take returns the amount of the claim: 1 for a count, else the absolute value of
// the amount. The proposer's magnitude can only raise it.
//
// A magnitude in another currency cannot be compared with the amount, and is an
// error.
func (c *ceiling) take(v *view, currency string) (gatehouse.Decimal, error) {
	if c.amount == nil {
		return "1", nil
	}
	out, err := v.eval(c.amount)
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
		if currency != "" && m.Currency != "" && !strings.EqualFold(m.Currency, currency) {
			return "", fmt.Errorf("the magnitude is in %s, the amount in %s", gatehouse.Quote(m.Currency), currency)
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

// brief shortens an evaluation's error to one short line.
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
