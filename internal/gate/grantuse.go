package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	iso4217 "golang.org/x/text/currency"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// findGrants finds the open grants and mandates that cover a judged proposal. It runs
// outside the transaction, which repeats every check whose result can change.
func (g *Gate) findGrants(ctx context.Context, d *draft, f policy.Facts, from *lineage) error {
	v, a := &d.verdict, &d.action
	v.grants, v.mandates = nil, nil
	if v.policy == nil || v.policy.GrantUpTo() == 0 && v.policy.MandateUpTo() == 0 ||
		v.Outcome == gatehouse.OutcomeAllow || !grantable(a, from) {
		return nil
	}
	var grants []*gatehouse.Grant
	var mandates []*gatehouse.Mandate
	err := g.Store.View(ctx, f.Tenant, func(tx gatehouse.ReadTx) (err error) {
		f.ProposedAt = tx.Now()
		if v.policy.GrantUpTo() > 0 {
			grants, err = tx.ListGrants(gatehouse.GrantFilter{
				Agent: a.ProposerID, Connector: a.Connector, Operation: a.Operation, Open: true, Limit: gatehouse.MaxGrants,
			})
		}
		if err == nil && v.policy.MandateUpTo() > 0 {
			mandates, err = tx.ListMandates(gatehouse.MandateFilter{
				Agent: a.ProposerID, Open: true, Limit: gatehouse.MaxMandates,
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, grant := range grants {
		if grant.Fingerprint != a.Fingerprint {
			continue
		}
		when, err := v.policy.GrantCondition(grant.When)
		if err != nil {
			g.Log.ErrorContext(ctx, "the condition of a grant does not load", "grant", grant.ID, "error", err)
			continue
		}
		if !when.Holds(ctx, f, v.RiskLevel) {
			continue
		}
		if money, ok := moved(a, grant.Amounts); ok {
			v.grants = append(v.grants, covered{grant, money})
		}
	}
	v.mandates = g.coveredSteps(ctx, mandates, a, v, f)
	return ctx.Err()
}

// grantable reports whether an action can be approved in advance at all: it is a first proposal,
// has one target, belongs to no run, and people decide only because the policy asks them.
func grantable(a *gatehouse.Action, from *lineage) bool {
	return from.supersedes == nil && from.reverses == nil && from.author == nil && from.starter == nil &&
		from.required == 0 && !from.own &&
		len(a.Target.EntityRefs) == 0 && card.MaxRows(a) == 0 && a.Connector != workflow.ApprovalConnector
}

// covered is a grant that covers a proposal, and the money that the proposal takes.
type covered struct {
	*gatehouse.Grant
	moved []gatehouse.Magnitude
}

// moved returns the money that an action may move, by currency, to compare with the
// amounts of a limit; ok is false where the money cannot be counted, and where the limit
// has amounts and the action has none. New values count
// in full: a difference would depend on the present state, which the proposer claims.
// The claimed magnitude can only raise a sum. An amount without a currency counts in
// the limit's currency if the limit has only one and the payload names no other. If there
// is a limit, and the payload names a currency in which no amount is counted, ok is false:
// the target may read a counted amount in that currency.
func moved(a *gatehouse.Action, limit []gatehouse.Magnitude) (list []gatehouse.Magnitude, ok bool) {
	only, named := "", currenciesNamed(a)
	if len(limit) == 1 && len(named) <= 1 && (len(named) == 0 || named[limit[0].Currency]) {
		only = limit[0].Currency
	}
	take := func(currency string, more func(before gatehouse.Decimal) gatehouse.Decimal) {
		currency = cmp.Or(currency, only)
		for i := range list {
			if list[i].Currency == currency {
				list[i].Amount = more(list[i].Amount)
				return
			}
		}
		list = append(list, gatehouse.Magnitude{Amount: more("0"), Currency: currency})
	}
	bare := *a
	bare.CurrentState = ""
	for _, x := range card.Amounts(&bare) {
		take(x.Currency, x.Size.Add)
	}
	if !card.Countable(&bare) || len(limit) > 0 && len(list) == 0 {
		return nil, false
	}
	for _, x := range list {
		delete(named, x.Currency)
	}
	if len(limit) > 0 && len(named) > 0 {
		return nil, false
	}
	if m := a.Magnitude; m != nil && m.Amount != "" {
		take(m.Currency, func(before gatehouse.Decimal) gatehouse.Decimal {
			if claim := m.Amount.Abs(); claim.Cmp(before) > 0 {
				return claim
			}
			return before
		})
	}
	// The amounts are rounded up to millionths, which bounds the length of the stored sums.
	for i := range list {
		micros, err := list[i].Amount.Micros()
		if err != nil || list[i].Currency == "" {
			return nil, false
		}
		list[i].Amount = gatehouse.DecimalFromMicros(micros)
	}
	return list, true
}

// currenciesNamed returns the currency codes among all values in an action's payload, whatever the names of their
// fields.
func currenciesNamed(a *gatehouse.Action) map[string]bool {
	found := map[string]bool{}
	for _, payload := range []gatehouse.JSON{a.ProposedChange, a.CurrentState} {
		var value any
		if json.Unmarshal([]byte(payload), &value) == nil { // a payload may be ""
			addCurrencies(found, value)
		}
	}
	return found
}

func addCurrencies(found map[string]bool, value any) {
	switch v := value.(type) {
	case string:
		if unit, err := iso4217.ParseISO(strings.TrimSpace(v)); err == nil {
			found[unit.String()] = true
		}
	case []any:
		for _, element := range v {
			addCurrencies(found, element)
		}
	case map[string]any:
		for _, member := range v {
			addCurrencies(found, member)
		}
	}
}

// useGrants approves a pending action by the first grant or mandate that covers it, in
// the transaction that proposes it. Without one, people are asked.
func (g *Gate) useGrants(tx gatehouse.Tx, a *gatehouse.Action, v judgement) error {
	for _, found := range v.grants {
		if done, err := g.useGrant(tx, a, &v, found); done || err != nil {
			return err
		}
	}
	for _, found := range v.mandates {
		if done, err := g.useMandate(tx, a, &v, found); done || err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) useGrant(tx gatehouse.Tx, a *gatehouse.Action, v *judgement, found covered) (bool, error) {
	// The same lock order as in UpdatePrincipal, which may disable the grantor.
	grantors, err := tx.LockPrincipals([]string{found.Grantor})
	if err != nil {
		return false, err
	}
	grant, err := tx.LockGrant(found.ID)
	if err != nil || !grant.HoldsAt(tx.Now()) {
		return false, err
	}
	agent := author{id: a.ProposerID, name: a.ProposedBy}
	switch {
	case len(grantors) == 0 || !grantors[0].MayDecide():
		return false, endGrant(tx, agent, grant, gatehouse.GrantRightLost, a)
	case v.Outcome == gatehouse.OutcomeDeny, a.RiskLevel > min(grant.Level, v.policy.GrantUpTo()),
		grant.ExpiresAt.Sub(grant.CreatedAt) > v.policy.GrantWindow():
		return false, endGrant(tx, agent, grant, gatehouse.GrantPolicy, a)
	case a.Status != gatehouse.StatusPending, a.Repeats != "", a.Approval.Required > 1, a.Approval.Confirm != nil,
		!grant.Fits(found.moved):
		return false, nil
	}
	r := &ruling{
		gate: g, action: a, grant: grant.ID, caller: &gatehouse.Caller{Principal: grantors[0], Via: gatehouse.ViaGrant},
		decision: gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest},
	}
	if err := g.checkVoters(tx, a, nil, grantors[0], nil); gatehouse.CodeOf(err) == gatehouse.CodeAuthorityRevoked {
		return false, nil // excluded, or not asked by this question
	} else if err != nil {
		return false, err
	}
	if err := reserve(tx, a); gatehouse.CodeOf(err) == gatehouse.CodeCeilingExceeded {
		return false, nil
	} else if err != nil {
		return false, err
	}
	grant.Use(found.moved)
	if grant.Used == grant.Count {
		err = endGrant(tx, agent, grant, gatehouse.GrantUsedUp, a)
	} else {
		err = tx.UpdateGrant(grant)
	}
	if err != nil {
		return false, err
	}
	r.vote(tx)
	return true, r.approved(tx)
}
