package sqlite

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// readTx implements gatehouse.ReadTx over a connection inside a transaction.
type readTx struct {
	s *Store
	// c is nil until a View reads, see open.
	c   *conn
	ctx context.Context
	at  time.Time
	end bool
	// quiet waits until no interruption by ctx can come any more.
	quiet func()
	// seen is the push that was read last with its action, until it is written.
	seen *gatehouse.Push
	// stored is set where rows are read as they are stored, not as they are
	// shown: see LockAction.
	stored bool
}

// Now is the transaction's one reading of the clock.
func (t *readTx) Now() time.Time { return t.at }

func (t *readTx) exec(sql string, args ...any) (int, error) {
	if err := t.open(); err != nil {
		return 0, err
	}
	n, err := t.c.exec(sql, args...)
	return n, t.after(err)
}

func (t *readTx) each(sql string, row func(*stmt) error, args ...any) error {
	if err := t.open(); err != nil {
		return err
	}
	return t.after(t.c.each(sql, row, args...))
}

// one is first with ErrNotFound where there is no row.
func (t *readTx) one(sql string, row func(*stmt) error, args ...any) error {
	if err := t.open(); err != nil {
		return err
	}
	found, err := t.c.first(sql, row, args...)
	if err == nil && !found {
		return gatehouse.ErrNotFound
	}
	return t.after(err)
}

func (t *readTx) number(sql string, args ...any) (int64, error) {
	if err := t.open(); err != nil {
		return 0, err
	}
	n, err := t.c.number(sql, args...)
	return n, t.after(err)
}

// after looks whether SQLite has ended the transaction with the error. Then
// nothing more may run in it: each statement would be a transaction of its own.
func (t *readTx) after(err error) error {
	if err != nil && t.c.autocommit() {
		t.end = true
	}
	return err
}

// View runs fn on one snapshot, which is that of its first look into the file.
// When ctx ends, the running statement ends too.
func (s *Store) View(ctx context.Context, fn func(gatehouse.ReadTx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closing:
		return errClosed
	default:
	}
	t := &readTx{s: s, ctx: ctx, at: s.now(false)}
	defer t.close()
	err := fn(t)
	if err != nil && isCode(err, codeInterrupt) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Read is View: nothing here is far away.
func (s *Store) Read(ctx context.Context, fn func(gatehouse.ReadTx) error) error {
	return s.View(ctx, fn)
}

// open begins a View's transaction with the first statement: one that is
// answered from what is kept takes no connection.
func (t *readTx) open() error {
	switch {
	case t.end:
		return errEnded
	case t.c != nil:
		return nil
	}
	s := t.s
	var c *conn
	select {
	case c = <-s.readers:
	default:
		select {
		case c = <-s.readers:
		case <-t.ctx.Done():
			return t.ctx.Err()
		case <-s.closing:
			return errClosed
		}
	}
	select {
	case <-s.closing:
		s.readers <- c
		return errClosed
	default:
	}
	t.c = c
	if t.ctx.Done() != nil {
		interrupted := make(chan struct{})
		stop := context.AfterFunc(t.ctx, func() { c.interrupt(); close(interrupted) })
		t.quiet = func() {
			if !stop() {
				<-interrupted
			}
		}
	}
	_, err := c.exec(`BEGIN`)
	t.end = err != nil // each statement would be a snapshot of its own
	return err
}

// close ends a View's transaction and gives its connection back.
func (t *readTx) close() {
	t.end = true
	if t.c == nil {
		return
	}
	if !t.c.autocommit() {
		// Ends the snapshot; of a transaction that only reads, COMMIT and
		// ROLLBACK are the same, and COMMIT cannot be refused.
		if _, err := t.c.exec(`COMMIT`); err != nil {
			_, _ = t.c.exec(`ROLLBACK`)
		}
	}
	if t.quiet != nil {
		t.quiet()
	}
	t.s.readers <- t.c
}
