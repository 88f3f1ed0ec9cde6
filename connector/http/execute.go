package httpconn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
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
		return connector.Result{}, &connector.Error{
			Kind: connector.Terminal, Code: string(gatehouse.CodeInvalid), Detail: err.Error(), Err: err,
		}
	}
	ctx, cancel := context.WithTimeout(ctx, op.timeout)
	defer cancel()
	a, err := c.send(ctx, d)
	res := connector.Result{RequestMetadata: d.metadata()}
	if err != nil {
		return res, unanswered(ctx, err)
	}
	doc := parseDocument(a)
	res.ResponseMetadata = metadata(a, doc)
	if failure := op.classify(call, a, doc); failure != nil {
		failure.Says = says(a, doc)
		return res, failure
	}
	if op.cfg.ExternalID != nil {
		if j, ok := doc.at(*op.cfg.ExternalID); ok {
			res.ExternalID = plain(j)
		}
	}
	res.Reversal = op.reversal(call, a, doc, res.ExternalID)
	return res, nil
}

// unanswered classifies a request without an answer.
func unanswered(ctx context.Context, err error) *connector.Error {
	var s *sendError
	e := &connector.Error{Kind: connector.Ambiguous, Code: "connection_lost", Detail: "the connection failed before an answer came", Err: err}
	if !errors.As(err, &s) {
		return e
	}
	timeout := ctx.Err() != nil
	switch {
	case s.refused:
		e.Kind, e.Code, e.Detail = connector.Terminal, "address_refused", "the host is at an inside address; nothing was sent"
	case !s.connected && timeout:
		e.Kind, e.Code, e.Detail = connector.NotSent, "timeout", "the time was over before there was a connection"
	case !s.connected:
		e.Kind, e.Code, e.Detail = connector.NotSent, "unreachable", "no connection: "+reason(s.err)
	case timeout:
		e.Code, e.Detail = "timeout", "no answer came in time"
	}
	return e
}

// reason shortens the error of a failed connection.
func reason(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// classify returns nil when the answer proves that the change was applied.
func (op *operation) classify(call connector.Call, a *answer, doc document) *connector.Error {
	byDefault := op.byDefault(a)
	for _, r := range op.rules {
		matches, known := r.matches(call, a, doc)
		if !known {
			return &connector.Error{
				Kind: connector.Ambiguous, Code: "answer_cut", Detail: "the answer is not whole (" + a.cut + "), so its outcome cannot be told",
			}
		}
		if !matches {
			continue
		}
		if r.applied {
			return nil
		}
		e := &connector.Error{Kind: r.kind, Code: r.code, Detail: describe(a), RetryAfter: retryAfter(a.header)}
		if e.Code == "" {
			e.Code = "http_" + strconv.Itoa(a.status)
			if byDefault != nil {
				e.Code = byDefault.Code
			}
		}
		return e
	}
	return byDefault
}

// matches reports whether a rule speaks of the answer; known is false when
// that stands in a part of the answer that did not come.
func (r rule) matches(call connector.Call, a *answer, doc document) (matches, known bool) {
	if len(r.status) > 0 && !contains(r.status, a.status) {
		return false, true
	}
	if r.json == nil {
		return true, true
	}
	if a.cut != "" {
		return false, false
	}
	return r.json.matches(call, doc), true
}

// byDefault classifies by status alone.
func (op *operation) byDefault(a *answer) *connector.Error {
	if contains(op.success, a.status) {
		return nil
	}
	e := &connector.Error{Code: "http_" + strconv.Itoa(a.status), Detail: describe(a), RetryAfter: retryAfter(a.header)}
	repeatable := op.class != connector.ClassC
	switch s := a.status; {
	case (s == http.StatusConflict || s == http.StatusPreconditionFailed) && op.conditional != nil:
		e.Kind, e.Code = connector.Terminal, string(gatehouse.CodeTargetChanged)
	case s == http.StatusTooManyRequests:
		e.Kind = connector.Transient
	case s == http.StatusRequestTimeout || s == http.StatusTooEarly,
		s == http.StatusServiceUnavailable && e.RetryAfter > 0:
		e.Kind = connector.Ambiguous
		if repeatable {
			e.Kind = connector.Transient
		}
	case s == http.StatusSeeOther:
		// It points to the result of what was done (RFC 9110, section 15.4.4).
		e.Kind, e.Code = connector.Ambiguous, "redirect"
	case s >= 300 && s < 400:
		e.Kind, e.Code, e.Detail = connector.Terminal, "redirect", describe(a)+"; redirects are not followed"
	case s >= 400 && s < 500:
		e.Kind = connector.Terminal
	default:
		// 5xx, and a 2xx that the configuration does not count as success.
		e.Kind = connector.Ambiguous
	}
	return e
}

func describe(a *answer) string {
	return fmt.Sprintf("the target answered %d %s", a.status, http.StatusText(a.status))
}

// maxRetryAfter bounds a target's wish.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads RFC 9110, section 10.2.3: seconds, or a date.
func retryAfter(h http.Header) time.Duration {
	s := h.Get("Retry-After")
	if s == "" {
		return 0
	}
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(s)
	if err != nil {
		return 0
	}
	now := time.Now()
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date // the same clock
	}
	return max(0, min(at.Sub(now), maxRetryAfter))
}
