package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// connectionError says that a request got no complete answer: the server may or may not have acted
// on it.
type connectionError struct{ err error }

func (e *connectionError) Error() string { return "client: " + e.err.Error() }

func (e *connectionError) Unwrap() error { return e.err }

// broken is the error of a request that failed with err. A refused certificate stays refused: the server has got
// nothing, and another try gets no further.
func broken(err error) error {
	if refusedCertificate(err) {
		return fmt.Errorf("client: %w", err)
	}
	return &connectionError{err}
}

func refusedCertificate(err error) bool {
	_, refused := errors.AsType[*tls.CertificateVerificationError](err)
	return refused
}

type retryPolicy struct {
	max  int
	base time.Duration
}

// maxPause limits the pause between two tries. If the server's Retry-After is longer, the call is not
// tried again.
const maxPause = 5 * time.Second

// defaultBase is the pause before the first retry if the policy's base is 0.
const defaultBase = 100 * time.Millisecond

// backoff doubles the pause with each try.
func (p retryPolicy) backoff(try int) time.Duration {
	return min(cmp.Or(p.base, defaultBase)<<min(try, 16), maxPause)
}

// outlast handles a failed request of a wait. After an error that may pass, such as one during a restart
// of the server, it pauses and returns nil, or ctx's error if ctx ends first. It returns any other error;
// once no time is left, it returns every error.
func (p retryPolicy) outlast(ctx context.Context, try int, left time.Duration, err error) error {
	if !passing(err) || left <= 0 {
		return err
	}
	pause := p.backoff(try)
	if e, ok := errors.AsType[*gatehouse.Error](err); ok {
		pause = max(pause, min(time.Duration(e.RetryAfter)*time.Second, maxBackoff))
	}
	return sleepAfter(ctx, min(pause, left), err)
}

// pollUntil is how long the next long poll of a wait lasts, in whole milliseconds.
func pollUntil(now, deadline time.Time) time.Duration {
	left := min(max(deadline.Sub(now), 0), gatehouse.MaxWait)
	return (left + time.Millisecond - 1).Truncate(time.Millisecond)
}

// again prepares the next poll of a wait, after a poll without news. A poll that was answered before its time was cut
// off, such as by the stop of its server: then again pauses first, as after a failure. It returns the number of the
// last try.
func (p retryPolicy) again(
	ctx context.Context, try int, start time.Time, poll time.Duration, deadline time.Time,
) (int, error) {
	if time.Since(start) >= poll {
		return -1, nil
	}
	return try, sleep(ctx, min(p.backoff(try), time.Until(deadline)))
}

// passing reports whether an error may pass without a change of the request, such as one during a restart of the
// server. A gateway's internal error does not: it is the answer of a wrong address.
func passing(err error) bool {
	if _, ok := errors.AsType[*connectionError](err); ok {
		return true
	}
	e, ok := errors.AsType[*gatehouse.Error](err)
	return ok && e.Code.Retryable() && (e.Code != gatehouse.CodeInternal || fromServer(e))
}

// sleepAfter sleeps after a failed try. If the deadline of ctx passes, the returned error wraps that try's
// error, too.
func sleepAfter(ctx context.Context, d time.Duration, failed error) error {
	err := sleep(ctx, d)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("client: %w; the last try failed: %w", err, failed)
	}
	return err
}

// next decides whether to try again after an error, and after which pause.
func (p retryPolicy) next(try int, r request, err error) (time.Duration, bool) {
	if try >= p.max {
		return 0, false
	}
	pause := p.backoff(try)
	// Half of the pause is random, so that clients do not return at the same time.
	if pause > 1 {
		pause = pause/2 + rand.N(pause/2+1)
	}
	repeatable := r.method == "GET" || r.sendKey || r.idempotent
	var connection *connectionError
	var e *gatehouse.Error
	switch {
	case errors.As(err, &connection):
		return pause, repeatable
	case !errors.As(err, &e):
		return 0, false
	case e.Code == gatehouse.CodeBusy, e.Code == gatehouse.CodeInProgress && try > 0:
		// A busy server has stored nothing. If it reports, after an earlier try, that the call
		// is in progress, that try is still running, and the next try gets its answer.
		after := time.Duration(e.RetryAfter) * time.Second
		if after > maxPause {
			return 0, false
		}
		return max(pause, after), repeatable || e.Code == gatehouse.CodeBusy && fromServer(e)
	}
	return 0, false
}

// fromServer reports whether the server itself returned the error. After a gateway's error, the
// request may have had its effect.
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
