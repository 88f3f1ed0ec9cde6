package app

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// Carrying is how steps that were leased at once are carried out.
type Carrying struct {
	Worker string
	// Onward is as for CarryOn.
	Onward int
	// Storing is called once for each step, when all that is left to do for it is
	// to store what it came to, or else when it is done; Done after that, when it is
	// closed or waits, with what went wrong. Neither may block.
	Storing func(*gatehouse.Step)
	Done    func(*gatehouse.Step, error)
}

// CarryAll carries out steps that a worker of this process leased at once, side
// by side, and returns when all are done. Those that come to a value without
// looking at anything are handed to the store together, where it would rather
// have them so; the others keep nobody waiting.
func (r *Runs) CarryAll(ctx context.Context, steps []*gatehouse.Step, how Carrying) {
	c := &company{}
	if g, ok := r.gate.store.(gatehouse.Gathering); ok && len(steps) > 1 {
		c.store = g
		c.looking.Add(len(steps))
	}
	var all sync.WaitGroup
	for _, s := range steps {
		m := &mate{company: c, storing: func() { how.Storing(s) }}
		all.Go(func() {
			err := r.carryWith(ctx, s, how.Worker, how.Onward, m)
			m.leave()
			m.stores()
			how.Done(s, err)
		})
	}
	all.Wait()
}

// company is steps that were leased at once.
type company struct {
	store gatehouse.Gathering // nil where they gain nothing by it
	// looking are those of which it does not show yet whether they come along, and
	// coming counts those that do.
	looking  sync.WaitGroup
	coming   atomic.Int64
	announce sync.Once
	together func(context.Context) context.Context
}

// mate is one of a company; nil is a step that is carried out by itself.
type mate struct {
	*company
	storing      func()
	left, stored bool
}

// leave tells the others that the step does not come along.
func (m *mate) leave() {
	if m == nil || m.left {
		return
	}
	m.left = true
	if m.store != nil {
		m.looking.Done()
	}
}

// stores tells that the step's outcome is about to be stored.
func (m *mate) stores() {
	if m != nil && !m.stored {
		m.stored = true
		m.storing()
	}
}

// join waits until the others have left or joined too, which each does as soon
// as it has evaluated its expressions, and returns the context of the Update that
// has to follow.
func (m *mate) join(ctx context.Context) context.Context {
	if m == nil || m.left || m.store == nil {
		return ctx
	}
	m.coming.Add(1)
	m.leave()
	m.looking.Wait()
	m.announce.Do(func() { m.together = m.store.Together(int(m.coming.Load())) })
	return m.together(ctx)
}

// comesAlong reports whether nothing is left to do for a step but to store what
// it comes to, without having looked at anything.
func (w *work) comesAlong() bool {
	return w.skip || w.spec.Kind == workflow.KindTransform && !w.fanOut && w.spec.IdempotencyKey == nil && len(w.with) <= MaxStepOutput
}
