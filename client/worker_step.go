package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// execute runs the handler under the lease and reports its result.
func (w *Worker) execute(work context.Context, s *gatehouse.LeasedStep) {
	ctx, end := context.WithCancelCause(work)
	log := w.Logger.With("step_id", s.Step.ID, "run_id", s.Step.RunID, "generation", s.Lease.Generation)
	lost, returned, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var keeper sync.WaitGroup
	keeper.Go(func() {
		if err := w.keep(work, s, returned, done, end); err != nil {
			log.WarnContext(work, "the lease of a step is lost", "err", err)
			close(lost)
			end(ErrLeaseLost)
		}
	})
	output, err := w.handle(ctx, s)
	cause := context.Cause(ctx)
	close(returned)
	// The lease is extended until the report has arrived.
	for failures := 1; ; failures++ {
		if errors.Is(err, ErrParked) || errors.Is(cause, ErrLeaseLost) {
			break
		}
		reported := w.report(context.WithoutCancel(work), s, output, err, cause)
		if reported == nil {
			break
		}
		log.WarnContext(work, "the result of a step could not be reported", "failures", failures, "err", reported)
		if refused(reported) || !pauseUnless(lost, pauseAfter(failures, reported)) {
			break
		}
	}
	close(done)
	end(nil)
	keeper.Wait()
}

// pauseUnless waits for d. It returns false, and at once, if the lease is lost.
func pauseUnless(lost <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-lost:
		return false
	}
}

// keep sends heartbeats until done; its error means that the lease is lost. After the handler has
// returned, keep ignores a refused heartbeat until the lease has expired: the report may have arrived
// and ended the lease, so the answer to the report decides.
func (w *Worker) keep(
	work context.Context, s *gatehouse.LeasedStep, returned, done <-chan struct{}, end context.CancelCauseFunc,
) error {
	beat := time.NewTicker(w.Lease / 3)
	defer beat.Stop()
	// Heartbeats continue after work has ended: the result of a handler that was cut off is reported
	// too, and the report needs the lease.
	ctx := context.WithoutCancel(work)
	until := time.Now().Add(w.Lease)
	for {
		select {
		case <-done:
			return nil
		case <-beat.C:
		}
		// The duration of the request counts against the lease that it asks for.
		start := time.Now()
		attempt, stop := context.WithDeadline(ctx, until)
		state, err := w.Client.HeartbeatStep(attempt, s.Step.ID,
			gatehouse.Heartbeat{Generation: s.Lease.Generation, Lease: gatehouse.Span(w.Lease)})
		stop()
		switch {
		case err == nil:
			until = start.Add(w.Lease)
			if state.Cancel {
				end(ErrCanceled)
			}
		case !time.Now().Before(until):
			return err
		case refused(err):
			select {
			case <-returned:
			default:
				return err
			}
		}
	}
}

// handle calls the handler and turns a panic into an error.
func (w *Worker) handle(ctx context.Context, s *gatehouse.LeasedStep) (output gatehouse.JSON, err error) {
	defer func() {
		if p := recover(); p != nil {
			w.Logger.ErrorContext(ctx, "a handler panicked", "step_id", s.Step.ID, "panic", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			err = errPanic
		}
	}()
	return w.Handler(ctx, s)
}

var errPanic = errors.New("the handler panicked")

// report sends a step's result to the server: the output or, if failed is not nil, the handler's error.
// cause says why the handler's context ended early, if it did.
func (w *Worker) report(
	ctx context.Context, s *gatehouse.LeasedStep, output gatehouse.JSON, failed, cause error,
) error {
	if failed == nil {
		_, err := w.Client.CompleteStep(ctx, s.Step.ID, gatehouse.StepResult{Generation: s.Lease.Generation, Output: output})
		return err
	}
	f := gatehouse.StepFailure{
		Generation: s.Lease.Generation, Code: "handler_failed", Detail: detailOf(failed, "the handler failed"),
	}
	var again retryable
	f.Retryable = errors.As(failed, &again)
	switch {
	case errors.Is(cause, ErrStopping):
		f.Code, f.Retryable = "worker_stopped", true
	case errors.Is(cause, ErrCanceled):
		f.Code, f.Retryable = "canceled", false
	case errors.Is(failed, errPanic):
		f.Code = "handler_panicked"
	}
	_, err := w.Client.FailStep(ctx, s.Step.ID, f)
	return err
}

// detailOf is the text of an error as the server accepts it in the report of a failure. For an error without a text,
// it is otherwise.
func detailOf(failed error, otherwise string) string {
	s := strings.ReplaceAll(strings.ToValidUTF8(failed.Error(), "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > gatehouse.MaxNotesBytes {
		s = strings.ToValidUTF8(s[:gatehouse.MaxNotesBytes], "")
	}
	return cmp.Or(s, otherwise)
}
