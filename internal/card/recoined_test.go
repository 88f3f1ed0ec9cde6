package card_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// TestACurrencyWithoutItsAmount: a change that sends only a currency is shown as a change of each amount
// in that currency, whatever the shape of the payload.
func TestACurrencyWithoutItsAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, operation, target, before, after, path, row, moved string }{
		{"one record", "update", "refund/RF-7", `{"paid":"480.00","currency":"EUR"}`, `{"currency":"USD"}`,
			"/paid", "Change paid of RF-7: 480.00 EUR → 480.00 USD", "-480.00 EUR +480.00 USD"},
		{"its own currency", "update", "refund/RF-7", `{"fee":"1.00","paid":"480.00","paid_currency":"EUR"}`,
			`{"paid_currency":"USD"}`, "/paid", "Change paid of RF-7: 480.00 EUR → 480.00 USD", "-480.00 EUR +480.00 USD"},
		{"a member per record", "update", "refund/RF-7,RF-8",
			`{"RF-7":{"paid":"480.00","currency":"EUR"},"RF-8":{"paid":"20.00","currency":"USD"}}`,
			`{"RF-7":{"currency":"USD"},"RF-8":{"currency":"USD"}}`,
			"/RF-7/paid", "Change paid of 2 refunds from 480.00 EUR to 480.00 USD", "-480.00 EUR +480.00 USD"},
		{"one value for all", "update", "refund/RF-7,RF-8",
			`{"RF-7":{"paid":"480.00","currency":"EUR"},"RF-8":{"paid":"20.00","currency":"USD"}}`,
			`{"currency":"USD"}`, "/RF-7/paid", "Change paid and currency of 2 refunds",
			"-480.00 EUR +480.00 USD"},
	} {
		a := action(t, "refund", c.operation, c.target, c.before, c.after)
		found := false
		for _, x := range card.Changes(a) {
			if x.Path == c.path {
				found = !x.Context && x.Kind == card.Changed && x.CurrencyBefore == "EUR" && x.Currency == "USD"
			} else if x.Path == "/fee" && !x.Context {
				t.Errorf("%s: %s has no currency, and is shown as changed", c.name, x.Path)
			}
		}
		if !found {
			t.Errorf("%s: %s is not shown as a change", c.name, c.path)
		}
		row, amounts, _ := card.Row(a)
		if row.String() != c.row {
			t.Errorf("%s: the row is %q, not %q", c.name, row, c.row)
		}
		moved := ""
		for i, x := range amounts {
			if i > 0 {
				moved += " "
			}
			moved += x.String()
		}
		if moved != c.moved || !card.Countable(a) {
			t.Errorf("%s: %q is moved, not %q; countable: %t", c.name, moved, c.moved, card.Countable(a))
		}
	}
}
