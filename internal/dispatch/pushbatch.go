package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// linger is how long the first member of a pushBatch waits for the others.
const linger = time.Millisecond

// pushBatch lets pushes of one claim write their intents, or their outcomes, together, for a
// store that prefers that. The first member waits briefly for the others; a later member writes
// alone. With a nil pushBatch, every job writes alone.
type pushBatch struct {
	store   gatehouse.Announcer
	linger  time.Duration
	mu      sync.Mutex
	coming  int
	waiting []chan func(context.Context) context.Context
	gone    bool
}

// join waits for the other members and returns the context for the write, which must follow.
func (w *pushBatch) join(ctx context.Context) context.Context {
	if w == nil {
		return ctx
	}
	w.mu.Lock()
	w.coming--
	if w.gone {
		w.mu.Unlock()
		return ctx
	}
	called := make(chan func(context.Context) context.Context, 1)
	w.waiting = append(w.waiting, called)
	switch {
	case w.coming == 0:
		w.release()
	case len(w.waiting) == 1:
		time.AfterFunc(w.linger, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.release()
		})
	}
	w.mu.Unlock()
	return (<-called)(ctx)
}

// leave removes a member that will not write.
func (w *pushBatch) leave() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.coming--; w.coming == 0 {
		w.release()
	}
}

// release releases the waiting members. The pushBatch is locked.
func (w *pushBatch) release() {
	if w.gone {
		return
	}
	w.gone = true
	together := w.store.Announce(len(w.waiting))
	for _, called := range w.waiting {
		called <- together
	}
	w.waiting = nil
}

// formBatches forms batches from the jobs of a claim that read nothing before their intent.
func (d *Dispatcher) formBatches(jobs []*job) {
	if d.announcer == nil || len(jobs) < 2 {
		return
	}
	intents, outcomes := &pushBatch{store: d.announcer, linger: d.linger}, &pushBatch{store: d.announcer, linger: d.linger}
	for _, j := range jobs {
		if j.first() {
			intents.coming++
			outcomes.coming++
			j.intents, j.outcomes = intents, outcomes
		}
	}
}

// join takes the job's place in one of its batches.
func (j *job) join(ctx context.Context, of **pushBatch) context.Context {
	w := *of
	*of = nil
	return w.join(ctx)
}

// leave gives up the job's places in its batches.
func (j *job) leave() {
	j.intents.leave()
	j.outcomes.leave()
	j.intents, j.outcomes = nil, nil
}

// freeSlot frees the slot of a job whose call is done, so that another push can use it while a
// remote store records the outcome. At most Workers outcomes are recorded that way; further jobs
// keep their slots until they are done.
func (j *job) freeSlot() {
	if j.announcer == nil || j.recorded {
		return
	}
	select {
	case j.recording <- struct{}{}:
		j.recorded = true
		<-j.slots
	default:
	}
}
