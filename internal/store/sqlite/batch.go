package sqlite

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// errRolledBack says that SQLite rolled the transaction back by itself or
// refused to commit it. Nothing of the transaction is stored.
var errRolledBack = errors.New("sqlite: transaction rolled back")

// carefulBatches is the number of batches that use savepoints after a closure
// wrote and then failed.
const carefulBatches = 64

// spoiled is the error of a batch in which a closure without a savepoint wrote and then failed
// with err. Only a rollback of the whole transaction undoes its writes.
type spoiled struct{ err error }

func (s *spoiled) Error() string { return s.err.Error() }

// runBatch runs the first request and the requests queued behind it in one
// transaction. On an error nothing is stored; otherwise outcomes holds the
// result of each closure.
//
// A savepoint copies each page before the closure's first write to it, which
// costs a tenth of the writer's time. Nearly every closure that fails does so
// before it writes. So the batch runs without savepoints first; if a closure
// fails after a write, the batch runs again with savepoints.
func (w *writer) runBatch() (outcomes []error, err error) {
	defer w.settle()
	savepoints := w.careful > 0
	if savepoints {
		w.careful--
	}
	wrote, err := w.attempt(savepoints)
	var s *spoiled
	if errors.As(err, &s) {
		w.careful = carefulBatches
		wrote, err = w.attempt(true)
	}
	if err != nil {
		return nil, err
	}
	return w.outcomes, w.finish(wrote)
}

// attempt begins a transaction and runs the open requests and those that arrive
// meanwhile. The transaction stays open on success and is rolled back on an
// error.
func (w *writer) attempt(savepoints bool) (wrote bool, err error) {
	if err := w.begin(); err != nil {
		return false, err
	}
	w.outcomes = w.outcomes[:0]
	for i := 0; i < len(w.open); i++ {
		// The first closure needs no savepoint: the transaction can simply
		// restart.
		did, outcome, whole := w.run(w.open[i], savepoints && i > 0)
		var s *spoiled
		if i == 0 && errors.As(whole, &s) {
			w.rollback()
			outcome, whole = s.err, w.begin()
		}
		if whole != nil {
			w.rollback()
			return false, whole
		}
		wrote = wrote || did
		w.outcomes = append(w.outcomes, outcome)
		if len(w.open) < maxBatch {
			r := w.next()
			if r == nil && i == len(w.open)-1 {
				// A runnable goroutine may be about to queue another closure,
				// which then shares this commit. Yield once, but do not wait.
				runtime.Gosched()
				r = w.next()
			}
			if r != nil {
				w.open = append(w.open, r)
			}
		}
	}
	return wrote, nil
}

// runAlone runs one closure in its own transaction.
func (w *writer) runAlone(r *request) error {
	defer w.settle()
	if err := w.broken(); err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	wrote, outcome, whole := w.run(r, true)
	if whole != nil {
		w.rollback()
		return whole
	}
	if err := w.finish(wrote); err != nil {
		return err
	}
	return outcome
}

func (w *writer) begin() error {
	_, err := w.c.exec(`BEGIN IMMEDIATE`)
	return err
}

// rollback rolls back the transaction if one is still open.
func (w *writer) rollback() {
	w.sums.forget()
	if w.c.autocommit() {
		return
	}
	if _, err := w.c.exec(`ROLLBACK`); err != nil && !w.c.autocommit() {
		w.s.log.Error("sqlite: rollback", "error", err)
	}
}

// run executes one closure. whole is set when the whole transaction is lost or
// spoiled; otherwise err is the closure's own error.
func (w *writer) run(r *request, savepoint bool) (wrote bool, err, whole error) {
	if savepoint {
		if _, err := w.c.exec(`SAVEPOINT closure`); err != nil {
			return false, nil, lost(err)
		}
	}
	before := w.c.totalChanges()
	err = w.call(r)
	if w.c.autocommit() {
		if err == nil {
			err = errors.New("the closure continued after an error")
		}
		return false, nil, lost(err)
	}
	if err == nil && w.c.deferredKeys() {
		err = fmt.Errorf("%w: a row refers to a missing row", gatehouse.ErrNotFound)
	}
	if err == nil {
		if savepoint {
			if _, err := w.c.exec(`RELEASE closure`); err != nil {
				return false, nil, lost(err)
			}
		}
		return w.c.totalChanges() != before, nil, nil
	}
	if !savepoint {
		if w.c.totalChanges() != before || w.c.deferredKeys() {
			return false, nil, &spoiled{err}
		}
		return false, err, nil
	}
	for _, sql := range [2]string{`ROLLBACK TO closure`, `RELEASE closure`} {
		if _, e := w.c.exec(sql); e != nil {
			return false, nil, lost(errors.Join(e, err))
		}
	}
	w.sums.undoClosure()
	return false, err, nil
}

func lost(err error) error { return fmt.Errorf("%w: %w", errRolledBack, err) }

// call runs a closure and turns a panic into an error.
func (w *writer) call(r *request) (err error) {
	w.running, w.sums.undo = r, nil
	t := &tx{readTx: readTx{s: w.s, c: w.c, at: w.s.now(true), tenant: r.tenant}, w: w}
	t.Reads, t.Writes = shared.Reads{Reader: &t.readTx}, shared.Writes{Writer: t}
	returned := false
	defer func() {
		t.end = true
		if returned {
			w.running = nil
		} else if p := recover(); p != nil {
			w.running = nil
			err = fmt.Errorf("sqlite: panic in a transaction: %v\n%s", p, debug.Stack())
		}
	}()
	err = r.fn(t)
	returned = true
	return err
}

// finish writes the sums of ceilings and the meta row, and commits. A transaction without changes is
// rolled back and costs no fsync.
func (w *writer) finish(wrote bool) error {
	if !wrote {
		w.rollback()
		return nil
	}
	if err := w.sums.store(w.c); err != nil {
		w.rollback()
		return lost(err)
	}
	number := w.batch + 1
	if _, err := w.c.exec(`UPDATE meta SET clock = ?, batch = ? WHERE id = 1`, w.s.clock.Load(), number); err != nil {
		w.rollback()
		return lost(err)
	}
	err := w.commit(w.c)
	if err == nil {
		w.batch = number
		w.commits.Add(1)
		w.s.checkpointer.committed(w.c)
		w.c.trim(w.cache)
		return nil
	}
	w.sums.forget()
	if !w.c.autocommit() {
		// Refused, and the transaction is still open: nothing is stored.
		w.rollback()
		return lost(err)
	}
	return w.resolve(number, err)
}

// Pauses between two attempts to read back a commit. A pause doubles from
// minPause to maxPause while callers wait, and up to longPause after they were
// answered.
const (
	minPause  = 10 * time.Millisecond
	maxPause  = time.Second
	longPause = 5 * time.Second
)

// resolve reads back the outcome of a COMMIT that failed and left no
// transaction open. nil means that the batch is stored. When patience runs out,
// the store reports the outcome as unclear, refuses writes, and keeps trying
// (see mend).
func (w *writer) resolve(number int64, cause error) error {
	var err error
	end := time.Now().Add(w.patience)
	for pause := minPause; time.Now().Before(end); pause = min(2*pause, maxPause) {
		var stored bool
		if stored, err = w.readBack(number); err == nil {
			w.s.log.Warn("sqlite: an unclear commit was read back", "batch", number, "stored", stored, "error", cause)
			if stored {
				w.commits.Add(1)
				return nil
			}
			return lost(cause)
		}
		time.Sleep(pause) //nolint:forbidigo // the writer has nothing else to wait for
	}
	unclear := fmt.Errorf("the outcome of a commit (%w) cannot be read back: %w", cause, err)
	fault := fmt.Errorf("%w: sqlite: no writes: %w", gatehouse.ErrBusy, unclear)
	w.fault.Store(&fault)
	w.unclear, w.pause = number, minPause
	w.again = time.After(w.pause)
	w.s.log.Error("sqlite: stopped writing until an unclear commit can be read back", "batch", number, "error", unclear)
	return fmt.Errorf("sqlite: a transaction may or may not be stored: %w", unclear)
}

// retryReadBack tries again to read back an unclear commit. The callers have already
// been answered, so nothing runs again.
func (w *writer) retryReadBack() {
	stored, err := w.readBack(w.unclear)
	if err != nil {
		w.pause = min(2*w.pause, longPause)
		w.again = time.After(w.pause)
		return
	}
	if stored {
		w.commits.Add(1)
	}
	w.people.touch()
	w.actives.touch()
	w.settle()
	w.s.log.Warn("sqlite: an unclear commit was read back; writing again", "batch", w.unclear, "stored", stored)
	w.unclear, w.again = 0, nil
	w.fault.Store(nil)
}

// readBack reopens the connection and reads whether a batch is stored. If the
// batch is absent, readBack first commits an empty batch with a later number,
// which overwrites whatever the failed commit left in the log. If this commit
// is unclear too, the later number keeps the next read-back from taking the
// empty batch for the lost one.
func (w *writer) readBack(number int64) (stored bool, err error) {
	_ = w.c.close()
	c, err := openWriter(w.s.config.Path)
	if err != nil {
		return false, err
	}
	w.c = c
	last, err := c.number(`SELECT batch FROM meta WHERE id = 1`)
	if err != nil {
		return false, err
	}
	if last == number {
		w.batch = last
		return true, nil
	}
	next := max(last, number) + 1
	if err := w.begin(); err != nil {
		return false, err
	}
	if _, err := c.exec(`UPDATE meta SET batch = ? WHERE id = 1`, next); err != nil {
		return false, err
	}
	if err := w.commit(c); err != nil {
		return false, err
	}
	w.batch = next
	return false, nil
}
