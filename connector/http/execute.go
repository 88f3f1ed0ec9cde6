package httpconn

import (
	"context"
	"net/http"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// Execute sends the request once and classifies the answer.
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	op, ok := c.operations[call.Operation]
	if !ok {
		return connector.Result{}, &connector.Error{
			Kind: connector.Terminal, Code: string(gatehouse.CodeInvalid), Detail: "the operation is not configured",
		}
	}
	d, err := c.request(op, call)
	if err != nil {
		return connector.Result{}, rest.Invalid(err)
	}
	ctx, cancel := context.WithTimeout(ctx, op.timeout)
	defer cancel()
	a, again, failed := c.send(ctx, d)
	res := connector.Result{RequestMetadata: d.Metadata()}
	if failed != nil {
		return res, failed
	}
	doc := answerBody{a.JSON()}
	res.ResponseMetadata = a.Metadata(doc.json)
	if failure := op.classify(call, a, doc, again); failure != nil {
		failure.Says = a.Text(doc.json)
		if c.oauth1 != nil && failure.Code == "http_401" {
			a.ClockSkew(failure)
		}
		return res, failure
	}
	if op.cfg.ExternalID != nil {
		if j, ok := doc.at(*op.cfg.ExternalID); ok {
			res.ExternalID = plain(j)
		}
	}
	res.Reversal = c.reversal(op, call, a, doc, res.ExternalID)
	return res, nil
}

// classify returns nil when the answer proves that the change was applied. again is as for send.
func (op *operation) classify(call connector.Call, a *rest.Answer, doc answerBody, again bool) *connector.Error {
	byDefault := op.byDefault(a)
	if byDefault != nil && again {
		byDefault.Kind = connector.Transient // for class A or B, the next attempt has another access token
	}
	for _, r := range op.rules {
		matches, known := r.matches(call, a, doc)
		if !known {
			return &connector.Error{
				Kind: connector.Ambiguous, Code: "answer_cut",
				Detail: "the answer is incomplete (" + a.Cut + "), so the outcome is not known",
			}
		}
		if !matches {
			continue
		}
		if r.applied {
			return op.unlikeSchema(a, doc)
		}
		e := &connector.Error{Kind: r.kind, Code: r.code, Detail: a.Describe(), RetryAfter: rest.RetryAfter(a.Header)}
		if e.Code == "" {
			e.Code = "http_" + strconv.Itoa(a.Status)
			if byDefault != nil {
				e.Code = byDefault.Code
			}
		}
		return e
	}
	if byDefault == nil {
		return op.unlikeSchema(a, doc)
	}
	return byDefault
}

// unlikeSchema returns the failure of a successful answer that does not fit the response schema; nil if it fits.
func (op *operation) unlikeSchema(a *rest.Answer, doc answerBody) *connector.Error {
	if op.response == nil || a.Status > 299 {
		return nil
	}
	e := &connector.Error{Kind: connector.Ambiguous, Code: "answer_schema"}
	if doc.json == "" {
		e.Detail = a.Describe() + ", but without valid JSON"
		return e
	}
	v := op.response.Check("", doc.json)
	if len(v) == 0 {
		return nil
	}
	e.Detail = a.Describe() + ", but the answer does not fit response_schema: " + v.Err().Error()
	return e
}

// matches reports whether a rule applies to the answer; known is false if that depends on a part of
// the answer that was cut off.
func (r rule) matches(call connector.Call, a *rest.Answer, doc answerBody) (matches, known bool) {
	if len(r.status) > 0 && !contains(r.status, a.Status) {
		return false, true
	}
	if r.json == nil {
		return true, true
	}
	if a.Cut != "" {
		return false, false
	}
	return r.json.matches(call, doc), true
}

// byDefault classifies an answer without the configured rules: as [rest.Answer.Failure] does, adjusted to the
// operation's successful statuses, condition and class.
func (op *operation) byDefault(a *rest.Answer) *connector.Error {
	if contains(op.success, a.Status) {
		return nil
	}
	e := a.Failure()
	switch s := a.Status; {
	case (s == http.StatusConflict || s == http.StatusPreconditionFailed) && op.conditional != nil:
		e.Kind, e.Code = connector.Terminal, string(gatehouse.CodeTargetChanged)
	case op.class == connector.ClassC:
	case s == http.StatusRequestTimeout || s == http.StatusTooEarly,
		s == http.StatusServiceUnavailable && e.RetryAfter > 0:
		e.Kind = connector.Transient // a call of class A or B can be repeated
	}
	return e
}
