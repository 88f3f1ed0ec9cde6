package stripe

import (
	"net/http"
	"net/url"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// cancel ends a subscription, now or at the end of the paid period. Only the second can be
// reversed.
func cancel() *operation {
	return &operation{
		entities: []string{subscription}, floor: gatehouse.L4, reverses: true,
		schema: `{"additionalProperties":false,"properties":{"at":{"enum":["now","period_end"]},` +
			`"comment":{"maxLength":300,"type":"string"},` +
			`"invoice_now":{"type":"boolean"},"prorate":{"type":"boolean"}},` +
			`"required":["at"],"type":"object"}`,
		members: []string{"status", "cancel_at_period_end"},
		check: func(change gatehouse.JSON, v *gatehouse.Violations) {
			for _, name := range []string{"invoice_now", "prorate"} {
				if _, ok := change.Get(name); ok && member(change, "at") != "now" {
					v.Add("/proposed_change/"+name, "applies only if at is now")
				}
			}
		},
		request: func(call connector.Call) request {
			comment := cancellation(call)
			if text := member(call.ProposedChange, "comment"); text != "" {
				comment = text + " " + comment
			}
			path := "/v1/subscriptions/" + call.Target.EntityRef
			if member(call.ProposedChange, "at") == "period_end" {
				form := marked(call)
				form.Set("cancel_at_period_end", "true")
				form.Set("cancellation_details[comment]", comment)
				return request{http.MethodPost, path, form}
			}
			form := url.Values{"cancellation_details[comment]": {comment}}
			for _, name := range []string{"invoice_now", "prorate"} {
				if value, ok := call.ProposedChange.Get(name); ok {
					form.Set(name, string(value))
				}
			}
			return request{http.MethodDelete, path, form}
		},
		refuse: func(_ connector.Call, s *state) string {
			if s.members["status"] == `"canceled"` {
				return "the subscription is canceled already"
			}
			return ""
		},
		differing: func(call connector.Call, made gatehouse.JSON) []string {
			ends, _ := made.Get("cancel_at_period_end")
			if member(call.ProposedChange, "at") == "now" && member(made, "status") != "canceled" ||
				member(call.ProposedChange, "at") == "period_end" && ends != "true" {
				return []string{"at"}
			}
			return nil
		},
		reversal: func(call connector.Call, _ *state, _ gatehouse.JSON) *gatehouse.Reversal {
			if member(call.ProposedChange, "at") != "period_end" {
				return nil
			}
			return &gatehouse.Reversal{
				Operation: opResume, Target: call.Target,
				CurrentState: `{"cancel_at_period_end":true}`, ProposedChange: `{"cancel_at_period_end":false}`,
			}
		},
	}
}

// cancellation marks the comment of a cancellation, because a canceled subscription accepts no
// metadata.
func cancellation(call connector.Call) string { return "[gatehouse " + call.TargetKey() + "]" }

// resume withdraws a cancellation that is due at the end of the period.
func resume() *operation {
	return &operation{
		entities: []string{subscription}, floor: gatehouse.L3, reverses: true,
		schema: `{"additionalProperties":false,"properties":{"cancel_at_period_end":{"const":false}},` +
			`"required":["cancel_at_period_end"],"type":"object"}`,
		members: []string{"status", "cancel_at_period_end"},
		check:   func(gatehouse.JSON, *gatehouse.Violations) {},
		request: func(call connector.Call) request {
			form := marked(call)
			form.Set("cancel_at_period_end", "false")
			return request{http.MethodPost, "/v1/subscriptions/" + call.Target.EntityRef, form}
		},
		refuse: func(_ connector.Call, s *state) string {
			if s.members["status"] == `"canceled"` {
				return "the subscription is canceled"
			}
			return ""
		},
		differing: func(_ connector.Call, made gatehouse.JSON) []string {
			if ends, _ := made.Get("cancel_at_period_end"); ends != "false" {
				return []string{"cancel_at_period_end"}
			}
			return nil
		},
		reversal: func(call connector.Call, _ *state, _ gatehouse.JSON) *gatehouse.Reversal {
			return &gatehouse.Reversal{
				Operation: opCancel, Target: call.Target,
				CurrentState: `{"cancel_at_period_end":false}`, ProposedChange: `{"at":"period_end"}`,
			}
		},
	}
}

// price changes the price of an item of a subscription.
func price() *operation {
	return &operation{
		entities: []string{subscription}, floor: gatehouse.L3, reverses: true,
		schema: `{"additionalProperties":false,"properties":{` +
			`"item":{"pattern":"^si_[A-Za-z0-9]{1,250}$","type":"string"},` +
			`"price":{"pattern":"^[A-Za-z0-9_-]{1,250}$","type":"string"},` +
			`"proration":{"enum":["always_invoice","create_prorations","none"]},` +
			`"quantity":{"maximum":1000000000,"minimum":0,"type":"integer"}},` +
			`"required":["item","price","proration"],"type":"object"}`,
		members: []string{"item", "price", "quantity", "status", "cancel_at_period_end"},
		check: func(change gatehouse.JSON, v *gatehouse.Violations) {
			if quantity, ok := change.Get("quantity"); ok && !wholeNumber.MatchString(string(quantity)) {
				v.Add("/proposed_change/quantity", "must be written without point and exponent")
			}
		},
		request: func(call connector.Call) request {
			form := marked(call)
			form.Set("items[0][id]", member(call.ProposedChange, "item"))
			form.Set("items[0][price]", member(call.ProposedChange, "price"))
			form.Set("proration_behavior", member(call.ProposedChange, "proration"))
			if quantity, ok := call.ProposedChange.Get("quantity"); ok {
				form.Set("items[0][quantity]", string(quantity))
			}
			return request{http.MethodPost, "/v1/subscriptions/" + call.Target.EntityRef, form}
		},
		refuse: func(call connector.Call, s *state) string {
			switch {
			case s.members["status"] == `"canceled"`:
				return "the subscription is canceled"
			case s.members["item"] == "null":
				return "the subscription has no such item"
			}
			return ""
		},
		differing: func(call connector.Call, made gatehouse.JSON) (out []string) {
			item := itemOf(made, member(call.ProposedChange, "item"))
			inner, _ := item.Get("price")
			if member(inner, "id") != member(call.ProposedChange, "price") {
				out = append(out, "price")
			}
			quantity, ok := call.ProposedChange.Get("quantity")
			if got, _ := item.Get("quantity"); ok && got != quantity {
				out = append(out, "quantity")
			}
			return out
		},
		reversal: func(call connector.Call, s *state, _ gatehouse.JSON) *gatehouse.Reversal {
			was := s.members["price"]
			if s.own != "" {
				was, _ = call.CurrentState.Get("price") // the target already has the new price
			}
			if _, ok := was.Text(); !ok {
				return nil
			}
			item, _ := call.ProposedChange.Get("item")
			now, _ := call.ProposedChange.Get("price")
			proration, _ := call.ProposedChange.Get("proration")
			change := []gatehouse.Member{
				{Name: "item", Value: item}, {Name: "price", Value: was}, {Name: "proration", Value: proration},
			}
			expect := []gatehouse.Member{{Name: "item", Value: item}, {Name: "price", Value: now}}
			if quantity, ok := call.ProposedChange.Get("quantity"); ok {
				old := s.members["quantity"]
				if s.own != "" {
					old, _ = call.CurrentState.Get("quantity")
				}
				if !wholeNumber.MatchString(string(old)) {
					return nil
				}
				change = append(change, gatehouse.Member{Name: "quantity", Value: old})
				expect = append(expect, gatehouse.Member{Name: "quantity", Value: quantity})
			}
			return &gatehouse.Reversal{
				Operation: opPrice, Target: call.Target,
				CurrentState: gatehouse.ObjectJSON(expect...), ProposedChange: gatehouse.ObjectJSON(change...),
			}
		},
	}
}

// itemOf finds an item of a subscription; "" for none.
func itemOf(sub gatehouse.JSON, id string) gatehouse.JSON {
	items, _ := sub.Get("items")
	data, _ := items.Get("data")
	elements, _ := data.Elements()
	for _, item := range elements {
		if member(item, "id") == id {
			return item
		}
	}
	return ""
}
