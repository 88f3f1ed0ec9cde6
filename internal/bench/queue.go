package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Queue is a job queue that is compared with the gate's pushes.
type Queue interface {
	// Is describes the queue for the table.
	Is() string
	// Store stores n jobs that do nothing. Its time is not measured.
	Store(ctx context.Context, n int) error
	// Carry processes n stored jobs and returns the duration, from the first poll until the last
	// job is known to be done.
	Carry(ctx context.Context, n int) (time.Duration, error)
	Close() error
}

// queue opens the baseline of dispatch.
func (r *runner) queue(ctx context.Context, in databases) (Queue, error) {
	if r.Queue != nil {
		return r.Queue(ctx, in.place(Setup{}))
	}
	c, err := in.claims(ctx)
	if err != nil {
		return nil, err
	}
	return &bareQueue{claims: c, workers: r.workers(), how: r.base.how()}, nil
}

// bareQueue is the barest queue: leases in batches, intent and completion, with as many writes as the
// gate.
type bareQueue struct {
	claims  claimer
	workers int
	how     string
	waiting []string
}

func (s *bareQueue) Is() string { return "bare lease, intent and completion, as many writes, " + s.how }

func (s *bareQueue) Store(_ context.Context, n int) (err error) {
	s.waiting, err = s.claims.approved(n)
	return err
}

func (s *bareQueue) Close() error { return s.claims.close() }

// Carry leases in batches and completes the jobs with as many workers as the gate has.
func (s *bareQueue) Carry(ctx context.Context, n int) (time.Duration, error) {
	slots := make(chan struct{}, s.workers)
	var failure atomic.Pointer[error]
	fail := func(err error) {
		if err != nil {
			failure.CompareAndSwap(nil, &err)
		}
	}
	var wg sync.WaitGroup
	start := time.Now()
	for rest := s.waiting[:n]; len(rest) > 0 && ctx.Err() == nil && failure.Load() == nil; {
		slots <- struct{}{}
		free := 1 + cap(slots) - len(slots)
		batch := rest[:min(free, len(rest))]
		rest = rest[len(batch):]
		for range len(batch) - 1 {
			slots <- struct{}{}
		}
		fail(s.claims.lease(batch))
		for _, id := range batch {
			wg.Go(func() {
				defer func() { <-slots }()
				fail(s.claims.intent(id))
				fail(s.claims.complete(id))
			})
		}
	}
	wg.Wait()
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return time.Since(start), ctx.Err()
}
