package api

import (
	"math"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func rateLimited(after time.Duration) error {
	e := gatehouse.E(gatehouse.CodeRateLimited, "too many requests; try again later")
	e.RetryAfter = max(1, int(math.Ceil(after.Seconds())))
	return e
}

// window allows each name n calls in any period of length span. It counts
// exactly; a token bucket would allow 2n calls in the first period.
type window struct {
	n    int
	span time.Duration
	now  func() time.Time

	mu    sync.Mutex
	calls map[string][]time.Time // at most n per name, oldest first
	swept time.Time
}

func newWindow(n int) *window {
	return &window{n: n, span: time.Minute, now: time.Now, calls: make(map[string][]time.Time)}
}

// take counts a call, or fails with code rate_limited.
func (w *window) take(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	w.sweep(now)
	calls := w.fresh(w.calls[name], now)
	if len(calls) >= w.n {
		w.calls[name] = calls
		return rateLimited(calls[0].Add(w.span).Sub(now))
	}
	w.calls[name] = append(calls, now)
	return nil
}

// fresh drops the calls that have left the window.
func (w *window) fresh(calls []time.Time, now time.Time) []time.Time {
	for len(calls) > 0 && now.Sub(calls[0]) >= w.span {
		calls = calls[1:]
	}
	return calls
}

// sweep forgets names without recent calls, at most once per span.
func (w *window) sweep(now time.Time) {
	if now.Sub(w.swept) < w.span {
		return
	}
	w.swept = now
	for name, calls := range w.calls {
		if len(w.fresh(calls, now)) == 0 {
			delete(w.calls, name)
		}
	}
}
