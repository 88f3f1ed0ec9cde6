package gate

import (
	"context"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Recent caches reads of slow targets for open pages: equal reads within a short time share one
// result, and few run at a time.
type Recent[T any] struct {
	// Serves is how long a result is shared, Patience how long a caller waits for it, including
	// the time in the queue.
	Serves, Patience time.Duration
	// Slots is the number of concurrent reads for one group. A read that takes too long keeps
	// its slot until it ends.
	Slots int

	mu     sync.Mutex
	of     map[string]*sharedRead[T]
	groups map[string]chan struct{}
}

// sharedRead is one read, in progress or finished.
type sharedRead[T any] struct {
	done  chan struct{}
	at    time.Time
	value T
	err   error
}

// Get returns the recent result for a key and when it was read, or reads it.
func (r *Recent[T]) Get(
	ctx context.Context, group, key string, now func() time.Time, ask func(context.Context) (T, error),
) (value T, at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	r.mu.Lock()
	one := r.of[key]
	if one == nil || r.old(one, now()) {
		one = &sharedRead[T]{done: make(chan struct{})}
		r.put(group, key, one, now())
		// Later callers share the result, so the read outlives this request.
		go r.run(context.WithoutCancel(ctx), r.groups[group], one, now, ask)
	}
	r.mu.Unlock()
	select {
	case <-one.done:
		return one.value, one.at, one.err
	case <-ctx.Done():
		return value, at, gatehouse.E(gatehouse.CodeBusy, "the target did not answer in time")
	}
}

func (r *Recent[T]) old(one *sharedRead[T], now time.Time) bool {
	return !one.at.IsZero() && now.Sub(one.at) > r.Serves
}

// put adds a read, and drops old ones.
func (r *Recent[T]) put(group, key string, one *sharedRead[T], now time.Time) {
	if r.of == nil {
		r.of, r.groups = make(map[string]*sharedRead[T]), make(map[string]chan struct{})
	}
	for k, other := range r.of {
		if r.old(other, now) {
			delete(r.of, k)
		}
	}
	r.of[key] = one
	if r.groups[group] == nil {
		r.groups[group] = make(chan struct{}, r.Slots)
	}
}

func (r *Recent[T]) run(
	ctx context.Context, slots chan struct{}, one *sharedRead[T], now func() time.Time,
	ask func(context.Context) (T, error),
) {
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	var value T
	err := error(gatehouse.E(gatehouse.CodeBusy, "too many targets are being read"))
	select {
	case slots <- struct{}{}:
		value, err = ask(ctx)
		<-slots
	case <-ctx.Done():
	}
	r.mu.Lock()
	one.value, one.err, one.at = value, err, now()
	r.mu.Unlock()
	close(one.done)
}
