package wake

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	minPause = 250 * time.Millisecond
	maxPause = 15 * time.Second
)

// Backoff paces a carrier's attempts to connect. The zero value is ready to use.
type Backoff struct{ failures int }

// Pause waits for a random time between half and all of 250 ms, doubled with
// each consecutive failure up to 15 s, or until ctx ends.
func (r *Backoff) Pause(ctx context.Context) {
	d := min(minPause<<min(r.failures, 10), maxPause)
	r.failures++
	timer := time.NewTimer(d/2 + rand.N(d/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Succeeded returns to short pauses.
func (r *Backoff) Succeeded() { r.failures = 0 }
