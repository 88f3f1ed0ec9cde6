package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// workbench is a worker service whose steps are ready as soon as they are put
// on it. It has leases with generations that expire, heartbeats that report
// cancellation, and stored answers by Idempotency-Key. The fake serves pushes.
type workbench struct {
	*fake
	mu      sync.Mutex
	steps   []*benchStep
	changed chan struct{} // closed and replaced at every change
	answers map[string]any
	most    int    // maximum number of steps that ran at the same time
	batch   int    // maximum number of steps that one request leased
	lose    string // path whose first request has its effect, and gets no answer
	half    string // path whose first request gets half an answer, and has no effect
	hang    string // path whose first request gets no answer until released is closed, and has no effect
	asking  int    // requests for leases under way

	released chan struct{}
}

// benchStep is a step and the reports about it.
type benchStep struct {
	gatehouse.Step
	cancel     bool
	heartbeats int
	refused    int // calls that got lease_lost
	failures   []gatehouse.StepFailure
	proposed   bool
}

func newWorkbench(t *testing.T) (*workbench, *httptest.Server) {
	t.Helper()
	b := &workbench{fake: newFake(), changed: make(chan struct{}), answers: make(map[string]any),
		released: make(chan struct{})}
	s := newServer(t, b.fake, func(c *Config) { c.Workers, c.Lookup = b, anything{} })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case b.first(&b.half, r.URL.Path):
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"cancel": `))
			return
		case b.first(&b.hang, r.URL.Path):
			select {
			case <-b.released:
			case <-r.Context().Done():
			}
			panic(http.ErrAbortHandler)
		case b.first(&b.lose, r.URL.Path):
			s.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return b, server
}

// first reports whether a request is the first one to a path of the bench, and clears that path.
func (b *workbench) first(kept *string, path string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if *kept == "" || path != Prefix+*kept {
		return false
	}
	*kept = ""
	return true
}

// anything reports that every id exists.
type anything struct{}

func (anything) Exists(context.Context, string, string) error { return nil }

func (anything) Resolve(_ context.Context, _, id string) (string, error) { return id, nil }

// put adds a ready step for the tool named page.
func (b *workbench) put(key string, input gatehouse.JSON) *benchStep {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &benchStep{Step: *testStep()}
	s.ID, s.Key, s.Status, s.Input, s.Attempts, s.Generation = "stp_"+key, key, gatehouse.StepReady, input, 0, 0
	s.IdempotencyKey = "run_1:" + key
	b.steps = append(b.steps, s)
	b.wake()
	return s
}

// wake wakes all waiters. The caller holds the lock.
func (b *workbench) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// do changes or reads the bench.
func (b *workbench) do(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn()
	b.wake()
}

// until waits for a condition on the bench.
func (b *workbench) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		b.mu.Lock()
		ok, changed := holds(), b.changed
		b.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// waitFor waits until a step has a status.
func (b *workbench) waitFor(t *testing.T, s *benchStep, status gatehouse.StepStatus) {
	t.Helper()
	b.until(t, fmt.Sprintf("%s to be %s", s.Key, status), func() bool { return s.Status == status })
}

func (b *workbench) LeaseSteps(ctx context.Context, r gatehouse.LeaseRequest) ([]gatehouse.LeasedStep, error) {
	b.do(func() { b.asking++ })
	defer b.do(func() { b.asking-- })
	limit := time.NewTimer(r.Wait.D())
	defer limit.Stop()
	expiry := time.NewTicker(50 * time.Millisecond)
	defer expiry.Stop()
	for {
		b.mu.Lock()
		leased, changed := b.lease(r), b.changed
		b.mu.Unlock()
		if len(leased) > 0 {
			return leased, nil
		}
		select {
		case <-changed:
		case <-expiry.C:
		case <-limit.C:
			return nil, nil
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (b *workbench) lease(r gatehouse.LeaseRequest) (out []gatehouse.LeasedStep) {
	now, running := time.Now(), 0
	for _, s := range b.steps {
		if s.Status == gatehouse.StepRunning && s.LeaseUntil.Before(now) {
			s.Status = gatehouse.StepReady
		}
		if s.Status == gatehouse.StepReady && len(out) < max(r.Max, 1) && r.Tools[0] == s.Tool {
			until := now.Add(r.Lease.D())
			s.Status, s.LeaseUntil = gatehouse.StepRunning, &until
			s.Generation++
			s.Attempts++
			shown := s.Step
			out = append(out,
				gatehouse.LeasedStep{Step: &shown, Lease: gatehouse.Lease{Generation: s.Generation, ExpiresAt: until}})
		}
		if s.Status == gatehouse.StepRunning {
			running++
		}
	}
	b.most, b.batch = max(b.most, running), max(b.batch, len(out))
	if len(out) > 0 {
		b.wake()
	}
	return out
}

// hold calls fn for the holder of a lease, once per Idempotency-Key.
func hold[T any](
	ctx context.Context, b *workbench, id string, generation int, fn func(*benchStep) T,
) (out T, err error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return out, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.wake()
	if c.Idempotency != nil {
		if known, ok := b.answers[c.Idempotency.Key]; ok {
			return known.(T), nil
		}
	}
	for _, s := range b.steps {
		if s.ID != id {
			continue
		}
		if s.Status != gatehouse.StepRunning || s.Generation != generation || s.LeaseUntil.Before(time.Now()) {
			s.refused++
			return out, gatehouse.E(gatehouse.CodeLeaseLost, "the lease of generation %d is over", generation)
		}
		out = fn(s)
		if c.Idempotency != nil {
			b.answers[c.Idempotency.Key] = out
		}
		return out, nil
	}
	return out, gatehouse.E(gatehouse.CodeNotFound, "no such step")
}

func (b *workbench) HeartbeatStep(
	ctx context.Context, id string, r gatehouse.Heartbeat,
) (*gatehouse.LeaseState, error) {
	return hold(ctx, b, id, r.Generation, func(s *benchStep) *gatehouse.LeaseState {
		until := time.Now().Add(r.Lease.D())
		s.LeaseUntil = &until
		s.heartbeats++
		return &gatehouse.LeaseState{Lease: gatehouse.Lease{Generation: s.Generation, ExpiresAt: until}, Cancel: s.cancel}
	})
}

func (b *workbench) CompleteStep(ctx context.Context, id string, r gatehouse.StepResult) (*gatehouse.Step, error) {
	return hold(ctx, b, id, r.Generation, func(s *benchStep) *gatehouse.Step {
		s.Status, s.Output = gatehouse.StepSucceeded, r.Output
		done := s.Step
		return &done
	})
}

func (b *workbench) FailStep(ctx context.Context, id string, r gatehouse.StepFailure) (*gatehouse.Step, error) {
	return hold(ctx, b, id, r.Generation, func(s *benchStep) *gatehouse.Step {
		s.failures = append(s.failures, r)
		s.Status = gatehouse.StepFailed
		if r.Retryable {
			s.Status = gatehouse.StepReady
		}
		done := s.Step
		return &done
	})
}

func (b *workbench) ProposeStep(ctx context.Context, id string, r gatehouse.StepProposal) (*gatehouse.Action, error) {
	return hold(ctx, b, id, r.Generation, func(s *benchStep) *gatehouse.Action {
		s.Status, s.proposed = gatehouse.StepWaitingApproval, true
		return testAction()
	})
}
