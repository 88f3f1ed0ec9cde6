package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// Hold keeps requests from a target that has answered 429, until its Retry-After has passed. The zero
// Hold holds nothing.
type Hold struct {
	mu    sync.Mutex
	until time.Time
}

// For blocks all requests for the given time.
func (h *Hold) For(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(d); d > 0 && until.After(h.until) {
		h.until = until
	}
}

// Failure returns not_sent while requests are blocked, nil otherwise.
func (h *Hold) Failure() *connector.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait := time.Until(h.until)
	if wait <= 0 {
		return nil
	}
	return &connector.Error{
		Kind: connector.NotSent, Code: "rate_limited", RetryAfter: wait,
		Detail: "the target asked for no calls before " + h.until.UTC().Format(time.RFC3339),
	}
}

// Send is [Send] for a target that may answer 429. While requests are blocked, it sends nothing and
// returns the error of Failure, which [Unanswered] and [Unread] return as it is.
func (h *Hold) Send(ctx context.Context, client *http.Client, r *Request) (*Answer, error) {
	if failure := h.Failure(); failure != nil {
		return nil, failure
	}
	a, err := Send(ctx, client, r)
	if err == nil && a.Status == http.StatusTooManyRequests {
		h.For(RetryAfter(a.Header))
	}
	return a, err
}
