package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// connectionError is a request that got no whole answer: whether the server
// acted on it is not known.
type connectionError struct{ err error }

func (e *connectionError) Error() string { return "client: " + e.err.Error() }

func (e *connectionError) Unwrap() error { return e.err }

type retryPolicy struct {
	max  int
	base time.Duration
}

// maxPause bounds the pause between two tries, and what a server's
// Retry-After is heeded.
const maxPause = 5 * time.Second

// next tells whether to try again after an error, and when.
func (p retryPolicy) next(try int, r request, err error) (time.Duration, bool) {
	if try >= p.max {
		return 0, false
	}
	pause := min(p.base<<min(try, 16), maxPause)
	// Jitter over the upper half, so that clients do not come back together.
	if pause > 1 {
		pause = pause/2 + rand.N(pause/2+1)
	}
	repeatable := r.method == "GET" || r.once || r.again
	var connection *connectionError
	var e *gatehouse.Error
	switch {
	case errors.As(err, &connection):
		return pause, repeatable
	case !errors.As(err, &e):
		return 0, false
	case e.Code == gatehouse.CodeBusy, e.Code == gatehouse.CodeInProgress && try > 0:
		// Busy means that nothing was stored. In progress, after a try of
		// our own, is that try: its answer is ours.
		after := time.Duration(e.RetryAfter) * time.Second
		if after > maxPause {
			return 0, false
		}
		return max(pause, after), repeatable || e.Code == gatehouse.CodeBusy && fromServer(e)
	}
	return 0, false
}

// fromServer tells a problem of the server's own from a gateway's answer,
// behind which the request may have had its effect.
func fromServer(e *gatehouse.Error) bool { return !errors.Is(e, errGateway) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
