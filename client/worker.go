package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The reasons why a handler's context ends before the handler; see [context.Cause].
var (
	// ErrCanceled: the run was canceled, or failed at another step.
	ErrCanceled = errors.New("client: the step is canceled")
	// ErrLeaseLost: another worker may have the step or push now. The handler's result is dropped.
	ErrLeaseLost = errors.New("client: the lease is lost")
	// ErrStopping: the worker's grace period is over.
	ErrStopping = errors.New("client: the worker stops")
)

// ErrParked is returned by a handler that has parked its step with [Client.ProposeStep]: the step
// continues when the action is settled.
var ErrParked = errors.New("client: the step is parked")

// retryable marks an error after which another attempt may succeed.
type retryable struct{ error }

func (e retryable) Unwrap() error { return e.error }

// Retryable marks a handler's error after which another attempt may succeed. Retryable(nil) is nil.
func Retryable(err error) error {
	if err == nil {
		return nil
	}
	return retryable{err}
}

// Worker executes the steps of its tools: it leases them, extends the leases while a handler runs,
// and reports the results.
//
// A step is executed at least once: if its worker dies or the report is lost, there is another
// attempt. step.IdempotencyKey is the same in all attempts; pass it to the systems that the handler calls.
type Worker struct {
	Client *Client
	Tools  []string
	// Handler executes a step and returns its output. An error fails the step permanently, unless
	// it is wrapped by [Retryable]. The context ends when the step is canceled, when its lease is
	// lost, and when the worker stops.
	Handler func(ctx context.Context, step *gatehouse.LeasedStep) (gatehouse.JSON, error)
	// Concurrency is the number of steps executed at a time: 1 by default, at most
	// gatehouse.MaxLeasedSteps.
	Concurrency int
	// Lease is how long a lease lasts without a heartbeat, by default gatehouse.DefaultStepLease.
	// Heartbeats are sent at a third of it.
	Lease time.Duration
	// Wait is how long one request waits for a ready step; 30 s by default.
	Wait time.Duration
	// Grace is how long handlers may continue after the worker was told to stop; 20 s by default.
	// After it, their contexts end, and an error that they return then is retryable.
	Grace time.Duration
	// Name is the worker's name for people; the principal's name by default.
	Name string
	// Logger is slog.Default by default.
	Logger *slog.Logger
}

// Run works until ctx ends, then waits for the running handlers, and returns nil. A lease that the
// server granted but whose answer did not arrive expires. Run returns an error when the server
// refuses the worker itself: its key, its role, or its request. If the server is unreachable, Run keeps asking.
func (w Worker) Run(ctx context.Context) error {
	if err := w.setDefaults(); err != nil {
		return err
	}
	// Handlers may run for the grace period after ctx has ended.
	work, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	stopping := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(w.Grace, func() { cut(ErrStopping) })
		context.AfterFunc(work, func() { timer.Stop() })
	})
	defer stopping()

	var handlers sync.WaitGroup
	defer handlers.Wait()
	free := make(chan struct{}, w.Concurrency)
	for range w.Concurrency {
		free <- struct{}{}
	}
	for failures := 0; ; {
		slots := take(ctx, free)
		if slots == 0 {
			return nil
		}
		steps, err := w.Client.LeaseSteps(ctx, gatehouse.LeaseRequest{
			Tools: w.Tools, Max: slots, Wait: gatehouse.Duration(w.Wait), Lease: gatehouse.Span(w.Lease), Worker: w.Name,
		})
		for i := range steps {
			handlers.Go(func() {
				w.execute(work, &steps[i])
				free <- struct{}{}
			})
		}
		for range slots - len(steps) {
			free <- struct{}{}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			failures = 0
		case refused(err):
			return err
		default:
			failures++
			w.Logger.WarnContext(ctx, "no steps could be leased", "failures", failures, "err", err)
			if sleep(ctx, pauseAfter(failures, err)) != nil {
				return nil
			}
		}
	}
}

// setDefaults fills in the defaults.
func (w *Worker) setDefaults() error {
	if w.Client == nil || w.Handler == nil || len(w.Tools) == 0 {
		return errors.New("client: a worker needs a client, tools and a handler")
	}
	if w.Concurrency == 0 {
		w.Concurrency = 1
	}
	if w.Concurrency < 0 || w.Concurrency > gatehouse.MaxLeasedSteps {
		return fmt.Errorf("client: a worker executes 1 to %d steps at a time", gatehouse.MaxLeasedSteps)
	}
	if w.Lease == 0 {
		w.Lease = gatehouse.DefaultStepLease
	}
	if w.Wait == 0 {
		w.Wait = 30 * time.Second
	}
	if w.Grace == 0 {
		w.Grace = 20 * time.Second
	}
	if w.Logger == nil {
		w.Logger = slog.Default()
	}
	return nil
}

// take waits for a free slot and takes all free ones; it returns 0 when ctx ends.
func take(ctx context.Context, free <-chan struct{}) (n int) {
	select {
	case <-free:
	case <-ctx.Done():
		return 0
	}
	for n = 1; ; n++ {
		select {
		case <-free:
		default:
			return n
		}
	}
}

// refused reports whether the server would give the worker the same refusal every time.
func refused(err error) bool {
	var e *gatehouse.Error
	if !errors.As(err, &e) || errors.Is(err, errGateway) {
		return false
	}
	return gatehouse.StatusOf(e.Code) < 500 && !e.Code.Retryable()
}

// maxBackoff limits the pause between two requests to a failing server. A worker pauses for longer
// where the server's Retry-After says so; a wait does not.
const maxBackoff = 30 * time.Second

func pauseAfter(failures int, err error) time.Duration {
	pause := min(time.Second<<min(failures-1, 16), maxBackoff)
	pause = pause/2 + rand.N(pause/2)
	var e *gatehouse.Error
	if errors.As(err, &e) {
		pause = max(pause, time.Duration(e.RetryAfter)*time.Second)
	}
	return pause
}
