package engine

import "time"

// maxRetryAfter bounds how long a target can put a push off.
const maxRetryAfter = time.Hour

// backoff returns how long to wait after the nth attempt (from 1): the nth of
// the configured steps, or the last, give or take a fifth; longer when the
// target asks for it. random is in [0, 1).
func backoff(steps []time.Duration, n int, wish time.Duration, random float64) time.Duration {
	d := steps[min(max(n, 1), len(steps))-1]
	d += time.Duration(float64(d) * (random - 0.5) * 0.4)
	return max(d, min(wish, maxRetryAfter))
}
