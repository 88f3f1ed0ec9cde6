package engine

import (
	"context"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// linger is how long the first of a wave waits for the others.
const linger = time.Millisecond

// wave is pushes of one claim that take the same step at about the same time,
// the intent or the outcome, where the store would rather have them at once.
// Whoever comes first waits for the others for a moment; whoever comes later
// than that goes alone. A nil wave is of those who go alone anyway.
type wave struct {
	store   gatehouse.Gathering
	linger  time.Duration
	mu      sync.Mutex
	coming  int
	waiting []chan func(context.Context) context.Context
	gone    bool
}

// join waits for the others, and returns the context to take the step with,
// which has to be taken then.
func (w *wave) join(ctx context.Context) context.Context {
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
		w.call()
	case len(w.waiting) == 1:
		time.AfterFunc(w.linger, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.call()
		})
	}
	w.mu.Unlock()
	return (<-called)(ctx)
}

// leave tells that one does not take the step.
func (w *wave) leave() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.coming--; w.coming == 0 {
		w.call()
	}
}

// call lets those who wait go on. The wave is locked.
func (w *wave) call() {
	if w.gone {
		return
	}
	w.gone = true
	together := w.store.Together(len(w.waiting))
	for _, called := range w.waiting {
		called <- together
	}
	w.waiting = nil
}

// gather makes waves of those jobs of a claim that come to their intent at once.
func (d *Dispatcher) gather(jobs []*job) {
	if d.gathering == nil || len(jobs) < 2 {
		return
	}
	intents, outcomes := &wave{store: d.gathering, linger: d.linger}, &wave{store: d.gathering, linger: d.linger}
	for _, j := range jobs {
		if j.first() {
			intents.coming++
			outcomes.coming++
			j.intents, j.outcomes = intents, outcomes
		}
	}
}

// join takes the job's place in a wave of its own.
func (j *job) join(ctx context.Context, of **wave) context.Context {
	w := *of
	*of = nil
	return w.join(ctx)
}

// leave gives the job's places in waves up.
func (j *job) leave() {
	j.intents.leave()
	j.outcomes.leave()
	j.intents, j.outcomes = nil, nil
}

// called frees the slot of a job that is done with its target, where others can
// use it while the outcome is on its way to a store that is far away. As many
// may be recording as may call; those beyond keep their slots until they are done.
func (j *job) called() {
	if j.gathering == nil || j.recorded {
		return
	}
	select {
	case j.recording <- struct{}{}:
		j.recorded = true
		j.free(1)
	default:
	}
}
