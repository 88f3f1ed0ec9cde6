package runs

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// ExecuteOptions configures the execution of steps that were leased together.
type ExecuteOptions struct {
	// Worker is the name of the lease's holder.
	Worker string
	// InlineLimit is the limit of ExecuteChain.
	InlineLimit int
	// Storing is called once per step, before its outcome is stored, or at the latest when the
	// step is done. Done is called after that, when the step is closed or waits. err is nil if
	// it succeeded. Neither may block.
	Storing func(*gatehouse.Step)
	Done    func(*gatehouse.Step, error)
}

// ExecuteAll executes steps that a worker of this process leased together, concurrently, and
// returns when all are done. Steps that only compute a value are stored as one batch, if the
// store prefers that. The batch does not wait for the other steps.
func (r *Runs) ExecuteAll(ctx context.Context, steps []*gatehouse.Step, how ExecuteOptions) {
	c := &stepBatch{}
	if g, ok := r.Store.(gatehouse.Announcer); ok && len(steps) > 1 {
		c.store = g
		c.undecided.Add(len(steps))
	}
	var all sync.WaitGroup
	for _, s := range steps {
		m := &batched{stepBatch: c, storing: func() { how.Storing(s) }}
		all.Go(func() {
			err := r.executeWith(ctx, s, how.Worker, how.InlineLimit, m)
			m.leave()
			m.notifyStoring()
			how.Done(s, err)
		})
	}
	all.Wait()
}

// stepBatch is a set of steps that were leased together.
type stepBatch struct {
	store gatehouse.Announcer // nil when batching gains nothing
	// undecided counts the steps that may still join the batch, coming the steps that
	// have joined.
	undecided sync.WaitGroup
	joined    atomic.Int64
	announce  sync.Once
	together  func(context.Context) context.Context
}

// batched is one step of a stepBatch; nil for a step that is executed by itself.
type batched struct {
	*stepBatch
	storing      func()
	left, stored bool
}

// leave removes the step from the batch, which no longer waits for it.
func (m *batched) leave() {
	if m == nil || m.left {
		return
	}
	m.left = true
	if m.store != nil {
		m.undecided.Done()
	}
}

// notifyStoring calls Storing, once.
func (m *batched) notifyStoring() {
	if m != nil && !m.stored {
		m.stored = true
		m.storing()
	}
}

// join waits until every other step of the batch has left or joined. A step does either after it
// has evaluated its expressions. join returns the context for the Update that must follow.
func (m *batched) join(ctx context.Context) context.Context {
	if m == nil || m.left || m.store == nil {
		return ctx
	}
	m.joined.Add(1)
	m.leave()
	m.undecided.Wait()
	m.announce.Do(func() { m.together = m.store.Announce(int(m.joined.Load())) })
	return m.together(ctx)
}

// onlyStores reports whether the only work left for the step is to store its outcome.
func (w *work) onlyStores() bool {
	return w.skip || w.spec.Kind == workflow.KindTransform && !w.fanOut && w.spec.IdempotencyKey == nil &&
		len(w.with) <= gatehouse.MaxStepOutput
}
