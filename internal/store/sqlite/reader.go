package sqlite

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// readTx implements gatehouse.ReadTx over a connection inside a transaction.
type readTx struct {
	c   *conn
	at  time.Time
	end bool
	// stored is set where rows are read as they are stored, not as they are
	// shown: see LockAction.
	stored bool
}

// Now is the transaction's one reading of the clock.
func (t *readTx) Now() time.Time { return t.at }

func (t *readTx) exec(sql string, args ...any) (int, error) {
	if t.end {
		return 0, errEnded
	}
	n, err := t.c.exec(sql, args...)
	return n, t.after(err)
}

func (t *readTx) each(sql string, row func(*stmt) error, args ...any) error {
	if t.end {
		return errEnded
	}
	return t.after(t.c.each(sql, row, args...))
}

// one is first with ErrNotFound where there is no row.
func (t *readTx) one(sql string, row func(*stmt) error, args ...any) error {
	if t.end {
		return errEnded
	}
	found, err := t.c.first(sql, row, args...)
	if err == nil && !found {
		return gatehouse.ErrNotFound
	}
	return t.after(err)
}

func (t *readTx) number(sql string, args ...any) (int64, error) {
	if t.end {
		return 0, errEnded
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

// View runs fn on one snapshot. When ctx ends, the running statement ends too.
func (s *Store) View(ctx context.Context, fn func(gatehouse.ReadTx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var c *conn
	select {
	case c = <-s.readers:
	default:
		select {
		case c = <-s.readers:
		case <-ctx.Done():
			return ctx.Err()
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
	defer func() { s.readers <- c }()
	if ctx.Done() != nil {
		interrupted := make(chan struct{})
		stop := context.AfterFunc(ctx, func() { c.interrupt(); close(interrupted) })
		defer func() {
			if !stop() {
				<-interrupted
			}
		}()
	}
	err := s.view(c, fn)
	if err != nil && isCode(err, codeInterrupt) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (s *Store) view(c *conn, fn func(gatehouse.ReadTx) error) error {
	if _, err := c.exec(`BEGIN`); err != nil {
		return err
	}
	t := &readTx{c: c, at: s.now(false)}
	defer func() {
		t.end = true
		if !c.autocommit() {
			// Ends the snapshot; of a transaction that only reads, COMMIT and
			// ROLLBACK are the same, and COMMIT cannot be refused.
			if _, err := c.exec(`COMMIT`); err != nil {
				_, _ = c.exec(`ROLLBACK`)
			}
		}
	}()
	return fn(t)
}
