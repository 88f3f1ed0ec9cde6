package gate

import (
	"context"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// ReadCache caches reads of slow targets for open pages: equal reads within a short time share one
// result, and few run at a time.
type ReadCache[T any] struct {
	// MaxAge is how long a result is shared, Timeout how long a caller waits for it, including
	// the time in the queue.
	MaxAge, Timeout time.Duration
	// Slots is the number of concurrent reads for one group. A read that takes too long keeps
	// its slot until it ends.
	Slots int

	mu     sync.Mutex
	reads  map[string]*sharedRead[T]
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
func (r *ReadCache[T]) Get(
	ctx context.Context, group, key string, now func() time.Time, ask func(context.Context) (T, error),
) (value T, at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	r.mu.Lock()
	read := r.reads[key]
	if read == nil || r.expired(read, now()) {
		read = &sharedRead[T]{done: make(chan struct{})}
		r.put(group, key, read, now())
		// Later callers share the result, so the read outlives this request.
		go r.run(context.WithoutCancel(ctx), r.groups[group], read, now, ask)
	}
	r.mu.Unlock()
	select {
	case <-read.done:
		return read.value, read.at, read.err
	case <-ctx.Done():
		return value, at, gatehouse.E(gatehouse.CodeBusy, "the target did not answer in time")
	}
}

func (r *ReadCache[T]) expired(read *sharedRead[T], now time.Time) bool {
	return !read.at.IsZero() && now.Sub(read.at) > r.MaxAge
}

// put adds a read, and drops old ones.
func (r *ReadCache[T]) put(group, key string, read *sharedRead[T], now time.Time) {
	if r.reads == nil {
		r.reads, r.groups = make(map[string]*sharedRead[T]), make(map[string]chan struct{})
	}
	for k, other := range r.reads {
		if r.expired(other, now) {
			delete(r.reads, k)
		}
	}
	r.reads[key] = read
	if r.groups[group] == nil {
		r.groups[group] = make(chan struct{}, r.Slots)
	}
}

func (r *ReadCache[T]) run(
	ctx context.Context, slots chan struct{}, read *sharedRead[T], now func() time.Time,
	ask func(context.Context) (T, error),
) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
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
	read.value, read.err, read.at = value, err, now()
	r.mu.Unlock()
	close(read.done)
}
