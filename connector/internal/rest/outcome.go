package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// Unanswered classifies an error of [Send]: not_sent without a connection, terminal for an internal
// address, and ambiguous otherwise. A [connector.Error] is returned as it is. ctx is the context of the
// request.
func Unanswered(ctx context.Context, err error) *connector.Error {
	if held := (*connector.Error)(nil); errors.As(err, &held) {
		return held
	}
	var s *SendError
	e := &connector.Error{
		Kind: connector.Ambiguous, Code: "connection_lost",
		Detail: "the connection failed before an answer came", Err: err,
	}
	if !errors.As(err, &s) {
		return e
	}
	timeout := ctx.Err() != nil
	switch {
	case s.Refused:
		e.Kind, e.Code = connector.Terminal, "address_refused"
		e.Detail = "the host has an internal address; nothing was sent"
	case !s.Connected && timeout:
		e.Kind, e.Code, e.Detail = connector.NotSent, "timeout", "the time ran out before there was a connection"
	case !s.Connected:
		e.Kind, e.Code, e.Detail = connector.NotSent, "unreachable", "no connection: "+reason(s.Err)
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

// Unread is [Unanswered] for a request that only reads: it can be repeated, so its failure is never
// ambiguous.
func Unread(ctx context.Context, err error) *connector.Error {
	return ReadFailure(Unanswered(ctx, err))
}

// ReadFailure makes an ambiguous failure transient, because a request that only reads can be repeated.
func ReadFailure(e *connector.Error) *connector.Error {
	if e != nil && e.Kind == connector.Ambiguous {
		e.Kind = connector.Transient
	}
	return e
}

// Describe names the answer's status.
func (a *Answer) Describe() string {
	return fmt.Sprintf("the target answered %d %s", a.Status, http.StatusText(a.Status))
}

// maxSkew is the largest difference between two clocks that does not explain the refusal of a
// credential.
const maxSkew = time.Minute

// ClockSkew turns the refusal of a signature, or of an assertion, into clock_skew if this machine's
// clock differs from the answer's Date. Nothing was done, and the target accepts the call when the
// clock is right again, so the failure is transient.
func (a *Answer) ClockSkew(e *connector.Error) {
	date, err := http.ParseTime(a.Header.Get("Date"))
	off, way := time.Since(date).Round(time.Second), "ahead of"
	if err != nil || off.Abs() <= maxSkew {
		return
	}
	if off < 0 {
		way = "behind"
	}
	e.Kind, e.Code = connector.Transient, "clock_skew"
	e.Detail += fmt.Sprintf("; this machine's clock is %s %s the target's", off.Abs(), way)
}

// maxRetryAfter limits the wait that a target may ask for.
const maxRetryAfter = 24 * time.Hour

// RetryAfter parses the header of RFC 9110, section 10.2.3: seconds, or a date. The result is at
// most a day, and 0 without the header.
func RetryAfter(h http.Header) time.Duration {
	s := h.Get("Retry-After")
	if s == "" {
		return 0
	}
	if n, err := strconv.ParseUint(s, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
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
