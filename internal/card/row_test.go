package card_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

func TestRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, actionType, operation, target, before, after, want string
	}{
		{
			"a price", "price_change", "update", "item/SKU-1042", `{"price":"10.00","currency":"USD"}`, `{"price":"12.50"}`,
			"Change price of SKU-1042: 10.00 → 12.50 USD (+2.50 USD)",
		}, {
			"money without a currency", "price_change", "update", "item/SKU-1042", `{"price":"10.00"}`, `{"price":"9.00"}`,
			"Change price of SKU-1042: 10.00 → 9.00 (-1.00)",
		}, {
			"the amount and two fields", "update_order", "update", "order/1042",
			`{"aisle":"4","grand_total":"10.00","name":"a","status":"open"}`,
			`{"aisle":"5","grand_total":"9800.00","name":"b","status":"paid"}`,
			"Change order 1042: grand total 10.00 → 9800.00, status open → paid, name a → b and 1 more (+9790.00)",
		}, {
			"a price and a cost have no sum", "field_update", "update", "item/SKU-1",
			`{"cost":"0.04","currency":"USD","price":"0.10"}`, `{"cost":"0.05","price":"0.12"}`,
			"Change item SKU-1: price 0.10 → 0.12 USD, cost 0.04 → 0.05 USD",
		}, {
			"no money", "field_update", "update", "item/SKU-1", `{"unit":"box","stock":1,"name":"a"}`,
			`{"unit":"bag","stock":2,"name":"b"}`,
			"Change item SKU-1: name a → b, stock 1 → 2 and 1 more",
		}, {
			"the number of a stock is no amount", "field_update", "update", "item/SKU-1", `{"stock":1}`, `{"stock":2}`,
			"Change stock of SKU-1: 1 → 2",
		}, {
			"a payment", "payment", "insert", "payment/P-9", "",
			`{"amount":"125000.00","currency":"EUR","iban":"DE02","payee":"ACME"}`,
			"Create payment P-9: amount 125000.00 EUR, iban DE02, payee ACME",
		}, {
			"a deletion names the deleted record", "delete_order", "delete", "order/1042",
			`{"note":"x","status":"open","total":"480.00","currency":"USD","z":1}`, `{}`,
			"Delete order 1042: total 480.00 USD, status open, currency USD and 2 more",
		}, {
			"a field that is removed", "field_update", "update", "item/SKU-1", `{"tag":"new"}`, `{"tag":null}`,
			"Change tag of SKU-1: new → null",
		}, {
			"bulk", "price_change", "bulk_update", "item/A,B", `{"A":{"price":"1.00"},"B":{"price":"2.00"}}`, `{"price":"3.00"}`,
			"Change price of 2 items to 3.00, in total by +3.00",
		}, {
			"a value that reads as a sentence is quoted", "note", "update", "item/SKU-1", `{"tag":"a"}`,
			`{"tag":"b and approved by ana"}`,
			`Change tag of SKU-1: a → "b and approved by ana"`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := action(t, c.actionType, c.operation, c.target, c.before, c.after)
			// No row contains an agent's claims or words.
			a.Magnitude = &gatehouse.Magnitude{Amount: "98.00"}
			if got := card.RowText(a); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestRowOfAReversal(t *testing.T) {
	t.Parallel()
	a := action(t, "price_change", "update", "item/SKU-1", `{"price":"2.00"}`, `{"price":"1.00"}`)
	a.Reverses = "act_7"
	if got, want := card.RowText(a), "Undo act_7: change price of SKU-1: 2.00 → 1.00 (-1.00)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
