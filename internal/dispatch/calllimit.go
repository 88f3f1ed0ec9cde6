package dispatch

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// codeConcurrency is the error code of a push or a read that has no slot for its call.
const codeConcurrency = gatehouse.CodeConcurrency

const (
	// readWait is how long a read waits for a slot.
	readWait = 10 * time.Second
	// requeueAfter, plus requeueStep for each push in the queue, is when a push that was put back
	// becomes due again if no process makes it due earlier.
	requeueAfter = 30 * time.Second
	requeueStep  = 10 * time.Millisecond
	// maxQueue limits the pushes in the queue of a connector. Further pushes become due by time only.
	maxQueue = 10_000
)

// callLimits counts the running calls of each connector in this process. It holds the queue of the
// pushes and reads that wait for a slot: [Target.Concurrency] is the number of slots.
//
// A push never waits in a worker. The worker puts it back without an attempt and adds it to the
// queue, which is ordered by first due time. When a slot is free, the dispatcher makes the first
// push of the queue due. A read waits in its goroutine, and gets a slot before the pushes.
type callLimits struct {
	mu          sync.Mutex
	byConnector map[string]*connectorCalls
	// slotFree is called when a slot may be free for a push in the queue; nil for none.
	slotFree func()
}

type connectorCalls struct {
	running int
	reads   []chan struct{} // each is closed when its read gets a slot
	queue   []waitingPush
}

// waitingPush is a push that waits for a slot.
type waitingPush struct {
	due        time.Time
	tenant, id string
}

func waiting(p *gatehouse.Push) waitingPush {
	return waitingPush{due: p.FirstDue(), tenant: p.Tenant, id: p.ID}
}

func (w waitingPush) compare(other waitingPush) int {
	return cmp.Or(w.due.Compare(other.due), cmp.Compare(w.id, other.id))
}

// of returns the calls of a connector. The caller holds mu.
func (l *callLimits) of(name string) *connectorCalls {
	c := l.byConnector[name]
	if c == nil {
		if l.byConnector == nil {
			l.byConnector = make(map[string]*connectorCalls)
		}
		c = &connectorCalls{}
		l.byConnector[name] = c
	}
	return c
}

// acquire takes a slot for a push, and reports false if none is free. limit is the number of
// slots; 0 is no limit.
func (l *callLimits) acquire(name string, limit int, w waitingPush) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.of(name)
	if limit > 0 && c.running >= limit {
		return false
	}
	c.running++
	if at, found := slices.BinarySearchFunc(c.queue, w, waitingPush.compare); found {
		c.queue = slices.Delete(c.queue, at, at+1)
	}
	return true
}

// enqueue adds a push to the queue, once.
func (l *callLimits) enqueue(name string, limit int, w waitingPush) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.of(name)
	if at, found := slices.BinarySearchFunc(c.queue, w, waitingPush.compare); !found && len(c.queue) < maxQueue {
		c.queue = slices.Insert(c.queue, at, w)
	}
	l.notify(c.running < limit)
}

// queued returns how many pushes are in the queue.
func (l *callLimits) queued(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.of(name).queue)
}

// acquireForRead waits for a slot and takes it. It reports false if ctx ends earlier.
func (l *callLimits) acquireForRead(ctx context.Context, name string, limit int) bool {
	l.mu.Lock()
	c := l.of(name)
	if limit == 0 || c.running < limit {
		c.running++
		l.mu.Unlock()
		return true
	}
	granted := make(chan struct{})
	c.reads = append(c.reads, granted)
	l.mu.Unlock()
	select {
	case <-granted:
		return true
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(c.reads, granted); at >= 0 {
		c.reads = slices.Delete(c.reads, at, at+1)
		return false
	}
	return true // release gave the read a slot at the same time
}

// release frees a slot, and gives it to the read that has waited longest. If pushes are in the queue,
// it calls slotFree.
func (l *callLimits) release(name string, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.of(name)
	c.running--
	for len(c.reads) > 0 && (limit == 0 || c.running < limit) {
		c.running++
		close(c.reads[0])
		c.reads = c.reads[1:]
	}
	l.notify(len(c.queue) > 0)
}

// onSlotFree sets slotFree.
func (l *callLimits) onSlotFree(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slotFree = fn
}

// notify calls slotFree if free is true. The caller holds mu.
func (l *callLimits) notify(free bool) {
	if free && l.slotFree != nil {
		l.slotFree()
	}
}

// dequeue removes as many pushes from each queue as the connector has free slots, and returns them.
// limit returns the number of slots of a connector.
func (l *callLimits) dequeue(limit func(name string) int) []waitingPush {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []waitingPush
	for name, c := range l.byConnector {
		n := len(c.queue)
		if slots := limit(name); slots > 0 {
			n = min(n, max(slots-c.running, 0))
		}
		out = append(out, c.queue[:n]...)
		c.queue = slices.Delete(c.queue, 0, n)
	}
	return out
}

// putInQueue puts the push back without an attempt, and adds it to the queue of its connector.
func (j *job) putInQueue(ctx context.Context, limit int) (outcome string, err error) {
	name := j.push.Connector
	wait := requeueAfter + time.Duration(j.targets.callLimits.queued(name))*requeueStep
	outcome, err = j.putBack(ctx, wait, codeConcurrency,
		"waits for a free slot: the connector is at its limit of concurrent calls")
	if err == nil {
		j.targets.callLimits.enqueue(name, limit, waiting(j.push))
	}
	return outcome, err
}

// makeDue takes as many pushes from the queues as slots are free, makes them due, and returns how many.
// A push for which this fails becomes due by time: see requeueAfter.
func (d *Dispatcher) makeDue(ctx context.Context) (n int) {
	for _, w := range d.targets.callLimits.dequeue(d.targets.Concurrency) {
		err := d.store.Update(ctx, w.tenant, func(tx gatehouse.Tx) error {
			p, err := tx.LockPush(w.id)
			if err != nil || p.Status != gatehouse.PushQueued || p.ErrorCode != codeConcurrency {
				return err
			}
			now := tx.Now()
			p.NextAttempt = &now
			n++ // too high if the transaction runs again
			return tx.UpdatePush(p, gatehouse.PushQueued, p.Generation)
		})
		if err != nil && ctx.Err() == nil {
			d.log.WarnContext(ctx, "a push with a free slot was not made due", "push", w.id, "error", err)
		}
	}
	return n
}
