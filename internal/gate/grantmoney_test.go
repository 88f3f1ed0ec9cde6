package gate_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestGrantMoney: people decide about money that the amounts of a grant cannot count.
func TestGrantMoney(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	g := w.grant(ana, func(n *gatehouse.NewGrant) { n.When, n.Count = "true", 100 })
	claim := func(p *gatehouse.Proposal) { p.Magnitude = &gatehouse.Magnitude{Amount: "0", Currency: "EUR"} }
	for what, text := range map[string]string{
		"only the proposer's claim":          `{"value":5000}`,
		"a text beside a number":             `{"amount":"EUR 5000","fee":0,"currency":"EUR"}`,
		"a number that is too large":         `{"amount":1e1001,"fee":0,"currency":"EUR"}`,
		"a value within an amount":           `{"amount":{"value":5000,"currency":"EUR"},"fee":0}`,
		"amounts under a plural name":        `{"amounts":[5000],"fee":0,"currency":"EUR"}`,
		"an amount in cents":                 `{"amount_cents":5000,"fee":0,"currency":"EUR"}`,
		"an amount in a currency":            `{"priceEUR":5000,"fee":0,"currency":"EUR"}`,
		"a price of many":                    `{"lines":[{"price":1,"quantity":5000,"currency":"EUR"}]}`,
		"many of a price":                    `{"unit_price":1,"currency":"EUR","line":{"qty":"5000"}}`,
		"a currency that cannot be read":     `{"amount":10,"currency":{"id":"KWD"}}`,
		"a currency in another letter case":  `{"amount":10,"currency":"kwd"}`,
		"a currency of another object":       `{"amount":10,"account":{"currency":"KWD"}}`,
		"a currency under another name":      `{"amount":10,"currencyCode":"KWD"}`,
		"a second currency":                  `{"amount":10,"currency":"EUR","unit":"KWD"}`,
		"a second currency in small letters": `{"amount":10,"currency":"EUR","unit":"kwd"}`,
		"a currency between spaces":          `{"amount":10,"unit":" KWD "}`,
		"an escaped currency":                `{"amount":10,"unit":"\u004bWD"}`,
		"a currency in a list":               `{"amount":10,"currency":"EUR","units":["KWD"]}`,
		"a negative amount":                  `{"amount":-101,"currency":"EUR"}`,
		"an exponent":                        `{"amount":1.01e2,"currency":"EUR"}`,
		"amounts in a list":                  `{"amount":[60,60],"currency":"EUR"}`,
	} {
		a := w.refund(bot, "", func(p *gatehouse.Proposal) { p.ProposedChange = gatehouse.JSON(text); claim(p) })
		w.wantStatus(what, a, gatehouse.StatusPending)
	}
	plain := w.refund(bot, "", func(p *gatehouse.Proposal) {
		p.ProposedChange = `{"refund":{"order_id":5000,"amount":5,"currency":"EUR"},"tax_rate":0.2,"quantity":1}`
	})
	w.wantStatus("a field that is not money", plain, gatehouse.StatusApproved)
	if got := w.granted(g.ID); got.Used != 1 || got.UsedAmounts[0].Amount.Cmp("5") != 0 {
		t.Errorf("used %d, %v", got.Used, got.UsedAmounts)
	}
}

// TestGrantOfDeclaredMoney: a declared amount counts, whatever its name and unit, and stays
// declared as it was at the proposal.
func TestGrantOfDeclaredMoney(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	g := w.grant(ana, func(n *gatehouse.NewGrant) { n.When, n.Count = "true", 100 })
	w.targets.declared = &gatehouse.Declared{Amounts: []gatehouse.AmountField{
		{Field: "/value", Currency: "/unit", Minor: true},
	}}
	say := func(text string) *gatehouse.Action {
		return w.refund(bot, "", func(p *gatehouse.Proposal) { p.ProposedChange = gatehouse.JSON(text) })
	}
	w.wantStatus("an object as the amount", say(`{"value":{"n":1},"unit":"EUR"}`), gatehouse.StatusPending)
	w.wantStatus("a text as the amount", say(`{"value":"EUR 1","unit":"EUR"}`), gatehouse.StatusPending)
	w.wantStatus("no currency", say(`{"value":500}`), gatehouse.StatusPending)
	a := say(`{"value":500,"unit":"eur"}`)
	w.wantStatus("5.00 EUR in cents", a, gatehouse.StatusApproved)
	if got := w.granted(g.ID); got.Used != 1 || got.UsedAmounts[0].Amount.Cmp("5") != 0 {
		t.Errorf("used %d, %v", got.Used, got.UsedAmounts)
	}
	w.targets.declared = nil
	kept, err := w.gate.FindAction(bot, a.ID)
	if err != nil || kept.Declared.IsZero() || !kept.Declared.Amounts[0].Minor {
		t.Errorf("%+v, %v", kept.Declared, err)
	}
}

// TestGrantOfLongAmount: no amount makes a grant unreadable: a grant that cannot be read
// could not be revoked.
func TestGrantOfLongAmount(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	g := w.grant(ana, nil)
	for _, amount := range []string{"0." + strings.Repeat("0", 997) + "1", "1e-1000"} {
		a := w.refund(bot, amount, nil)
		w.wantStatus("a long amount", a, gatehouse.StatusApproved)
		if _, err := w.gate.ListGrants(ana); err != nil {
			t.Fatalf("%.20s: %v", amount, err)
		}
	}
	if _, err := w.gate.RevokeGrant(ana, g.ID); err != nil {
		t.Error(err)
	}
}

// TestGrantOfReplay: the same proposal again uses nothing.
func TestGrantOfReplay(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	g := w.grant(ana, nil)
	key := func(p *gatehouse.Proposal) { p.IdempotencyKey = "once" }
	first, again := w.refund(bot, "10", key), w.refund(bot, "10", key)
	if got := w.granted(g.ID); first.ID != again.ID || got.Used != 1 {
		t.Errorf("%s and %s, used %d", first.ID, again.ID, got.Used)
	}
}
