package card_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// action makes a pending L3 action of the connector shop. The target is TYPE/KEY, or TYPE/KEY,KEY for
// several records.
func action(t testing.TB, actionType, operation, target, before, after string) *gatehouse.Action {
	t.Helper()
	entity, refs, _ := strings.Cut(target, "/")
	a := &gatehouse.Action{
		ID: "act_1", Status: gatehouse.StatusPending, Undoable: true,
		Proposal: gatehouse.Proposal{
			ActionType: actionType, Connector: "shop", Operation: operation, RiskLevel: gatehouse.L3,
			Target:       gatehouse.Target{EntityType: entity, EntityRef: refs},
			CurrentState: canonical(t, before), ProposedChange: canonical(t, after),
			Rationale: "the agent's own words, which are never shown as ours",
		},
	}
	if strings.Contains(refs, ",") {
		a.Target.EntityRef, a.Target.EntityRefs = "", strings.Split(refs, ",")
	}
	return a
}

func canonical(t testing.TB, s string) gatehouse.JSON {
	t.Helper()
	if s == "" {
		return ""
	}
	j, err := gatehouse.Canonicalize([]byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return j
}

func keys(n int) string {
	refs := make([]string, n)
	for i := range refs {
		refs[i] = fmt.Sprintf("SKU-%d", i+1)
	}
	return strings.Join(refs, ",")
}

func TestSentences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                                         string
		actionType, operation, target, before, after string
		sentence, short, button                      string
	}{
		{
			name: "a price", actionType: "price_change", operation: "update", target: "item/SKU-1042",
			before:   `{"price":"10.00","currency":"USD","name":"Lamp"}`,
			after:    `{"price":"12.50"}`,
			sentence: "Change price of SKU-1042 from 10.00 to 12.50 USD; reversible",
			short:    "Change price of SKU-1042", button: "Change price to 12.50 USD",
		},
		{
			name: "rows of a condition", actionType: "price_change", operation: "update_where", target: "price/*",
			before: `{"rows":12}`,
			after: `{"where":[{"column":"region","op":"=","value":"EU"},{"column":"sku","op":"in","value":["a","b c"]},
				{"column":"note","op":"is null"}],"set":{"amount":"9.00"},"max_rows":20}`,
			sentence: `Change 12 rows of price, at most 20, ` +
				`where region = EU and sku in a, "b c" and note is null: amount → 9.00`,
			short: "Change 12 rows of price, at most 20", button: "Change 12 rows of price, at most 20",
		},
		{
			name: "rows of a condition that nobody counted", operation: "update_where", target: "price/*",
			after:    `{"where":[{"column":"qty","op":"<","value":3}],"set":{"note":null,"amount":9},"max_rows":1}`,
			sentence: "Change at most 1 row of price where qty < 3: amount → 9, note → null",
			short:    "Change at most 1 row of price", button: "Change at most 1 row of price",
		},
		{
			name: "a price without a currency", actionType: "price_change", operation: "update", target: "item/SKU-1042",
			before: `{"price":10.00}`, after: `{"price":12.5}`,
			sentence: "Change price of SKU-1042 from 10.00 to 12.5; reversible",
			short:    "Change price of SKU-1042", button: "Change price to 12.5",
		},
		{
			name: "a currency that changes", actionType: "refund", operation: "update", target: "refund/RF-7",
			before:   `{"paid":"480.00","paid_currency":"EUR"}`,
			after:    `{"paid":"480.00","paid_currency":"USD"}`,
			sentence: "Change paid of RF-7 from 480.00 EUR to 480.00 USD; reversible",
			short:    "Change paid of RF-7", button: "Change paid to 480.00 USD",
		},
		{
			name: "a currency without its amount", actionType: "refund", operation: "update", target: "refund/RF-7",
			before:   `{"paid":"480.00","currency":"EUR","name":"Haas"}`,
			after:    `{"currency":"USD","name":"Haase"}`,
			sentence: "Change refund RF-7: paid from 480.00 EUR to 480.00 USD and name from Haas to Haase; reversible",
			short:    "Change paid and name of RF-7", button: "Change paid and name",
		},
		{
			name: "a currency alone", actionType: "refund", operation: "update", target: "refund/RF-7",
			before:   `{"paid":"480.00","paid_currency":"EUR"}`,
			after:    `{"paid_currency":"USD"}`,
			sentence: "Change paid of RF-7 from 480.00 EUR to 480.00 USD; reversible",
			short:    "Change paid of RF-7", button: "Change paid to 480.00 USD",
		},
		{
			name: "a currency without any amount", actionType: "refund", operation: "update", target: "customer/C-1",
			before: `{"currency":"EUR","name":"Haas","city":"Bonn"}`,
			after:  `{"currency":"USD","name":"Haase","city":"Ulm"}`,
			sentence: "Change customer C-1: currency from EUR to USD, city from Bonn to Ulm and name from Haas to Haase; " +
				"reversible",
			short: "Change currency, city and name of C-1", button: "Change currency, city and name",
		},
		{
			name: "amount and currency", actionType: "refund", operation: "update", target: "refund/1042",
			before:   `{"amount":"480.00","currency":"EUR"}`,
			after:    `{"amount":"500.00","currency":"USD"}`,
			sentence: "Change amount of refund 1042 from 480.00 EUR to 500.00 USD; reversible",
			short:    "Change amount of refund 1042", button: "Change amount to 500.00 USD",
		},
		{
			name: "a number that becomes a text", actionType: "field_update", operation: "update", target: "item/SKU-1",
			before: `{"limit":100}`, after: `{"limit":"100"}`,
			sentence: `Change limit of SKU-1 from 100 to "100"; reversible`,
			short:    "Change limit of SKU-1", button: `Change limit to "100"`,
		},
		{
			name: "a new line of an order", actionType: "order_update", operation: "put", target: "order/8",
			before:   `{"lines":[{"sku":"X","price":"1"}]}`,
			after:    `{"lines":[{"sku":"X","price":"1"},{"sku":"Z","price":"9"}]}`,
			sentence: "Run put on order 8: lines: entry 2 added (operation put of shop)",
			short:    "Run put on order 8", button: "Run put on order 8",
		},
		{
			name: "five fields", actionType: "field_update", operation: "update", target: "item/SKU-1",
			before:   `{"cost":"5.00","price":"10.00","name":"a","stock":1,"unit":"box"}`,
			after:    `{"cost":"6.00","price":"12.50","name":"b","stock":2,"unit":"bag"}`,
			sentence: "Change item SKU-1: price from 10.00 to 12.50, cost from 5.00 to 6.00 and 3 more fields; reversible",
			short:    "Change price, cost and 3 more of SKU-1", button: "Change price, cost and 3 more",
		},
		{
			name: "no earlier values", actionType: "spec_update", operation: "update", target: "item/SKU-1",
			after:    `{"color":"red"}`,
			sentence: "Set color of SKU-1 to red", short: "Set color of SKU-1", button: "Set color to red",
		},
		{
			name: "nested", actionType: "field_update", operation: "update", target: "customer/C-9",
			before:   `{"address":{"city":"Bonn","zip":"53111"}}`,
			after:    `{"address":{"city":"Köln","zip":"53111"}}`,
			sentence: "Change address.city of C-9 from Bonn to Köln; reversible",
			short:    "Change address.city of C-9", button: "Change address.city to Köln",
		},
		{
			name: "nothing changes", actionType: "price_change", operation: "update", target: "item/SKU-1",
			before: `{"price":"10.00"}`, after: `{"price":"10.00"}`,
			sentence: "Rewrite item SKU-1 without a visible change; reversible",
			short:    "Rewrite item SKU-1 without a visible change", button: "Rewrite item SKU-1 without a visible change",
		},
		{
			name: "the same value, written otherwise", actionType: "price_change", operation: "update", target: "item/SKU-1",
			before: `{"price":10.0}`, after: `{"price":10.00}`,
			sentence: "Change price of SKU-1 from 10.0 to 10.00; reversible",
			short:    "Change price of SKU-1", button: "Change price to 10.00",
		},
		{
			name: "long text", actionType: "spec_update", operation: "update", target: "item/SKU-1",
			before:   `{"description":"one\ntwo\nthree"}`,
			after:    `{"description":"one\n2\nthree\nfour"}`,
			sentence: "Change description of SKU-1: 2 lines added and 1 removed; reversible",
			short:    "Change description of SKU-1", button: "Change description: 2 lines added and 1 removed",
		},
		{
			name: "an insert", actionType: "propose_create_customer", operation: "insert", target: "customer/C-77",
			after:    `{"name":"Acme Ltd","email":"info@acme.example","country":"US","currency":"USD"}`,
			sentence: `Create customer C-77 with name "Acme Ltd", country US, email info@acme.example and currency USD`,
			short:    "Create customer C-77", button: "Create customer C-77",
		},
		{
			name: "an order", actionType: "create_order", operation: "insert", target: "order/1043",
			after:    `{"total":"129.90","currency":"EUR"}`,
			sentence: "Create order 1043 with total 129.90 EUR",
			short:    "Create order 1043", button: "Create order 1043",
		},
		{
			name: "a delete", actionType: "delete_item", operation: "delete", target: "item/SKU-1",
			before: `{"price":"10.00"}`, after: `{}`,
			sentence: "Delete item SKU-1", short: "Delete item SKU-1", button: "Delete item SKU-1",
		},
		{
			name: "a delete in camel case", actionType: "cleanup", operation: "deleteCustomer", target: "customer/7",
			before: `{"price":"10.00"}`, after: `{}`,
			sentence: "Delete customer 7", short: "Delete customer 7", button: "Delete customer 7",
		},
		{
			name: "a bulk delete", actionType: "bulk_delete", operation: "bulk_delete", target: "item/" + keys(1412),
			after:    `{"deleted":true}`,
			sentence: "Delete 1,412 items", short: "Delete 1,412 items", button: "Delete 1,412 items",
		},
		{
			name: "a delete that is called a note", actionType: "note", operation: "delete", target: "item/SKU-1", after: `{}`,
			sentence: "Delete item SKU-1", short: "Delete item SKU-1", button: "Delete item SKU-1",
		},
		{
			name: "one price for many", actionType: "mass_price_change", operation: "bulk_update", target: "item/A,B",
			before:   `{"A":{"price":"1.00"},"B":{"price":"2.00"}}`,
			after:    `{"price":"5.00","currency":"USD"}`,
			sentence: "Change price and currency of 2 items; price to 5.00 USD",
			short:    "Change price and currency of 2 items", button: "Change price and currency of 2 items",
		},
		{
			name: "one discount for many", actionType: "mass_price_change", operation: "bulk_update", target: "item/A,B",
			before:   `{"A":{"price":"1.00","currency":"USD"},"B":{"price":"2.00","currency":"USD"}}`,
			after:    `{"price":"0.50"}`,
			sentence: "Change price of 2 items to 0.50, in total by -2.00 USD",
			short:    "Change price of 2 items", button: "Change price of 2 items",
		},
		{
			name: "a price for each", actionType: "mass_price_change", operation: "bulk_update", target: "item/A,B,C",
			before: `{"A":{"price":"1.00","currency":"USD"},"B":{"price":"2.00","currency":"USD"},"C":{"price":"9.00",` +
				`"currency":"USD"}}`,
			after:    `{"A":{"price":"1.50"},"B":{"price":"2.25"},"C":{"price":"9.00"}}`,
			sentence: "Change price of 3 items, in total by +0.75 USD",
			short:    "Change price of 3 items", button: "Change price of 3 items",
		},
		{
			name: "a type that is no plain word", actionType: "bulk_delete", operation: "bulk_delete",
			target: "purchase order/A,B", after: `{}`,
			sentence: `Delete 2 "purchase orders"`, short: `Delete 2 "purchase orders"`, button: `Delete 2 "purchase orders"`,
		},
		{
			name: "many inserts", actionType: "create_item", operation: "bulk_insert", target: "category/A,B",
			after:    `{"A":{"name":"x"},"B":{"name":"y"}}`,
			sentence: "Create 2 categories", short: "Create 2 categories", button: "Create 2 categories",
		},
		{
			name: "a soft delete", actionType: "soft_delete", operation: "update", target: "item/SKU-1",
			before: `{"discontinued":false}`, after: `{"discontinued":true}`,
			sentence: "Change discontinued of SKU-1 from false to true; reversible",
			short:    "Change discontinued of SKU-1", button: "Change discontinued to true",
		},
		{
			name: "an operation with a name of its own", actionType: "receive_goods", operation: "receive_goods",
			target:   "item/SKU-1",
			after:    `{"quantity":40,"note":"pallet 3"}`,
			sentence: `Receive goods for item SKU-1: note "pallet 3" and quantity 40 (operation receive_goods of shop)`,
			short:    "Receive goods for item SKU-1", button: "Receive goods for item SKU-1",
		},
		{
			name: "an operation of one word", actionType: "refund", operation: "refund", target: "order/1042",
			after:    `{"amount":"480.00","currency":"USD","reason":"late"}`,
			sentence: "Refund order 1042: amount 480.00 USD and reason late (operation refund of shop)",
			short:    "Refund order 1042", button: "Refund order 1042",
		},
		{
			name: "an operation that says nothing, of a known type", actionType: "propose_email_to_customer", operation: "post",
			target:   "customer/C-1",
			after:    `{"subject":"Your order"}`,
			sentence: `Send an e-mail to customer C-1: subject "Your order" (operation post of shop)`,
			short:    "Send an e-mail to customer C-1", button: "Send an e-mail to customer C-1",
		},
		{
			name: "an operation that says nothing, of an unknown type", actionType: "reticulate_splines", operation: "post",
			target:   "spline/9",
			after:    `{"depth":3}`,
			sentence: "Run post on spline 9: depth 3 (operation post of shop)",
			short:    "Run post on spline 9", button: "Run post on spline 9",
		},
		{
			name: "a value that reads like a sentence", actionType: "field_update", operation: "update",
			target: "item/SKU-1 from 1 to 2; reversible",
			before: `{"name":"a"}`, after: `{"name":"b; reversible\n\"and"}`,
			sentence: `Change name of "SKU-1 from 1 to 2; reversible": 2 lines added and 1 removed; reversible`,
			short:    `Change name of "SKU-1 from 1 to 2; reversible"`,
			button:   `Change name: 2 lines added and 1 removed`,
		},
		{
			name: "a value that is a word", actionType: "field_update", operation: "update", target: "item/SKU-1",
			before: `{"name":"nothing"}`, after: `{"name":null}`,
			sentence: `Change name of SKU-1 from "nothing" to null; reversible`,
			short:    "Change name of SKU-1", button: "Change name to null",
		},
		{
			name: "a long value", actionType: "field_update", operation: "update", target: "item/SKU-1",
			before: `{"name":"a"}`, after: `{"name":"` + strings.Repeat("x", 100) + `"}`,
			sentence: "Change name of SKU-1 from a to " + strings.Repeat("x", 60) + "… (40 more characters); reversible",
			short:    "Change name of SKU-1", button: "Change name to " + strings.Repeat("x", 24) + "… (76 more characters)",
		},
		{
			name: "a text of several lines", actionType: "field_update", operation: "insert", target: "item/SKU-1",
			after:    `{"description":"one\ntwo\nthree\n"}`,
			sentence: `Create item SKU-1 with description "one"… (2 more lines)`,
			short:    "Create item SKU-1", button: "Create item SKU-1",
		},
		{
			name: "what is too large to be read to its depth", actionType: "field_update", operation: "update",
			target:   "item/SKU-1",
			before:   `{"labels":{"x":1},"price":"1.00"}`,
			after:    `{"labels":{"x":[` + strings.Repeat("1,", 1<<16) + `1]},"price":"1.50"}`,
			sentence: "Change item SKU-1: price from 1.00 to 1.50 and labels changed; reversible",
			short:    "Change price and labels of SKU-1", button: "Change price and labels",
		},
		{
			name: "a list", actionType: "labels", operation: "update", target: "item/SKU-1",
			before: `{"labels":["a","b"]}`, after: `{"labels":[]}`,
			sentence: "Change labels of SKU-1; reversible", short: "Change labels of SKU-1", button: "Change labels",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := action(t, c.actionType, c.operation, c.target, c.before, c.after)
			for _, x := range []struct{ what, got, want string }{
				{"sentence", card.Sentence(a), c.sentence}, {"short", card.Short(a), c.short}, {"button", card.Button(a), c.button},
			} {
				if x.got != x.want {
					t.Errorf("%s\n got %s\nwant %s", x.what, x.got, x.want)
				}
			}
		})
	}
}

// TestPolicyTypesHaveWords: people know the default policy's type names, so this package must have words
// for all of them but other and other-safe.
func TestPolicyTypesHaveWords(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../policy/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	risk, _, _ := strings.Cut(string(source), "approvals:")
	types := regexp.MustCompile(`(?m)^  ([a-z_-]+): [1-5]$`).FindAllStringSubmatch(risk, -1)
	if len(types) < 25 {
		t.Fatalf("found only %d types", len(types))
	}
	var got []string
	for _, m := range types {
		got = append(got, card.Short(action(t, m[1], "post", "customer/C-1", "", `{}`)))
	}
	want := []string{
		"Add a note to customer C-1", "Tag customer C-1", "Classify customer C-1", "Label customer C-1",
		"Add internal notes to customer C-1",
		"Change a field of customer C-1", "Change a field of customer C-1", "Change the specification of customer C-1",
		"Create a customer program for customer C-1", "Assign customer C-1", "Run post on customer C-1",
		"Run post on customer C-1",
		"Change the price of customer C-1", "Change the vendor's cost of customer C-1",
		"Change the bid status of customer C-1",
		"Draft a quote for customer C-1", "Switch the vendor of customer C-1", "Change the cost basis of customer C-1",
		"Take a collection action on customer C-1", "Send an e-mail to customer C-1",
		"Create customer C-1", "Create customer C-1", "Create customer C-1", "Create customer C-1", "Create customer C-1",
		"Create customer C-1",
		"Soft-delete customer C-1", "Delete customer C-1", "Destroy or overwrite customer C-1",
		"Change the prices of customer C-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSentenceOfAQuestion: a run's question reads as continuing the run.
func TestSentenceOfAQuestion(t *testing.T) {
	t.Parallel()
	a := action(t, "approval", "approve", "run/run_01a1", "", `{}`)
	if got, want := card.Button(a), "Approve run run_01a1"; got != want {
		t.Errorf("approve of another connector: got %s, want %s", got, want)
	}
	a.Connector = "workflow"
	for _, text := range []struct{ got, want string }{
		{card.Sentence(a), "Continue run run_01a1"}, {card.Short(a), "Continue run run_01a1"},
		{card.Button(a), "Continue the run"},
	} {
		if text.got != text.want {
			t.Errorf("got %s, want %s", text.got, text.want)
		}
	}
	a.ProposedChange = canonical(t, `{"count":12}`)
	if got, want := card.Sentence(a), "Continue run run_01a1: count 12"; got != want {
		t.Errorf("with the values that it asks about: got %s, want %s", got, want)
	}
}

// TestSentenceOfToolCalls calls tools whose names, as operations, would describe an
// effect on the target.
func TestSentenceOfToolCalls(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string][2]string{
		"delete_note": {"Call delete_note of files: path a.txt", "Call delete_note of files"},
		"update_page": {"Call update_page of files: path a.txt", "Call update_page of files"},
		"gatehouse_accept_tools": {
			"Accept the changed tools of files: path a.txt", "Accept the changed tools of files",
		},
	} {
		a := action(t, tool, tool, "mcp_tool/files", "", `{"path":"a.txt"}`)
		a.Connector = "mcp:files"
		if got := card.Sentence(a); got != want[0] {
			t.Errorf("got %s, want %s", got, want[0])
		}
		for _, got := range []string{card.Short(a), card.Button(a)} {
			if got != want[1] {
				t.Errorf("got %s, want %s", got, want[1])
			}
		}
	}
}

// TestTheTypeNamesNoChange: the proposer chooses the action type. So the sentence of an operation with a
// neutral name names the changed fields.
func TestTheTypeNamesNoChange(t *testing.T) {
	t.Parallel()
	a := action(t, "price_change", "put", "vendor/7", `{"iban":"DE1","name":"Acme"}`, `{"iban":"DE2","name":"Acme"}`)
	if got, want := card.Sentence(a), `Change iban of vendor 7 from DE1 to DE2 (operation put of shop)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := card.Button(a), "Change iban to DE2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a = action(t, "note", "send", "vendor/7", `{"role":"viewer"}`, `{"role":"admin"}`)
	if got, want := card.Button(a), "Change role to admin"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a = action(t, "email_to_customer", "send", "customer/7", ``, `{"subject":"Hello"}`)
	if got, want := card.Button(a), "Send an e-mail to customer 7"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSentenceOfReversal(t *testing.T) {
	t.Parallel()
	a := action(t, "price_change", "update", "item/SKU-1", `{"price":"12.50"}`, `{"price":"10.00"}`)
	a.Reverses = "act_01a21da3eb597748a60e92d47c411e39"
	want := "Undo act_01a21da3eb59: change price of SKU-1 from 12.50 to 10.00; reversible"
	if got := card.Sentence(a); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := card.Button(a), "Undo act_01a21da3eb59: change price to 10.00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReversibility(t *testing.T) {
	t.Parallel()
	update := action(t, "price_change", "update", "item/SKU-1", `{"price":"12.50"}`, `{"price":"10.00"}`)
	applied := func(reversible bool) *gatehouse.Action {
		a := *update
		a.Receipt = &gatehouse.Receipt{Outcome: gatehouse.ReceiptApplied, Reversible: reversible}
		return &a
	}
	once := *update
	once.Undoable = false
	for _, c := range []struct {
		name string
		a    *gatehouse.Action
		want card.Reversal
	}{
		{"a connector that undoes nothing", &once, card.ReversalOpen},
		{"all is known", update, card.Reversible},
		{"one field is not known", action(t, "x", "update", "item/A", `{"price":"1"}`, `{"price":"2","cost":"1"}`),
			card.ReversalOpen},
		{"an operation of a connector", action(t, "x", "update_price", "item/A", `{"price":"1"}`, `{"price":"2"}`),
			card.ReversalOpen},
		{"a delete", action(t, "x", "delete", "item/A", `{"price":"1"}`, `{}`), card.ReversalOpen},
		{"the receipt says yes", applied(true), card.Reversible},
		{"the receipt says no", applied(false), card.NotReversible},
	} {
		if got := card.Reversibility(c.a); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestSentenceIgnoresAgentText: an agent's text about an action does not change the
// sentence.
func TestSentenceIgnoresAgentText(t *testing.T) {
	t.Parallel()
	a := action(t, "price_change", "update", "item/SKU-1", `{"price":"1.00"}`, `{"price":"2.00"}`)
	want := card.Sentence(a)
	const lie = "harmless"
	a.Rationale, a.OnBehalfOf, a.ProposedBy = lie, lie, lie
	a.Context, a.Metadata = canonical(t, `{"price":"harmless"}`), canonical(t, `{"price":"harmless"}`)
	a.Evaluations = []gatehouse.Evaluation{{Name: lie, Details: lie}}
	a.ArtifactDiff = &gatehouse.ArtifactDiff{Summary: lie, Text: lie}
	if got := card.Sentence(a); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
