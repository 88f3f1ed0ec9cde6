package dispatch

import "time"

// maxRetryAfter bounds the wait that a target can ask for.
const maxRetryAfter = time.Hour

// backoff returns the wait after the nth attempt (from 1): the nth configured
// step, or the last one, varied by up to a fifth; longer when the target asks
// for it in wish. random is in [0, 1).
func backoff(steps []time.Duration, n int, wish time.Duration, random float64) time.Duration {
	d := steps[min(max(n, 1), len(steps))-1]
	d += time.Duration(float64(d) * (random - 0.5) * 0.4)
	return max(d, min(wish, maxRetryAfter))
}
