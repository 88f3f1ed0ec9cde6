package stripe

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// prepare makes a request without its parameters.
func (c *Connector) prepare(method, path string) *rest.Request {
	u := *c.base
	u.Path += path
	u.RawPath = ""
	r := rest.NewRequest(method, &u)
	r.SetSecret("Authorization", "Bearer "+c.key)
	r.Header.Set("Stripe-Version", c.cfg.APIVersion)
	r.Header.Set("User-Agent", "gatehouse")
	if c.cfg.Account != "" {
		r.Header.Set("Stripe-Account", c.cfg.Account)
	}
	return r
}

// Execute implements [connector.Connector]. It reads the target, and sends one request that changes
// something, unless the effect already exists.
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	op, v := c.validate(call)
	if len(v) > 0 {
		return connector.Result{}, rest.Invalid(v.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	unlock := c.targets.Lock(ctx, call.Target.EntityRef)
	if unlock == nil {
		return connector.Result{}, rest.NotSent("timeout",
			"the time ran out while another change of the target was under way")
	}
	defer unlock()
	s, failure := c.read(ctx, call)
	if failure != nil {
		return connector.Result{}, rest.NothingSent(failure)
	}
	if s.own != "" {
		return c.outcome(op, call, s, s.own, connector.Result{ResponseMetadata: foundJSON(s.own)})
	}
	if state := s.differences(call); !state.Matches {
		return connector.Result{}, rest.Changed(state)
	}
	if op.refuse != nil {
		if why := op.refuse(call, s); why != "" {
			return connector.Result{}, &connector.Error{
				Kind: connector.Terminal, Code: string(gatehouse.CodeTargetChanged), Detail: why,
			}
		}
	}
	return c.send(ctx, op, call, s)
}

// send sends the change.
func (c *Connector) send(ctx context.Context, op *operation, call connector.Call, s *state) (connector.Result, error) {
	change := op.request(call)
	r := c.prepare(change.method, change.path)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Body, r.HasBody = []byte(change.form.Encode()), true
	if change.method == http.MethodPost { // Stripe ignores the key of a DELETE
		r.Header.Set("Idempotency-Key", call.TargetKey())
	}
	a, err := c.hold.Send(ctx, c.client, r)
	res := connector.Result{RequestMetadata: r.Metadata()}
	if err != nil {
		return res, rest.Unanswered(ctx, err)
	}
	doc := a.JSON()
	if a.Status != http.StatusOK {
		res.ResponseMetadata = a.Metadata(doc)
		failure := refusal(a, doc)
		if change.method == http.MethodDelete && failure.Kind == connector.Terminal {
			// Another attempt with this key may have been faster.
			if now, unread := c.read(ctx, call); unread == nil && now.own != "" {
				return c.outcome(op, call, now, now.own, res)
			}
		}
		return res, failure
	}
	if !doc.IsObject() {
		res.ResponseMetadata = a.Metadata(doc)
		return res, &connector.Error{
			Code: "answer_unreadable", Detail: a.Describe() + ", but the body is not a JSON object", Says: a.Text(doc),
		}
	}
	res.ResponseMetadata = a.Metadata(shown(doc))
	return c.outcome(op, call, s, doc, res)
}

// outcome completes the result of a change that was made.
func (c *Connector) outcome(
	op *operation, call connector.Call, s *state, made gatehouse.JSON, res connector.Result,
) (connector.Result, error) {
	res.ExternalID = member(made, "id")
	if call.Operation == opRefund {
		if status := member(made, "status"); status == "failed" || status == "canceled" {
			return res, &connector.Error{
				Kind: connector.Terminal, Code: "refund_" + status,
				Detail: "Stripe has made the refund, which is " + status + ": " + member(made, "failure_reason"),
			}
		}
	}
	if names := op.differing(call, made); len(names) > 0 {
		return res, &connector.Error{
			Code: "not_as_approved", Detail: "Stripe's change differs from the approved one in: " +
				strings.Join(names, ", "),
		}
	}
	res.Reversal = op.reversal(call, s, made)
	return res, nil
}

// ReadBack implements [connector.ReadBacker]. It finds the effect by its key, and never returns
// Absent.
func (c *Connector) ReadBack(ctx context.Context, call connector.Call) (connector.Finding, connector.Result, error) {
	op, v := c.validate(call)
	if len(v) > 0 {
		return connector.Inconclusive, connector.Result{}, rest.Invalid(v.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	s, failure := c.read(ctx, call)
	if failure != nil {
		return connector.Inconclusive, connector.Result{}, failure
	}
	if s.own == "" {
		return connector.Inconclusive, connector.Result{}, nil
	}
	res, err := c.outcome(op, call, s, s.own, connector.Result{ResponseMetadata: foundJSON(s.own)})
	if err != nil {
		return connector.Inconclusive, connector.Result{}, nil // the created object differs from the approved one
	}
	return connector.Present, res, nil
}

// shownMembers are the members of an object that a receipt keeps: no names, no addresses.
var shownMembers = []string{
	"id", "object", "amount", "currency", "status", "livemode", "created", "charge", "payment_intent", "customer",
	"ending_balance", "cancel_at_period_end", "canceled_at", "failure_reason",
}

func shown(doc gatehouse.JSON) gatehouse.JSON {
	var members []gatehouse.Member
	for _, name := range shownMembers {
		if value, ok := doc.Get(name); ok && !value.IsObject() {
			members = append(members, gatehouse.Member{Name: name, Value: value})
		}
	}
	return gatehouse.ObjectJSON(members...)
}

// foundJSON is the evidence for an effect that was found.
func foundJSON(made gatehouse.JSON) gatehouse.JSON {
	return gatehouse.ObjectJSON(gatehouse.Member{Name: "found", Value: shown(made)})
}

// refusal classifies an error answer.
func refusal(a *rest.Answer, doc gatehouse.JSON) *connector.Error {
	inner, _ := doc.Get("error")
	kind, code := member(inner, "type"), member(inner, "code")
	e := &connector.Error{
		Code: "http_" + strconv.Itoa(a.Status), Detail: a.Describe(), Says: a.Text(doc),
		RetryAfter: rest.RetryAfter(a.Header),
	}
	if code != "" {
		e.Detail += ", " + gatehouse.Quote(code)
	}
	switch s := a.Status; {
	case code == "idempotency_key_in_use", code == "lock_timeout":
		e.Kind, e.Code = connector.Transient, code
	case kind == "idempotency_error":
		e.Kind, e.Code = connector.Terminal, "idempotency_conflict"
	case s == http.StatusTooManyRequests:
		e.Kind, e.Code = connector.Transient, "rate_limited"
	case code == "resource_missing" || code == "charge_already_refunded":
		e.Kind, e.Code = connector.Terminal, string(gatehouse.CodeTargetChanged)
	case s == http.StatusConflict, s == http.StatusRequestTimeout:
		// The answer does not say whether anything was done.
	case s >= 400 && s < 500:
		e.Kind = connector.Terminal
		if code != "" && gatehouse.ValidName(code) {
			e.Code = code
		}
	}
	return e
}
