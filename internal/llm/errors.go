package llm

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The codes of errors.
const (
	CodeInvalid         = "invalid"          // the request, by our own rules or a 400 or 422
	CodeUnauthenticated = "unauthenticated"  // 401: the key
	CodeQuota           = "quota_exceeded"   // what the account may spend is used up
	CodeForbidden       = "forbidden"        // 403
	CodeNotFound        = "not_found"        // 404: the model, or the base URL
	CodeTooLarge        = "too_large"        // 413, or a body over MaxBytes
	CodeRateLimited     = "rate_limited"     // 429
	CodeOverloaded      = "overloaded"       // 503, 529
	CodeUnavailable     = "unavailable"      // another 5xx, 408, 409, 425
	CodeTimeout         = "timeout"          // no answer in time
	CodeUnreachable     = "unreachable"      // no connection, or one that broke off
	CodeAddressRefused  = "address_refused"  // the address is an inside one
	CodeBadAnswer       = "bad_answer"       // not the protocol
	CodeNotJSON         = "not_json"         // not the object that was asked for
	CodeTruncated       = "truncated"        // cut off at max_tokens
	CodeRefused         = "refused"          // the model would not answer
	CodeCanceled        = "request_canceled" // the caller gave up
)

// Error is a request without a usable answer. Detail may be shown: it holds no
// secret and no address.
type Error struct {
	Code   string
	Detail string
	// Retryable says that the same request may succeed later.
	Retryable bool
	// RetryAfter is the least wait that the provider asks for; 0 for none, at
	// most an hour.
	RetryAfter time.Duration
	// Status is that of the answer, 0 if none came.
	Status int
	// RequestID is the provider's name for the request.
	RequestID string
	cause     error
}

// Error returns code and detail.
func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// Unwrap returns the internal cause, for logs only.
func (e *Error) Unwrap() error { return e.cause }

// maxRetryAfter bounds what a provider can make a run wait.
const maxRetryAfter = time.Hour

// failure is what a provider says of itself in the body of an error.
type failure struct {
	// kind is OpenAI's code or type, or Anthropic's type.
	kind    string
	message string
}

// classify makes an error of a status. Anthropic:
// https://platform.claude.com/docs/en/api/errors, OpenAI:
// https://platform.openai.com/docs/guides/error-codes. Both have their own
// clients repeat 408, 409, 429 and 5xx, and wait for Retry-After.
func classify(status int, h http.Header, f failure, now time.Time) *Error {
	e := &Error{Status: status}
	switch {
	case f.kind == "insufficient_quota" || f.kind == "billing_error" || f.kind == "enforced_spend_limit_reached" || status == http.StatusPaymentRequired:
		// A 429 by its status, which no wait within a run would end.
		e.Code = CodeQuota
	case status == http.StatusTooManyRequests:
		e.Code, e.Retryable = CodeRateLimited, true
	case status == http.StatusServiceUnavailable || status == 529:
		e.Code, e.Retryable = CodeOverloaded, true
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
		e.Code, e.Retryable = CodeUnavailable, true
	case status == http.StatusUnauthorized:
		e.Code = CodeUnauthenticated
	case status == http.StatusForbidden:
		e.Code = CodeForbidden
	case status == http.StatusNotFound:
		e.Code = CodeNotFound
	case status == http.StatusRequestEntityTooLarge:
		e.Code = CodeTooLarge
	case status >= 300 && status < 400:
		e.Code = CodeBadAnswer
		f.message = "redirects are not followed"
	case status >= 400:
		e.Code = CodeInvalid
	default:
		e.Code = CodeBadAnswer
	}
	if e.Retryable {
		e.RetryAfter = retryAfter(h.Get("Retry-After"), now)
	}
	e.Detail = fmt.Sprintf("the provider answered %d", status)
	// What is said of a key may hold a part of it.
	if f.message != "" && e.Code != CodeUnauthenticated {
		e.Detail += ": " + f.message
	}
	return e
}

// retryAfter reads seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(s string, now time.Time) time.Duration {
	var d time.Duration
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds > 0 {
		d = maxRetryAfter
		if seconds < maxRetryAfter.Seconds() {
			d = time.Duration(seconds * float64(time.Second))
		}
	} else if at, err := http.ParseTime(s); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

// maxMessage bounds what is shown of a provider's message, in runes.
const maxMessage = 300

// plain is a provider's text on one line, cut after the secrets are out so that
// no piece of one is left.
func plain(redactor *strings.Replacer, s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, redactor.Replace(strings.ToValidUTF8(s, "�")))
	s = strings.Join(strings.Fields(redactor.Replace(s)), " ")
	if r := []rune(s); len(r) > maxMessage {
		s = string(r[:maxMessage]) + "…"
	}
	return s
}
