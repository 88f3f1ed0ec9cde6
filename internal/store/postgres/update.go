package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gatehouse-dev/gatehouse"
)

// maxRuns bounds how often a closure is run; the pauses between them double
// from minPause to maxPause, a second and a half in all.
const (
	maxRuns  = 10
	minPause = 4 * time.Millisecond
	maxPause = 400 * time.Millisecond
)

// tx implements gatehouse.Tx, but for the walls between tenants.
type tx struct {
	readTx
	conn *pgxpool.Conn
	// member is its part in a group. pass gives its place in the line back, if it
	// has one.
	member *member
	pass   func()
	course course
	// ticket is its own, if it took none before; sole has what it wants, where that
	// is a single thing that was not foreseen; denied is what it was refused.
	ticket ticket
	sole   [1]thing
	denied thing
	// waits says that it has a place among those who wait for a lock for long.
	waits bool
	// unclear says that what became of its COMMIT could not be found out.
	unclear bool
	// left is its session, where the server may be at that COMMIT still.
	left   *session
	opened opened
}

// Update runs fn in a transaction; see the package comment for its rules.
func (s *Store) Update(ctx context.Context, fn func(gatehouse.Tx) error) error {
	if err := s.take(ctx, s.callers); err != nil {
		return err
	}
	c := course{wave: waveOf(ctx)}
	defer func() {
		s.tickets.leave(c.ticket)
		if !c.away {
			<-s.callers
		}
	}()
	pause := minPause
	for n := 1; ; n++ {
		was := c.patient
		var again bool
		var err error
		if c, again, err = s.run(ctx, fn, c); !again {
			return err
		}
		if errors.Is(err, errApart) || c.patient != was {
			continue
		}
		if n == maxRuns {
			return fmt.Errorf("%w: after %d runs: %w", gatehouse.ErrBusy, n, err)
		}
		s.log.DebugContext(ctx, "postgres: a transaction is run again", "run", n, "error", err)
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

// run runs fn once. again says that nothing is stored and that another run may
// succeed, on the course that it returns.
func (s *Store) run(ctx context.Context, fn func(gatehouse.Tx) error, c course) (next course, again bool, err error) {
	t := &tx{readTx: readTx{s: s, ctx: ctx}, course: c}
	t.w = t
	defer func() {
		t.release()
		if again {
			next = t.next(err)
		} else {
			next = t.course
			s.tickets.leave(next.ticket)
		}
	}()
	if err = t.call(fn); err == nil && t.err == nil {
		again, err = t.commit()
		return c, again, err
	}
	if t.err == nil {
		return c, false, err // the closure's own
	}
	if ctx.Err() != nil {
		return c, false, ctx.Err()
	}
	if errors.Is(t.err, errApart) {
		return c, true, errApart
	}
	if err == nil {
		err = t.err // it went on after an error
	}
	return c, t.mayRunAgain(), err
}

// connect takes a place among the Updates, and a connection.
func (t *tx) connect() error {
	if t.conn != nil {
		return nil
	}
	t.absent()
	if t.err = t.lineUp(); t.err != nil {
		return t.err
	}
	if t.err = t.s.take(t.ctx, t.s.updates); t.err != nil {
		return t.err
	}
	if t.conn, t.err = t.s.acquire(t.ctx); t.err != nil {
		<-t.s.updates
		return t.err
	}
	t.c = t.conn.Conn()
	return nil
}

// release ends the transaction, and gives back what it has taken.
func (t *tx) release() {
	t.end = true
	t.absent()
	if t.member != nil {
		t.member.group.ended(t.member, nil)
	}
	if t.conn != nil {
		t.leave(t.conn)
		if t.left != nil {
			go t.s.abandon(*t.left)
		} else {
			<-t.s.updates
		}
	}
	if t.waits {
		<-t.s.patience
	}
	if t.pass != nil {
		t.pass()
	}
}

func (t *tx) mayRunAgain() bool {
	k := kindOf(t.err)
	return k == contention || k == lost
}

// call runs a closure and makes an error of a panic.
func (t *tx) call(fn func(gatehouse.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("postgres: panic in a transaction: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(t.walled())
}

// commit sends the last writes and COMMIT in one round trip: the server
// commits when none of them failed. From here on the caller's context has no
// say.
func (t *tx) commit() (again bool, err error) {
	if !t.wrote {
		return false, nil
	}
	if err := t.ctx.Err(); err != nil {
		return false, err
	}
	if t.member != nil {
		err := t.member.settle(t.ctx)
		return errors.Is(err, errApart), err
	}
	if err := t.connect(); err != nil {
		return t.mayRunAgain(), err
	}
	if err := t.s.timelines.check(branchOf(t.c)); err != nil {
		t.err = &dbError{lost, err}
		return true, t.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.s.config.Patience)
	defer cancel()
	o := sessionOf(t.c)
	before := *o
	o.warned = false
	o.committing.Store(true)
	last := t.whole(ask(markSession, nil, o.seq, o.last+1))
	batch := append(t.waiting(2), last, query{sql: `commit`})
	t.begun = true
	err, _ = t.send(ctx, batch)
	var pg *pgconn.PgError
	o.committing.Store(t.c.IsClosed())
	switch {
	case t.tag == "COMMIT":
		o.last++
		if !o.warned {
			return false, nil // whatever came of the connection afterwards
		}
		err = errAlone
	case err == nil:
		t.err = &dbError{other, fmt.Errorf("COMMIT was answered with %s", t.tag)}
		return false, t.err
	case errors.As(err, &pg) && !severe(pg), pgconn.SafeToRetry(err):
		t.err = explain(err)
		return t.mayRunAgain(), t.err
	}
	again, err = t.s.resolve(before, err)
	if t.unclear = err != nil && !again; t.unclear && t.c.IsClosed() {
		t.left = &before
	}
	return again, err
}
