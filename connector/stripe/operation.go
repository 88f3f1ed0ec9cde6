package stripe

import (
	"net/http"
	"net/url"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// The names of the operations.
const (
	opRefund = "refund"
	opCredit = "credit"
	opDebit  = "debit"
	opCancel = "cancel_subscription"
	opResume = "resume_subscription"
	opPrice  = "change_price"
)

// The entity types.
const (
	paymentIntent = "payment_intent"
	charge        = "charge"
	customer      = "customer"
	subscription  = "subscription"
)

// prefixes are the prefixes of the entity types' ids.
var prefixes = map[string]string{paymentIntent: "pi_", charge: "ch_", customer: "cus_", subscription: "sub_"}

// operation is one of the operations.
type operation struct {
	entities []string
	floor    gatehouse.RiskLevel
	reverses bool
	amounts  []gatehouse.AmountField
	schema   gatehouse.JSON
	// members are the members of a pre-image that can be compared.
	members []string
	// check adds violations that the schema cannot express.
	check func(change gatehouse.JSON, v *gatehouse.Violations)
	// request builds the request.
	request func(call connector.Call) request
	// refuse says why a target cannot be changed in this way, "" if it can.
	refuse func(call connector.Call, s *state) string
	// differing lists the members of the change that differ in the result.
	differing func(call connector.Call, made gatehouse.JSON) []string
	// reversal describes the reversal, nil for none.
	reversal func(call connector.Call, s *state, made gatehouse.JSON) *gatehouse.Reversal
}

// request is the request that changes something.
type request struct {
	method, path string
	form         url.Values
}

const moneySchema = `"amount":{"pattern":"^(0|[1-9][0-9]*)(\\.[0-9]+)?$","type":["number","string"]},` +
	`"currency":{"pattern":"^[a-z]{3}$","type":"string"}`

// moneyFields declares the amount of moneySchema, which is in the currency's major unit.
var moneyFields = []gatehouse.AmountField{{Field: "/amount", Currency: "/currency"}}

// operations are the operations by name.
func operations() map[string]*operation {
	return map[string]*operation{
		opRefund: refund(), opCredit: balance(opCredit), opDebit: balance(opDebit),
		opCancel: cancel(), opResume: resume(), opPrice: price(),
	}
}

// marker is the name of the metadata that identifies a call's effect.
func marker(op string) string {
	switch op {
	case opCancel, opResume:
		return "gatehouse_cancellation"
	case opPrice:
		return "gatehouse_price"
	}
	return "gatehouse_key"
}

// marked starts a form: with the marker, and with the action's id for people who look it up.
func marked(call connector.Call) url.Values {
	return url.Values{
		"metadata[" + marker(call.Operation) + "]": {call.TargetKey()}, "metadata[gatehouse_action]": {call.ActionID},
	}
}

func member(change gatehouse.JSON, name string) string { return rest.Text(change, name) }

func checkMoney(change gatehouse.JSON, v *gatehouse.Violations) {
	amount, _ := change.Get("amount")
	if _, why := minor(amount, member(change, "currency")); why != "" {
		v.Add("/proposed_change/amount", "%s", why)
	}
}

// units is the amount of a validated change, in the currency's minor unit.
func units(change gatehouse.JSON) string {
	amount, _ := change.Get("amount")
	n, _ := minor(amount, member(change, "currency"))
	return n
}

// differingMoney compares the amount in the result with the approved one. sign is "-" if Stripe
// represents the amount as a negative number.
func differingMoney(call connector.Call, made gatehouse.JSON, sign string) (out []string) {
	if member(made, "amount") != sign+units(call.ProposedChange) {
		out = append(out, "amount")
	}
	if member(made, "currency") != member(call.ProposedChange, "currency") {
		out = append(out, "currency")
	}
	return out
}

func sameCurrency(call connector.Call, s *state) string {
	if want := member(call.ProposedChange, "currency"); s.currency != "" && s.currency != want {
		return "the target's currency is " + s.currency + ", not " + want
	}
	return ""
}

func refund() *operation {
	return &operation{
		entities: []string{paymentIntent, charge}, floor: gatehouse.L4, amounts: moneyFields,
		schema: `{"additionalProperties":false,"properties":{` + moneySchema +
			`,"reason":{"enum":["duplicate","fraudulent","requested_by_customer"]}},` +
			`"required":["amount","currency"],"type":"object"}`,
		members: []string{"amount", "amount_refunded", "currency", "status"},
		check:   checkMoney, refuse: sameCurrency,
		request: func(call connector.Call) request {
			form := marked(call)
			form.Set(call.Target.EntityType, call.Target.EntityRef)
			form.Set("amount", units(call.ProposedChange))
			if reason := member(call.ProposedChange, "reason"); reason != "" {
				form.Set("reason", reason)
			}
			return request{http.MethodPost, "/v1/refunds", form}
		},
		differing: func(call connector.Call, made gatehouse.JSON) []string { return differingMoney(call, made, "") },
		reversal:  func(connector.Call, *state, gatehouse.JSON) *gatehouse.Reversal { return nil },
	}
}

// balance is a credit to a customer's balance, which Stripe represents as a negative amount, or a
// debit.
func balance(name string) *operation {
	sign, back := "-", opDebit
	if name == opDebit {
		sign, back = "", opCredit
	}
	return &operation{
		entities: []string{customer}, floor: gatehouse.L4, reverses: true, amounts: moneyFields,
		schema: `{"additionalProperties":false,"properties":{` + moneySchema +
			`,"description":{"maxLength":350,"type":"string"}},"required":["amount","currency"],"type":"object"}`,
		members: []string{"balance", "currency"},
		check:   checkMoney, refuse: sameCurrency,
		request: func(call connector.Call) request {
			form := marked(call)
			form.Set("amount", sign+units(call.ProposedChange))
			form.Set("currency", member(call.ProposedChange, "currency"))
			if text := member(call.ProposedChange, "description"); text != "" {
				form.Set("description", text)
			}
			return request{http.MethodPost, "/v1/customers/" + call.Target.EntityRef + "/balance_transactions", form}
		},
		differing: func(call connector.Call, made gatehouse.JSON) []string { return differingMoney(call, made, sign) },
		reversal: func(call connector.Call, _ *state, made gatehouse.JSON) *gatehouse.Reversal {
			currency := member(call.ProposedChange, "currency")
			state := gatehouse.JSON("{}")
			if after := member(made, "ending_balance"); after != "" {
				state = gatehouse.ObjectJSON(gatehouse.Member{Name: "balance", Value: major(after, currency)})
			}
			amount, _ := call.ProposedChange.Get("amount")
			return &gatehouse.Reversal{
				Operation: back, Target: call.Target, CurrentState: state, ProposedChange: gatehouse.ObjectJSON(
					gatehouse.Member{Name: "amount", Value: amount},
					gatehouse.Member{Name: "currency", Value: gatehouse.StringJSON(currency)},
				),
			}
		},
	}
}
