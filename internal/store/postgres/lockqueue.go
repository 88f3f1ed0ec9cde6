package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// shortLockWait is how long an Update first waits for a lock: far longer than healthy
// transactions hold locks, and far shorter than the usual lock_timeout.
const shortLockWait = 100 * time.Millisecond

// lockKey names something that one Update at a time locks or inserts.
type lockKey struct{ kind, tenant, id string }

// nameKind is the kind of a key that lockFor locks. Its holders finish soon, so an Update queues
// for such a key only after it was refused the lock.
const nameKind = "name"

func (a lockKey) compare(b lockKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.id, b.id))
}

// lockedKey returns the key of the first lock with a single key: a name, or a tenant and an id.
func lockedKey(locks []query) (lockKey, bool) {
	for _, q := range locks {
		if q.statement != nil {
			switch r := q.rows[0].(type) {
			case idRow:
				return lockKey{"id", r.Tenant, r.ID}, true
			case ceilingLock:
				return lockKey{kind: nameKind, id: strconv.FormatInt(r.Hash, 10)}, true
			}
			continue
		}
		switch len(q.args) {
		case 1:
			if name, ok := q.args[0].(int64); ok { // see lockFor
				return lockKey{kind: nameKind, id: strconv.FormatInt(name, 10)}, true
			}
		case 2:
			tenant, _ := q.args[0].(string)
			if id, ok := q.args[1].(string); ok {
				return lockKey{"id", tenant, id}, true
			}
		}
	}
	return lockKey{}, false
}

// lockQueue is where Updates that run alone wait for others that want the same keys. They hold
// neither a slot nor a connection.
type lockQueue struct {
	mu     sync.Mutex
	queues map[lockKey]keyQueue
	// stuck counts the waiters whose stuck is true.
	stuck atomic.Int64
}

// keyQueue is the holder of a key and the waiters behind it, in order of arrival.
type keyQueue struct {
	holder  *lockWaiter
	waiting []*lockWaiter
}

// lockWaiter is an Update's position in the queues of all its keys. It joins all of them at
// once, before it locks anything, so no two Updates wait for each other.
type lockWaiter struct {
	keys []lockKey
	// ahead counts the queues in which others are ahead. ready is closed when ahead falls to 0;
	// it is nil if nobody was ahead.
	ahead int
	ready chan struct{}
	// stuck says that the server refused the Update a lock.
	stuck bool
}

// enter joins the queues, and reports whether others are ahead.
func (l *lockQueue) enter(k *lockWaiter, keys []lockKey, stuck bool) (waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.keys = keys
	l.mark(k, stuck)
	for _, key := range keys {
		w, there := l.queues[key]
		switch {
		case !there:
			w.holder = k
		case w.holder == k || len(w.waiting) > 0 && w.waiting[len(w.waiting)-1] == k:
			continue // the key is listed twice
		default:
			w.waiting = append(w.waiting, k)
			k.ahead++
		}
		l.queues[key] = w
	}
	if k.ahead > 0 {
		k.ready = make(chan struct{})
	}
	return k.ahead > 0
}

// leave removes k from all queues, before or after its turn; k may be nil.
func (l *lockQueue) leave(k *lockWaiter) {
	if k == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark(k, false)
	for _, key := range k.keys {
		w := l.queues[key]
		switch {
		case w.holder != k:
			if i := slices.Index(w.waiting, k); i >= 0 {
				w.waiting = slices.Delete(w.waiting, i, i+1)
				l.queues[key] = w
			}
		case len(w.waiting) == 0:
			delete(l.queues, key)
		default:
			next := w.waiting[0]
			w.holder, w.waiting = next, slices.Delete(w.waiting, 0, 1)
			l.queues[key] = w
			if next.ahead--; next.ahead == 0 {
				close(next.ready)
			}
		}
	}
	k.keys = nil
}

// refuse notes that the server refused the waiter a lock.
func (l *lockQueue) refuse(k *lockWaiter) {
	if k == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark(k, true)
}

// mark is called with mu held.
func (l *lockQueue) mark(k *lockWaiter, stuck bool) {
	if stuck == k.stuck {
		return
	}
	k.stuck = stuck
	if stuck {
		l.stuck.Add(1)
	} else {
		l.stuck.Add(-1)
	}
}

// blocked reports whether the holder of one of these keys was refused a lock.
func (l *lockQueue) blocked(keys []lockKey) bool {
	if len(keys) == 0 || l.stuck.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(keys, func(key lockKey) bool {
		w := l.queues[key]
		return w.holder != nil && w.holder.stuck
	})
}

// runMode is how the next run of an Update proceeds.
type runMode struct {
	// alone keeps the Update out of groups.
	alone bool
	// longWait says that the Update was refused a lock. It waits in the lock queue as waiter, if
	// its keys are known, and then, in a long-wait slot, as long as the server's lock_timeout
	// allows.
	longWait bool
	keys     []lockKey
	waiter   *lockWaiter
	// slotReturned says that the Update returned its caller slot.
	slotReturned bool
}

// nextMode is the mode of the next run after err.
func (t *tx) nextMode(err error) runMode {
	c := t.mode
	switch {
	case errors.Is(err, errRunAlone):
		c.alone = true
	case isLockTimeout(err):
		c.alone, c.longWait = true, true
		if t.deniedKey == (lockKey{}) || slices.Contains(c.keys, t.deniedKey) {
			t.s.lockQueue.refuse(c.waiter)
			break
		}
		// The Update queues again, with the denied key added.
		t.s.lockQueue.leave(c.waiter)
		c.waiter, c.keys = nil, append(slices.Clone(c.keys), t.deniedKey)
	}
	return c
}

// isLockTimeout reports whether a lock was not available within lock_timeout.
func isLockTimeout(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "55P03"
}

// noteKeys notes the keys that an Update wants, as far as they are known at its first read.
func (t *tx) noteKeys(locks []query) {
	if t.mode.keys != nil {
		return
	}
	t.mode.keys = t.opening.keys
	if what, ok := lockedKey(locks); ok && len(t.opening.keys) == 0 && what.kind != nameKind {
		t.soleKey[0] = what
		t.mode.keys = t.soleKey[:]
	}
}

// waitForKeys waits until nobody is ahead of an Update that is about to run alone, and then, in a run with
// longWait, for a long-wait slot.
func (t *tx) waitForKeys() error {
	s, c := t.s, &t.mode
	if c.waiter == nil && len(c.keys) > 0 {
		c.waiter = &t.ownWaiter
		if s.lockQueue.enter(c.waiter, c.keys, c.longWait) {
			if err := t.waitInQueue(c.waiter.ready, nil); err != nil {
				return err
			}
		}
	}
	if !c.longWait {
		return nil
	}
	select {
	case s.longWaitSlots <- struct{}{}:
		t.hasLongWaitSlot = true
		return nil
	default:
		return t.waitInQueue(nil, s.longWaitSlots)
	}
}

// waitInQueue waits until the Update is first in its queues, or has a long-wait slot. Meanwhile the Update holds
// no other slot.
func (t *tx) waitInQueue(ready <-chan struct{}, slots chan<- struct{}) (err error) {
	s := t.s
	if t.releaseGroupSlot != nil {
		t.releaseGroupSlot()
	}
	<-s.callerSlots
	select {
	case <-ready:
	case slots <- struct{}{}:
		t.hasLongWaitSlot = true
	case <-t.ctx.Done():
		err = t.ctx.Err()
	case <-s.closing:
		err = errClosed
	}
	if err == nil {
		err = s.takeSlot(t.ctx, s.callerSlots)
	}
	t.mode.slotReturned = err != nil
	return err
}

// shortenLockTimeout gives a new connection a lock_timeout of shortLockWait, if it has a longer one or none.
var shortenLockTimeout = `SELECT set_config('lock_timeout', '` + shortLockTimeout + `', false)
WHERE extract(epoch FROM current_setting('lock_timeout')::interval) * 1000 NOT BETWEEN 1 AND ` + shortLockTimeout

// shortLockTimeout is shortLockWait in milliseconds, as SQL.
var shortLockTimeout = strconv.FormatInt(shortLockWait.Milliseconds(), 10)

// longLockTimeout returns setTenant with the lock_timeout that connections are made with,
// before [shortenLockTimeout] shortens it.
func longLockTimeout(ctx context.Context, pool *pgxpool.Pool) (string, error) {
	var timeout int64 // in milliseconds; 0 means no limit
	err := pool.QueryRow(ctx, `SELECT reset_val::bigint FROM pg_settings WHERE name = 'lock_timeout'`).Scan(&timeout)
	if err != nil || timeout > 0 && timeout <= shortLockWait.Milliseconds() {
		return setTenant, err
	}
	return setTenant + `, set_config('lock_timeout', '` + strconv.FormatInt(timeout, 10) + `', true)`, nil
}
