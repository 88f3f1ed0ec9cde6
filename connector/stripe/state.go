package stripe

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// state is a target's state before a call.
type state struct {
	gone bool
	// own is the effect of an earlier call with the same key, "" for none.
	own      gatehouse.JSON
	currency string
	members  map[string]gatehouse.JSON
}

// read reads the target of a call, and searches for an earlier effect of the call. A failure proves
// nothing about that effect.
func (c *Connector) read(ctx context.Context, call connector.Call) (*state, *connector.Error) {
	if failure := c.owned(ctx); failure != nil {
		return nil, failure
	}
	ref := call.Target.EntityRef
	switch call.Target.EntityType {
	case paymentIntent:
		return c.readPayment(ctx, call, "/v1/payment_intents/"+ref, url.Values{"expand[]": {"latest_charge"}})
	case charge:
		return c.readPayment(ctx, call, "/v1/charges/"+ref, nil)
	case customer:
		return c.readCustomer(ctx, call, "/v1/customers/"+ref)
	}
	return c.readSubscription(ctx, call, "/v1/subscriptions/"+ref)
}

// get reads an object; "" if it does not exist.
func (c *Connector) get(ctx context.Context, path string, query url.Values) (gatehouse.JSON, *connector.Error) {
	r := c.prepare(http.MethodGet, path)
	r.URL.RawQuery = query.Encode()
	a, err := c.hold.Send(ctx, c.client, r)
	if err != nil {
		return "", rest.Unread(ctx, err)
	}
	doc := a.JSON()
	switch {
	case a.Status == http.StatusNotFound:
		return "", nil
	case a.Status != http.StatusOK || !doc.IsObject():
		return "", unread(a, doc)
	}
	if live, ok := doc.Get("livemode"); ok && c.cfg.Mode != "" && (live == "true") != (c.cfg.Mode == "live") {
		return "", &connector.Error{
			Kind: connector.Terminal, Code: "wrong_mode", Detail: "the object is not of the mode " + c.cfg.Mode,
		}
	}
	return doc, nil
}

// unread is the failure of a refused or unreadable read. It is terminal if Stripe refuses the caller.
func unread(a *rest.Answer, doc gatehouse.JSON) *connector.Error {
	e := refusal(a, doc)
	if a.Status != http.StatusUnauthorized && a.Status != http.StatusForbidden {
		e.Kind, e.Code = connector.Transient, "check_failed"
	}
	return e
}

// listed searches a list for a call's effect, by its key. Stripe lists the newest first; only the
// first hundred are read.
func (c *Connector) listed(
	ctx context.Context, call connector.Call, path string, query url.Values,
) (gatehouse.JSON, *connector.Error) {
	query.Set("limit", "100")
	doc, failure := c.get(ctx, path, query)
	if failure != nil {
		return "", failure
	}
	data, _ := doc.Get("data")
	elements, err := data.Elements()
	if err != nil {
		return "", &connector.Error{
			Kind: connector.Transient, Code: "check_failed", Detail: "the list of earlier effects cannot be read",
		}
	}
	for _, made := range elements {
		if metadata, _ := made.Get("metadata"); member(metadata, marker(call.Operation)) == call.TargetKey() {
			return made, nil
		}
	}
	return "", nil
}

func (c *Connector) readPayment(
	ctx context.Context, call connector.Call, path string, query url.Values,
) (*state, *connector.Error) {
	doc, failure := c.get(ctx, path, query)
	if failure != nil || doc == "" {
		return &state{gone: true}, failure
	}
	currency := member(doc, "currency")
	s := &state{currency: currency, members: map[string]gatehouse.JSON{
		"amount": major(member(doc, "amount"), currency), "currency": gatehouse.StringJSON(currency),
		"status": gatehouse.StringJSON(member(doc, "status")), "amount_refunded": "null",
	}}
	paid := doc
	if call.Target.EntityType == paymentIntent {
		paid, _ = doc.Get("latest_charge")
	}
	if refunded := member(paid, "amount_refunded"); refunded != "" {
		s.members["amount_refunded"] = major(refunded, currency)
	}
	s.own, failure = c.listed(ctx, call, "/v1/refunds", url.Values{call.Target.EntityType: {call.Target.EntityRef}})
	return s, failure
}

func (c *Connector) readCustomer(ctx context.Context, call connector.Call, path string) (*state, *connector.Error) {
	doc, failure := c.get(ctx, path, nil)
	if deleted, _ := doc.Get("deleted"); failure != nil || doc == "" || deleted == "true" {
		return &state{gone: true}, failure
	}
	s := &state{currency: member(doc, "currency")}
	in := s.currency
	if in == "" {
		in = member(call.ProposedChange, "currency") // the first currency becomes the customer's
	}
	s.members = map[string]gatehouse.JSON{
		"balance": major(member(doc, "balance"), in), "currency": gatehouse.StringJSON(in),
	}
	s.own, failure = c.listed(ctx, call, path+"/balance_transactions", url.Values{})
	return s, failure
}

func (c *Connector) readSubscription(ctx context.Context, call connector.Call, path string) (*state, *connector.Error) {
	doc, failure := c.get(ctx, path, nil)
	if failure != nil || doc == "" {
		return &state{gone: true}, failure
	}
	ends, _ := doc.Get("cancel_at_period_end")
	s := &state{members: map[string]gatehouse.JSON{
		"status": gatehouse.StringJSON(member(doc, "status")), "cancel_at_period_end": ends,
	}}
	if call.Operation == opPrice {
		id := member(call.ProposedChange, "item")
		item := itemOf(doc, id)
		s.members["item"], s.members["price"], s.members["quantity"] = "null", "null", "null"
		if item != "" {
			inner, _ := item.Get("price")
			s.members["item"], s.members["price"] = gatehouse.StringJSON(id), gatehouse.StringJSON(member(inner, "id"))
			if quantity, ok := item.Get("quantity"); ok {
				s.members["quantity"] = quantity
			}
		}
	}
	metadata, _ := doc.Get("metadata")
	details, _ := doc.Get("cancellation_details")
	if member(metadata, marker(call.Operation)) == call.TargetKey() ||
		call.Operation == opCancel && strings.Contains(member(details, "comment"), cancellation(call)) {
		s.own = doc
	}
	return s, nil
}

// differences compares a target with the pre-image of a call.
func (s *state) differences(call connector.Call) connector.State {
	if s.gone {
		pre, _ := call.CurrentState.Fields()
		return connector.State{Expected: gatehouse.ObjectJSON(pre...), Actual: "null"}
	}
	return rest.Compare(call, func(m gatehouse.Member) (gatehouse.JSON, bool) {
		got := s.members[m.Name]
		return got, same(m.Name, m.Value, got)
	})
}

// same compares two values of a member. Amounts are compared as numbers, even if one is written as
// a string.
func same(name string, a, b gatehouse.JSON) bool {
	switch name {
	case "amount", "amount_refunded", "balance":
		x, err1 := gatehouse.ParseDecimal(plain(a))
		y, err2 := gatehouse.ParseDecimal(plain(b))
		if err1 == nil && err2 == nil {
			return x.Cmp(y) == 0
		}
	}
	return a.Equal(b)
}

func plain(j gatehouse.JSON) string {
	if s, ok := j.Text(); ok {
		return s
	}
	return string(j)
}

// Check implements [connector.Checker].
func (c *Connector) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	op, v := c.validate(call)
	if len(v) > 0 {
		return connector.State{}, rest.Invalid(v.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	s, failure := c.read(ctx, call)
	if failure != nil {
		return connector.State{}, failure
	}
	state := s.differences(call)
	if state.Matches && s.own == "" && op.refuse != nil {
		if why := op.refuse(call, s); why != "" {
			state = connector.State{Expected: call.ProposedChange, Actual: gatehouse.StringJSON(why)}
		}
	}
	return state, nil
}

// ReadsState implements [connector.StateReader].
func (c *Connector) ReadsState(call connector.Call) bool {
	_, v := c.validate(call)
	return len(v) == 0
}

// ReadState implements [connector.StateReader].
func (c *Connector) ReadState(ctx context.Context, call connector.Call) (connector.Snapshot, error) {
	op, v := c.validate(call)
	if len(v) > 0 {
		return connector.Snapshot{}, rest.Invalid(v.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	s, failure := c.read(ctx, call)
	if failure != nil {
		return connector.Snapshot{}, failure
	}
	if s.gone {
		return connector.Snapshot{Gone: true}, nil
	}
	members := make([]gatehouse.Member, len(op.members))
	for i, name := range op.members {
		members[i] = gatehouse.Member{Name: name, Value: s.members[name]}
	}
	return connector.Snapshot{
		Matches: s.differences(call).Matches, CurrentState: gatehouse.ObjectJSON(members...),
	}, nil
}
