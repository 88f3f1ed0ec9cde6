package policy_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// TestMoney: a condition sees the amount of the change, by the declared fields, and whether the
// claim differs from it.
func TestMoney(t *testing.T) {
	t.Parallel()
	declare := func(f *policy.Facts) {
		f.Declared = &gatehouse.Declared{Amounts: []gatehouse.AmountField{
			{Field: "/cents", Currency: "/unit", Minor: true},
		}}
	}
	for _, c := range []struct {
		when  string
		facts policy.Facts
	}{
		{`money.amount == 12.5 && money.currency == "EUR"`, facts("note", `{"cents":1250,"unit":"EUR"}`, declare)},
		{`money.amount == 1250 && !has(money.currency)`, facts("note", `{"amount":1250}`)},
		{`!has(money.amount)`, facts("note", `{"cents":1250,"unit":"EUR"}`)},
		{`!has(money.amount)`, facts("note", `{"cents":1250,"unit":"ISK"}`, declare)},
		{`magnitude.differs`, facts("note", `{"cents":1250,"unit":"EUR"}`, declare, magnitude("1250"))},
		{`!magnitude.differs`, facts("note", `{"cents":1250,"unit":"EUR"}`, declare, magnitude("12.5"))},
	} {
		p := mustParse(t, "version: 1\nrules:\n  - {id: r, when: '"+c.when+"', then: deny}\n")
		if v := p.Evaluate(t.Context(), c.facts); v.Outcome != gatehouse.OutcomeDeny || len(v.Rules) != 1 {
			t.Errorf("%s: %+v", c.when, v)
		}
	}
}

// TestCeilingOfDeclaredMoney: a ceiling takes the declared currency.
func TestCeilingOfDeclaredMoney(t *testing.T) {
	t.Parallel()
	p := mustParse(t, withCeiling("per: tenant, limit: 100, amount: money.amount, currency: EUR"))
	f := facts("note", `{"cents":1250,"unit":"EUR"}`, func(f *policy.Facts) {
		f.Declared = &gatehouse.Declared{Amounts: []gatehouse.AmountField{
			{Field: "/cents", Currency: "/unit", Minor: true},
		}}
	})
	v := p.Evaluate(t.Context(), f)
	if len(v.Ceilings) != 1 || v.Ceilings[0].Amount.Cmp("12.5") != 0 || v.Ceilings[0].Currency != "EUR" {
		t.Errorf("%s %v %+v", v.Outcome, v.Reasons, v.Ceilings)
	}
}

// TestCeilingOfMixedMoney: a proposer cannot choose the currency of declared amounts by another member of the change or
// by the magnitude: amounts in several currencies, or in none that is known, are denied.
func TestCeilingOfMixedMoney(t *testing.T) {
	t.Parallel()
	p := mustParse(t, withCeiling("per: tenant, limit: 100, amount: change.amount, currency: EUR")+
		"  - {name: fees, per: tenant, limit: 100, window: 24h, amount: change.fee, currency: USD}\n")
	for _, fields := range [][]gatehouse.AmountField{
		{{Field: "/amount", Currency: "EUR"}, {Field: "/fee", Currency: "USD"}},
		{{Field: "/amount", Currency: "/unit"}},
	} {
		f := facts("note", `{"amount":5000,"fee":1,"currency":"USD"}`, func(f *policy.Facts) {
			f.Declared = &gatehouse.Declared{Amounts: fields}
			f.Proposal.Magnitude = &gatehouse.Magnitude{Amount: "1", Currency: "USD"}
		})
		if v := p.Evaluate(t.Context(), f); v.Outcome != gatehouse.OutcomeDeny || len(v.Ceilings) != 0 {
			t.Errorf("%+v: %s %v %+v", fields, v.Outcome, v.Reasons, v.Ceilings)
		}
		// A ceiling without a currency counts such an amount in its sum without one.
		any := mustParse(t, withCeiling("per: tenant, limit: 100, amount: change.amount"))
		if v := any.Evaluate(t.Context(), f); len(v.Ceilings) != 1 || v.Ceilings[0].Scope != "tenant" {
			t.Errorf("%+v, any currency: %+v", fields, v.Ceilings)
		}
	}
}
