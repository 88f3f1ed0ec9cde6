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
	CodeInvalid         = "invalid"          // refused here, or with another 4xx, such as 400 or 422
	CodeUnauthenticated = "unauthenticated"  // 401: the key is wrong
	CodeQuota           = "quota_exceeded"   // the account's credit is used up
	CodeForbidden       = "forbidden"        // 403
	CodeNotFound        = "not_found"        // 404: the model, or the base URL
	CodeTooLarge        = "too_large"        // 413, or a request larger than MaxBytes
	CodeRateLimited     = "rate_limited"     // 429
	CodeOverloaded      = "overloaded"       // 503, 529
	CodeUnavailable     = "unavailable"      // another 5xx, 408, 409, 425
	CodeTimeout         = "timeout"          // no answer in time
	CodeUnreachable     = "unreachable"      // no connection, or a broken one
	CodeAddressRefused  = "address_refused"  // the address is internal
	CodeBadAnswer       = "bad_answer"       // a redirect, larger than MaxBytes, or not in the protocol's form
	CodeNotJSON         = "not_json"         // not the requested JSON object
	CodeTruncated       = "truncated"        // the requested JSON was cut off at max_tokens
	CodeRefused         = "refused"          // the model refused to give the requested JSON
	CodeCanceled        = "request_canceled" // the caller gave up
)

// Error is a request without a usable answer. Detail contains no secrets, and no addresses except those in the
// provider's own message, so it may be shown.
type Error struct {
	Code   string
	Detail string
	// Retryable says that the same request may succeed later.
	Retryable bool
	// RetryAfter is the minimum wait that the provider requests; 0 for none, at most an hour.
	RetryAfter time.Duration
	// Status is the HTTP status, 0 without an answer.
	Status int
	// RequestID is the provider's id of the request.
	RequestID string
	cause     error
}

// Error returns code and detail.
func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// Unwrap returns the internal cause, for logs only.
func (e *Error) Unwrap() error { return e.cause }

// maxRetryAfter limits the wait that a provider can request.
const maxRetryAfter = time.Hour

// failure is the content of a provider's error body.
type failure struct {
	// kind is OpenAI's code or type, or Anthropic's error_code or type.
	kind    string
	message string
}

// classify makes an error of a status. Anthropic:
// https://platform.claude.com/docs/en/api/errors, OpenAI:
// https://platform.openai.com/docs/guides/error-codes. The official clients of both retry 408,
// 409, 429 and 5xx, and respect Retry-After.
func classify(status int, h http.Header, f failure, now time.Time) *Error {
	e := &Error{Status: status}
	switch {
	case f.kind == "insufficient_quota" || f.kind == "billing_error" || f.kind == "enforced_spend_limit_reached" ||
		status == http.StatusPaymentRequired:
		// Waiting does not help, even if the status is 429.
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
	// The message of a 401 may contain a part of the key.
	if f.message != "" && e.Code != CodeUnauthenticated {
		e.Detail += ": " + f.message
	}
	return e
}

// retryAfter parses seconds or a date (RFC 9110, section 10.2.3).
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

// maxMessage limits the shown part of a provider's message, in runes.
const maxMessage = 300

// plain puts a provider's text on one line and removes secrets. It cuts the text afterwards, so
// that no part of a secret remains.
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
