package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// maxRuns bounds the runs of a closure. The pauses between runs double from minPause to
// maxPause, and take about 1.3 seconds in all.
const (
	maxRuns  = 10
	minPause = 4 * time.Millisecond
	maxPause = 400 * time.Millisecond
)

// tx implements gatehouse.Tx in its tenant, and, within queues, gatehouse.Queues.
type tx struct {
	readTx
	shared.Writes
	// member is the transaction's part in a group. releaseGroupSlot returns its slot in the
	// group queue, if it has one.
	member           *member
	releaseGroupSlot func()
	mode             runMode
	// ownWaiter is the storage for mode.waiter. soleKey is the storage for mode.keys if the first batch
	// locks a single key and the opening names no keys. deniedKey is the key of the first lock in the
	// batch that failed with a lock timeout.
	ownWaiter lockWaiter
	soleKey   [1]lockKey
	deniedKey lockKey
	// hasLongWaitSlot says that the transaction holds one of the long-wait slots.
	hasLongWaitSlot bool
	// unclear says that the outcome of its COMMIT is unknown.
	unclear bool
	// leftSession is set when the server may still be executing that COMMIT.
	leftSession *session
}

// queues is passed to closures that write for all tenants. Its methods are the methods of tx that call
// AllTenants first.
type queues struct{ *tx }

var (
	_ gatehouse.Tx     = (*tx)(nil)
	_ gatehouse.Queues = queues{}
)

// In moves the transaction to a tenant.
func (q queues) In(tenant string) gatehouse.Tx {
	q.useTenant(tenant)
	return q.tx
}

// UpdateQueues is Update for all tenants.
func (s *Store) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return s.update(ctx, "", func(t *tx) error { return fn(queues{t}) })
}

// Update runs fn in a transaction; see the package comment for its rules.
func (s *Store) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	return s.update(ctx, tenant, func(t *tx) error { return fn(t) })
}

func (s *Store) update(ctx context.Context, tenant string, fn func(*tx) error) error {
	if err := s.takeSlot(ctx, s.callerSlots); err != nil {
		return err
	}
	mode := runMode{}
	defer func() {
		s.lockQueue.leave(mode.waiter)
		if !mode.slotReturned {
			<-s.callerSlots
		}
	}()
	pause := minPause
	for n := 1; ; n++ {
		was := mode.longWait
		var again bool
		var err error
		if mode, again, err = s.run(ctx, tenant, fn, mode); !again {
			return err
		}
		if errors.Is(err, errRunAlone) || mode.longWait != was {
			continue
		}
		if n >= maxRuns {
			return fmt.Errorf("%w: after %d runs: %w", gatehouse.ErrBusy, n, err)
		}
		s.log.DebugContext(ctx, "postgres: a transaction runs again", "run", n, "error", err)
		if kindOf(err) == lost {
			s.pool.Reset()
		}
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		pause = min(2*pause, maxPause)
	}
}

// run runs fn once. again says that nothing is stored and that another run, in the mode next,
// may succeed.
func (s *Store) run(
	ctx context.Context,
	tenant string,
	fn func(*tx) error,
	mode runMode,
) (next runMode, again bool, err error) {
	t := &tx{readTx: readTx{s: s, ctx: ctx}, mode: mode}
	t.update, t.Reads, t.Writes = t, shared.Reads{Reader: &t.readTx}, shared.Writes{Writer: t}
	t.useTenant(tenant)
	defer func() {
		t.release()
		if again {
			next = t.nextMode(err)
		} else {
			next = t.mode
			s.lockQueue.leave(next.waiter)
		}
	}()
	if err = t.call(fn); err == nil && t.err == nil {
		again, err = t.commit()
		return mode, again, err
	}
	if t.err == nil {
		return mode, false, err // the closure's own error
	}
	if ctx.Err() != nil {
		return mode, false, ctx.Err()
	}
	if errors.Is(t.err, errRunAlone) {
		return mode, true, errRunAlone
	}
	if err == nil {
		err = t.err // the closure continued after an error
	}
	return mode, t.mayRunAgain(), err
}

// connect takes an update slot and a connection.
func (t *tx) connect() error {
	if t.conn != nil {
		return nil
	}
	if t.err = t.waitForKeys(); t.err != nil {
		return t.err
	}
	if t.err = t.s.takeSlot(t.ctx, t.s.updateSlots); t.err != nil {
		return t.err
	}
	if t.conn, t.err = t.s.acquire(t.ctx); t.err != nil {
		<-t.s.updateSlots
		return t.err
	}
	t.c = t.conn.Conn()
	return nil
}

// release ends the transaction and returns its slots and connection.
func (t *tx) release() {
	t.ended = true
	if t.member != nil {
		t.member.group.memberEnded(t.member, nil)
	}
	if t.conn != nil {
		t.finish()
		if t.leftSession != nil {
			go t.s.releaseWhenGone(*t.leftSession)
		} else {
			<-t.s.updateSlots
		}
	}
	if t.hasLongWaitSlot {
		<-t.s.longWaitSlots
	}
	if t.releaseGroupSlot != nil {
		t.releaseGroupSlot()
	}
}

func (t *tx) mayRunAgain() bool {
	k := kindOf(t.err)
	return k == contention || k == lost
}

// call runs a closure and turns a panic into an error.
func (t *tx) call(fn func(*tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("postgres: panic in a transaction: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(t)
}

// commit sends the last writes and COMMIT in one round trip: the server commits only if none of
// them failed. Once COMMIT is sent, the caller's context no longer matters.
func (t *tx) commit() (again bool, err error) {
	if !t.wrote {
		return false, nil
	}
	if err := t.ctx.Err(); err != nil {
		return false, err
	}
	if t.member != nil {
		err := t.member.submit(t.ctx)
		return errors.Is(err, errRunAlone), err
	}
	if slices.ContainsFunc(t.queue, func(q query) bool { return q.noRowErr != nil }) {
		if err := t.read(); err != nil {
			return t.mayRunAgain(), err
		}
	}
	if err := t.connect(); err != nil {
		return t.mayRunAgain(), err
	}
	if err := t.s.timelines.check(timelineOf(t.c)); err != nil {
		t.err = &dbError{lost, err}
		return true, t.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.s.config.Patience)
	defer cancel()
	o := sessionOf(t.c)
	before := *o
	o.warned = false
	o.committing.Store(true)
	batch := append(withMark(t.pendingBatch(2), markRow{o.seq, o.last + 1}), query{sql: `commit`})
	t.begun = true
	err, _ = t.send(ctx, batch)
	var pg *pgconn.PgError
	o.committing.Store(t.c.IsClosed())
	switch {
	case t.tag == "COMMIT":
		o.last++
		if !o.warned {
			return false, nil // even if the connection failed afterwards
		}
		err = errNoStandby
	case err == nil:
		t.err = &dbError{other, fmt.Errorf("the server answered COMMIT with %s", t.tag)}
		return false, t.err
	case errors.As(err, &pg) && !severe(pg), pgconn.SafeToRetry(err):
		t.err = explain(err)
		return t.mayRunAgain(), t.err
	}
	again, err = t.s.resolve(before, err)
	if t.unclear = err != nil && !again; t.unclear && t.c.IsClosed() {
		t.leftSession = &before
	}
	return again, err
}
