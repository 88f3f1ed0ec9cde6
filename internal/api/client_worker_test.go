package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

type stepHandler = func(context.Context, *gatehouse.LeasedStep) (gatehouse.JSON, error)

// startWorker runs a worker of the tool page until the test ends or stop is
// called. stop returns the result of Run.
func startWorker(
	t *testing.T, server *httptest.Server, w client.Worker, fn stepHandler,
) (c *client.Client, stop func() error) {
	t.Helper()
	c, err := client.New(server.URL, "gth_work", client.WithRetries(3, time.Millisecond))
	must(t, err)
	w.Client, w.Tools, w.Handler, w.Logger = c, []string{"page"}, fn, slog.New(slog.NewTextHandler(io.Discard, nil))
	if w.Lease == 0 {
		w.Lease = 6 * time.Second // on a busy machine two heartbeats may be late
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Minute):
			return errors.New("the worker continues")
		}
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("told to stop, the worker ended with %v", err)
		}
	})
	return c, stop
}

func TestWorkerExecutesBatches(t *testing.T) {
	t.Parallel()
	b, server := newWorkbench(t)
	steps := make([]*benchStep, 30)
	for i := range steps {
		steps[i] = b.put(fmt.Sprint(i), gatehouse.JSON(fmt.Sprintf(`{"n":%d}`, i)))
	}
	var mu sync.Mutex
	now, most := 0, 0
	full := make(chan struct{})
	startWorker(t, server, client.Worker{Concurrency: 4},
		func(ctx context.Context, s *gatehouse.LeasedStep) (gatehouse.JSON, error) {
			mu.Lock()
			if now++; now > most {
				if most = now; most == 4 {
					close(full)
				}
			}
			mu.Unlock()
			<-full // the first four wait for each other
			mu.Lock()
			now--
			mu.Unlock()
			return s.Step.Input, nil
		})
	for _, s := range steps {
		b.waitFor(t, s, gatehouse.StepSucceeded)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, s := range steps {
		if s.Output != s.Input || s.Attempts != 1 {
			t.Errorf("step %d: %s after %d attempts", i, s.Output, s.Attempts)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if most != 4 || b.most > 4 || b.batch != 4 {
		t.Errorf("%d handlers at a time, %d leases, %d in one request", most, b.most, b.batch)
	}
}

func TestWorkerReportsAStep(t *testing.T) {
	t.Parallel()
	b, server := newWorkbench(t)
	var c *client.Client
	ready := make(chan struct{})
	c, _ = startWorker(t, server, client.Worker{Concurrency: 10},
		func(ctx context.Context, s *gatehouse.LeasedStep) (gatehouse.JSON, error) {
			<-ready
			switch s.Step.Key {
			case "again":
				if s.Step.Attempts == 1 {
					return "", fmt.Errorf("outer: %w", client.Retryable(errors.New("busy")))
				}
			case "final":
				return "", errors.New(strings.Repeat("é", gatehouse.MaxNotesBytes))
			case "silent":
				return "", errors.New("")
			case "panics":
				panic("secret")
			case "parked":
				_, err := c.ProposeStep(ctx, s.Step.ID,
					gatehouse.StepProposal{Generation: s.Lease.Generation, Action: testAction().Proposal})
				return "", errors.Join(err, client.ErrParked)
			}
			return `{"ok":true}`, nil
		})
	close(ready)
	good, again, final, silent := b.put("good", ""), b.put("again", ""), b.put("final", ""), b.put("silent", "")
	panics, parked := b.put("panics", ""), b.put("parked", "")
	for _, s := range []*benchStep{good, again} {
		b.waitFor(t, s, gatehouse.StepSucceeded)
	}
	for _, s := range []*benchStep{final, silent, panics} {
		b.waitFor(t, s, gatehouse.StepFailed)
	}
	b.waitFor(t, parked, gatehouse.StepWaitingApproval)
	last := b.put("last", "")
	b.waitFor(t, last, gatehouse.StepSucceeded) // the panic did not end the worker
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := again.failures; len(f) != 1 || !f[0].Retryable || f[0].Detail != "outer: busy" || again.Attempts != 2 {
		t.Errorf("again: %+v", f)
	}
	if f := final.failures; len(f) != 1 || f[0].Retryable || f[0].Code != "handler_failed" ||
		!strings.HasPrefix(f[0].Detail, "éé") {
		t.Errorf("final: %.200v", f)
	}
	if f := panics.failures; len(f) != 1 || f[0].Retryable || f[0].Code != "handler_panicked" ||
		strings.Contains(f[0].Detail, "secret") {
		t.Errorf("panics: %+v", f)
	}
	if !parked.proposed || len(parked.failures) != 0 || parked.refused != 0 {
		t.Errorf("parked: %+v, %d refusals", parked.failures, parked.refused)
	}
}

// TestWorkerKeepsItsLeases works longer than a lease lasts.
func TestWorkerKeepsItsLeases(t *testing.T) {
	t.Parallel()
	b, server := newWorkbench(t)
	enough := make(chan struct{})
	s := b.put("long", "")
	startWorker(t, server, client.Worker{}, func(ctx context.Context, _ *gatehouse.LeasedStep) (gatehouse.JSON, error) {
		select {
		case <-enough:
			return "true", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	b.until(t, "heartbeats", func() bool { return s.heartbeats >= 4 })
	close(enough)
	b.waitFor(t, s, gatehouse.StepSucceeded)
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.Attempts != 1 || s.refused != 0 {
		t.Errorf("%d attempts, %d refusals", s.Attempts, s.refused)
	}
}

// TestWorkerStopsHandlers ends the contexts of handlers for each reason and
// checks what is reported.
func TestWorkerStopsHandlers(t *testing.T) {
	t.Parallel()
	b, server := newWorkbench(t)
	entered, causes := make(chan struct{}, 1), make(chan error, 1)
	_, stop := startWorker(t, server, client.Worker{Grace: 10 * time.Millisecond},
		func(ctx context.Context, s *gatehouse.LeasedStep) (gatehouse.JSON, error) {
			entered <- struct{}{}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			if s.Step.Key == "canceled" {
				return "", client.Retryable(ctx.Err())
			}
			return "", ctx.Err()
		})
	want := func(cause error) {
		t.Helper()
		select {
		case got := <-causes:
			if !errors.Is(got, cause) {
				t.Errorf("the handler was told %v, want %v", got, cause)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the handler was not told: %v", cause)
		}
	}

	canceled := b.put("canceled", "")
	<-entered
	b.do(func() { canceled.cancel = true })
	want(client.ErrCanceled)
	b.waitFor(t, canceled, gatehouse.StepFailed)
	b.do(func() {
		if f := canceled.failures; len(f) != 1 || f[0].Retryable || f[0].Code != "canceled" {
			t.Errorf("canceled: %+v", f)
		}
	})

	lost := b.put("lost", "")
	<-entered
	b.do(func() { lost.Generation++ })
	want(client.ErrLeaseLost)

	cut := b.put("cut", "")
	<-entered // the worker is done with the lost step
	b.do(func() {
		if lost.refused != 1 || len(lost.failures) != 0 {
			t.Errorf("lost: %d calls met lease_lost, want the heartbeat alone", lost.refused)
		}
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
	want(client.ErrStopping)
	b.do(func() {
		if f := cut.failures; len(f) != 1 || !f[0].Retryable || f[0].Code != "worker_stopped" {
			t.Errorf("cut off: %+v", f)
		}
	})
}

// TestWorkerLetsHandlersFinish stops a worker before its handler ends.
func TestWorkerLetsHandlersFinish(t *testing.T) {
	t.Parallel()
	b, server := newWorkbench(t)
	s := b.put("last", "")
	entered, finish, cause := make(chan struct{}), make(chan struct{}), error(nil)
	_, stop := startWorker(t, server, client.Worker{Concurrency: 2},
		func(ctx context.Context, _ *gatehouse.LeasedStep) (gatehouse.JSON, error) {
			close(entered)
			<-finish
			cause = context.Cause(ctx)
			return "true", nil
		})
	<-entered
	b.until(t, "the worker to ask for another step", func() bool { return b.asking == 1 })
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	b.until(t, "the worker to stop asking", func() bool { return b.asking == 0 })
	time.AfterFunc(50*time.Millisecond, func() { close(finish) }) // in which the handler could be told
	if err := <-ended; err != nil || cause != nil {
		t.Errorf("Run returned %v; the handler's context ended with %v", err, cause)
	}
	b.do(func() {
		if s.Status != gatehouse.StepSucceeded {
			t.Errorf("the step is %s", s.Status)
		}
	})
}

// TestWorkerReportsOverABrokenConnection loses the answer to a report that took
// effect: the retry is the same request.
func TestWorkerReportsOverABrokenConnection(t *testing.T) {
	t.Parallel()
	b, server := newWorkbench(t)
	b.lose = "/steps/stp_once/complete"
	s := b.put("once", "")
	startWorker(t, server, client.Worker{},
		func(context.Context, *gatehouse.LeasedStep) (gatehouse.JSON, error) { return "true", nil })
	b.waitFor(t, s, gatehouse.StepSucceeded)
	b.waitFor(t, b.put("next", ""), gatehouse.StepSucceeded) // the worker is done with the first
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.refused != 0 || s.Attempts != 1 || b.lose != "" {
		t.Errorf("%d refusals, %d attempts", s.refused, s.Attempts)
	}
}

// TestWorkerAsksAgain loses the answer to the first request for leases.
func TestWorkerAsksAgain(t *testing.T) {
	t.Parallel()
	b, server := newWorkbench(t)
	b.lose = "/steps/lease"
	s := b.put("first", "")
	startWorker(t, server, client.Worker{},
		func(context.Context, *gatehouse.LeasedStep) (gatehouse.JSON, error) { return "true", nil })
	b.waitFor(t, s, gatehouse.StepSucceeded)
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.Attempts != 2 {
		t.Errorf("%d attempts, want the lost lease's and another", s.Attempts)
	}
}

func TestWorkerEndsWhenItIsRefused(t *testing.T) {
	t.Parallel()
	_, server := newWorkbench(t)
	nop := func(context.Context, *gatehouse.LeasedStep) (gatehouse.JSON, error) { return "", nil }
	for key, code := range map[string]gatehouse.Code{"gth_nobody": gatehouse.CodeUnauthenticated,
		"gth_ana": gatehouse.CodeRoleRequired} {
		c, err := client.New(server.URL, key)
		must(t, err)
		if err := (client.Worker{Client: c, Tools: []string{"page"}, Handler: nop}).Run(t.Context()); gatehouse.CodeOf(
			err) != code {
			t.Errorf("%s: %v", key, err)
		}
	}
	c, err := client.New(server.URL, "gth_work")
	must(t, err)
	for name, w := range map[string]client.Worker{
		"no client": {Tools: []string{"page"}, Handler: nop}, "no tools": {Client: c, Handler: nop},
		"no handler": {Client: c, Tools: []string{"page"}},
		"too many":   {Client: c, Tools: []string{"page"}, Handler: nop, Concurrency: gatehouse.MaxLeasedSteps + 1},
		"no name":    {Client: c, Tools: []string{"no name"}, Handler: nop},
	} {
		if err := w.Run(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if client.Retryable(nil) != nil {
		t.Error("nil became an error")
	}
}
