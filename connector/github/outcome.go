package github

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// leastWait is the wait that GitHub recommends if a rate limit names no time.
const leastWait = time.Minute

// outcome classifies an unsuccessful answer. GitHub reports rate limits with 403 or 429; a 403
// without the headers of a limit is a refusal
// (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
func outcome(a *rest.Answer) *connector.Error {
	e := a.Failure()
	if a.Status != http.StatusForbidden && a.Status != http.StatusTooManyRequests {
		return e
	}
	message, _ := rest.TextOf(a.JSON(), "message")
	spent := a.Header.Get("X-Ratelimit-Remaining") == "0"
	if a.Status == http.StatusForbidden && !spent && e.RetryAfter == 0 &&
		!strings.Contains(strings.ToLower(message), "secondary rate limit") {
		return e
	}
	e.Kind, e.Code = connector.Transient, "rate_limited"
	if e.RetryAfter == 0 && spent {
		if reset, err := strconv.ParseInt(a.Header.Get("X-Ratelimit-Reset"), 10, 64); err == nil {
			e.RetryAfter = min(max(time.Until(time.Unix(reset, 0)), time.Second), 24*time.Hour)
		}
	}
	if e.RetryAfter == 0 {
		e.RetryAfter = leastWait
	}
	return e
}

// failure is outcome that also blocks further calls until a rate limit ends.
func (c *Connector) failure(a *rest.Answer) *connector.Error {
	e := outcome(a)
	if e.Kind == connector.Transient {
		c.api.Hold(e.RetryAfter)
	}
	return e
}
