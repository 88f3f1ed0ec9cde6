package dispatch

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// codeConcurrency is the error code of a push, or of a read, that waits for other calls of its
// connector to end.
const codeConcurrency = gatehouse.CodeConcurrency

const (
	// readWait is how long a read waits for a place.
	readWait = 10 * time.Second
	// recallAfter is when a push that was put back is due again, even if no process calls it up, plus
	// recallStep for each push in line.
	recallAfter = 30 * time.Second
	recallStep  = 10 * time.Millisecond
	// maxLine limits the pushes that one line remembers. Others come back by themselves.
	maxLine = 10_000
)

// bounds counts the calls of each connector that are under way in this process, and holds the
// pushes and reads that wait for a place below [Target.Concurrency].
//
// A push never waits in a worker. It is put back without an attempt, and stands in line, by the
// time at which it was first due; when a place is free, the dispatcher makes the next one due
// again. A read waits where it is, and comes before the pushes.
type bounds struct {
	mu sync.Mutex
	by map[string]*bound
	// freed is called when a place is free and a push stands in line; nil for none.
	freed func()
}

type bound struct {
	running int
	reads   []chan struct{}
	line    []inLine
}

// inLine is a push that waits for a place.
type inLine struct {
	due        time.Time
	tenant, id string
}

func inLineOf(p *gatehouse.Push) inLine { return inLine{due: p.FirstDue(), tenant: p.Tenant, id: p.ID} }

func (w inLine) compare(other inLine) int {
	return cmp.Or(w.due.Compare(other.due), cmp.Compare(w.id, other.id))
}

// of returns the bound of a connector. The caller holds mu.
func (b *bounds) of(name string) *bound {
	x := b.by[name]
	if x == nil {
		if b.by == nil {
			b.by = make(map[string]*bound)
		}
		x = &bound{}
		b.by[name] = x
	}
	return x
}

// enter takes a place for a push, if fewer than most calls are under way; 0 is no limit.
func (b *bounds) enter(name string, most int, w inLine) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.of(name)
	if most > 0 && x.running >= most {
		return false
	}
	x.running++
	if at, found := slices.BinarySearchFunc(x.line, w, inLine.compare); found {
		x.line = slices.Delete(x.line, at, at+1)
	}
	return true
}

// stand puts a push in line, once.
func (b *bounds) stand(name string, most int, w inLine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.of(name)
	if at, found := slices.BinarySearchFunc(x.line, w, inLine.compare); !found && len(x.line) < maxLine {
		x.line = slices.Insert(x.line, at, w)
	}
	b.hint(x.running < most)
}

// length returns how many pushes stand in line.
func (b *bounds) length(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.of(name).line)
}

// wait takes a place for a read, as soon as there is one; false when ctx ends before.
func (b *bounds) wait(ctx context.Context, name string, most int) bool {
	b.mu.Lock()
	x := b.of(name)
	if most == 0 || x.running < most {
		x.running++
		b.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	x.reads = append(x.reads, turn)
	b.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(x.reads, turn); at >= 0 {
		x.reads = slices.Delete(x.reads, at, at+1)
		return false
	}
	return true // the place was given at the same time
}

// leave frees a place, for the read that has waited longest, else for a push.
func (b *bounds) leave(name string, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.of(name)
	x.running--
	for len(x.reads) > 0 && (most == 0 || x.running < most) {
		x.running++
		close(x.reads[0])
		x.reads = x.reads[1:]
	}
	b.hint(len(x.line) > 0)
}

// onFreed sets freed.
func (b *bounds) onFreed(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freed = fn
}

// hint is called with mu held.
func (b *bounds) hint(free bool) {
	if free && b.freed != nil {
		b.freed()
	}
}

// next removes the pushes from the lines for which there are places. most is the limit of a
// connector.
func (b *bounds) next(most func(name string) int) []inLine {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []inLine
	for name, x := range b.by {
		n := len(x.line)
		if limit := most(name); limit > 0 {
			n = min(n, max(limit-x.running, 0))
		}
		out = append(out, x.line[:n]...)
		x.line = slices.Delete(x.line, 0, n)
	}
	return out
}

// Concurrency returns how many calls of a connector may be under way in this process; 0 is no
// limit.
func (r *Registry) Concurrency(name string) int { return r.snapshot().targets[name].Concurrency }

// begin is call for a read outside of a push: it waits for a place. done frees the place.
func (r *Registry) begin(ctx context.Context, tenant, name string) (done func(), failure *connector.Error) {
	if failure := r.call(tenant, name); failure != nil {
		return nil, failure
	}
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	if !r.bounds.wait(ctx, name, r.Concurrency(name)) {
		return nil, &connector.Error{
			Kind: connector.NotSent, Code: codeConcurrency,
			Detail: "other calls of this connector were under way for too long",
		}
	}
	return func() { r.bounds.leave(name, r.Concurrency(name)) }, nil
}

// standInLine puts the push back until there is a place for a call.
func (j *job) standInLine(ctx context.Context, most int) (outcome string, err error) {
	name := j.push.Connector
	wait := recallAfter + time.Duration(j.targets.bounds.length(name))*recallStep
	outcome, err = j.putBack(ctx, wait, codeConcurrency, "waits until fewer calls of this connector are under way")
	if err == nil {
		j.targets.bounds.stand(name, most, inLineOf(j.push))
	}
	return outcome, err
}

// callUp makes pushes due again for which there are places now, and returns how many. A failure
// costs time only: each push comes back by itself.
func (d *Dispatcher) callUp(ctx context.Context) (n int) {
	for _, w := range d.targets.bounds.next(d.targets.Concurrency) {
		err := d.store.Update(ctx, w.tenant, func(tx gatehouse.Tx) error {
			p, err := tx.LockPush(w.id)
			if err != nil || p.Status != gatehouse.PushQueued || p.ErrorCode != codeConcurrency {
				return err
			}
			now := tx.Now()
			p.NextAttempt = &now
			n++ // at least: a transaction may run again
			return tx.UpdatePush(p, gatehouse.PushQueued, p.Generation)
		})
		if err != nil && ctx.Err() == nil {
			d.log.WarnContext(ctx, "a push that may be sent now was not made due", "push", w.id, "error", err)
		}
	}
	return n
}
