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

// errRolledBack says that SQLite has rolled back a transaction, or refused to commit it. Nothing of the
// transaction is stored.
var errRolledBack = errors.New("sqlite: transaction rolled back")

// maxSavepointBatches is the number of batches that use savepoints after a batch was spoiled.
const maxSavepointBatches = 64

// spoiledBatch is the error of a batch in which a closure without a savepoint wrote and then failed
// with err. Only a rollback of the whole transaction undoes the closure's writes.
type spoiledBatch struct{ err error }

func (s *spoiledBatch) Error() string { return s.err.Error() }

// runBatch runs the first open request, and the requests queued behind it, in one transaction. If it
// returns an error, nothing is stored, or the outcome is unclear; see resolve. Otherwise outcomes holds
// the result of each closure.
//
// A savepoint copies each page before the closure's first write to the page, which costs a tenth of the
// writer's time. Nearly every closure that fails does so before its first write. So a batch runs without
// savepoints at first. If a closure other than the first fails after a write, the batch runs again with
// savepoints, and so do the next maxSavepointBatches.
func (w *writer) runBatch() (outcomes []error, err error) {
	defer w.settle()
	savepoints := w.savepointBatches > 0
	if savepoints {
		w.savepointBatches--
	}
	wrote, err := w.attempt(savepoints)
	var spoiled *spoiledBatch
	if errors.As(err, &spoiled) {
		w.savepointBatches = maxSavepointBatches
		wrote, err = w.attempt(true)
	}
	if err != nil {
		return nil, err
	}
	return w.outcomes, w.finish(wrote)
}

// attempt begins a transaction, and runs the open requests and the requests that arrive meanwhile. On
// success the transaction stays open; after an error it is rolled back.
func (w *writer) attempt(savepoints bool) (wrote bool, err error) {
	if err := w.begin(); err != nil {
		return false, err
	}
	w.outcomes = w.outcomes[:0]
	for i := 0; i < len(w.open); i++ {
		// The first closure needs no savepoint: a new transaction can begin instead.
		closureWrote, outcome, batchErr := w.run(w.open[i], savepoints && i > 0)
		var spoiled *spoiledBatch
		if i == 0 && errors.As(batchErr, &spoiled) {
			w.rollback()
			outcome, batchErr = spoiled.err, w.begin()
		}
		if batchErr != nil {
			w.rollback()
			return false, batchErr
		}
		wrote = wrote || closureWrote
		w.outcomes = append(w.outcomes, outcome)

		if len(w.open) < maxBatch {
			r := w.next()
			if r == nil && i == len(w.open)-1 {
				// Another goroutine may be about to queue a request, which could then share this
				// commit. Let it run once, but do not wait for it.
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
	if err := w.refusal(); err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	wrote, outcome, batchErr := w.run(r, true)
	if batchErr != nil {
		w.rollback()
		return batchErr
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
	w.rollbackReads()
}

// rollbackReads is rollback for a transaction without writes: the sums of ceilings stay true.
func (w *writer) rollbackReads() {
	if w.c.autocommit() {
		return
	}
	if _, err := w.c.exec(`ROLLBACK`); err != nil && !w.c.autocommit() {
		w.s.log.Error("sqlite: a rollback failed", "error", err)
	}
}

// run executes one closure. batchErr is not nil when the whole transaction is rolled back or spoiled;
// otherwise err is the closure's own error.
func (w *writer) run(r *request, savepoint bool) (wrote bool, err, batchErr error) {
	if savepoint {
		if _, err := w.c.exec(`SAVEPOINT closure`); err != nil {
			return false, nil, rolledBack(err)
		}
	}
	before := w.c.totalChanges()
	err = w.call(r)
	if w.c.autocommit() {
		if err == nil {
			err = errors.New("SQLite rolled the transaction back, but the closure returned no error")
		}
		return false, nil, rolledBack(err)
	}
	if err == nil && w.c.violatesForeignKey() {
		err = fmt.Errorf("%w: a row refers to a missing row", gatehouse.ErrNotFound)
	}
	if err == nil {
		if savepoint {
			if _, err := w.c.exec(`RELEASE closure`); err != nil {
				return false, nil, rolledBack(err)
			}
		}
		return w.c.totalChanges() != before, nil, nil
	}
	if !savepoint {
		if w.c.totalChanges() != before || w.c.violatesForeignKey() {
			return false, nil, &spoiledBatch{err}
		}
		return false, err, nil
	}
	for _, sql := range [2]string{`ROLLBACK TO closure`, `RELEASE closure`} {
		if _, e := w.c.exec(sql); e != nil {
			return false, nil, rolledBack(errors.Join(e, err))
		}
	}
	w.sums.undoClosure()
	return false, err, nil
}

// rolledBack wraps the reason why the transaction is rolled back.
func rolledBack(err error) error { return fmt.Errorf("%w: %w", errRolledBack, err) }

// call runs a closure and turns a panic into an error.
func (w *writer) call(r *request) (err error) {
	w.running, w.sums.undo = r, nil
	t := &tx{readTx: readTx{s: w.s, c: w.c, at: w.s.now(true), tenant: r.tenant}, w: w}
	t.Reads, t.Writes = shared.Reads{Reader: &t.readTx}, shared.Writes{Writer: t}
	returned := false
	defer func() {
		t.ended = true
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

// finish writes the sums of ceilings and the meta row, and commits. A transaction without writes is rolled
// back instead, which costs no fsync.
func (w *writer) finish(wrote bool) error {
	if !wrote {
		w.rollbackReads()
		return nil
	}
	if err := w.sums.store(w.c); err != nil {
		w.rollback()
		return rolledBack(err)
	}
	number := w.batch + 1
	if _, err := w.c.exec(`UPDATE meta SET clock = ?, batch = ? WHERE id = 1`, w.s.clock.Load(), number); err != nil {
		w.rollback()
		return rolledBack(err)
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
		// SQLite refused the COMMIT, and the transaction is still open: nothing is stored.
		w.rollback()
		return rolledBack(err)
	}
	return w.resolve(number, err)
}

// The pauses between two attempts to read back a commit. While callers wait, the pauses double from
// minPause to maxPause. After the callers were answered, they double up to longPause.
const (
	minPause  = 10 * time.Millisecond
	maxPause  = time.Second
	longPause = 5 * time.Second
)

// resolve reads back the outcome of a COMMIT that failed and left no transaction open. It returns nil if
// the batch is stored, and errRolledBack if it is not. When patience runs out, resolve returns an error that
// says that the outcome is unclear, and the store refuses writes until retryReadBack has read the outcome.
func (w *writer) resolve(number int64, cause error) error {
	var err error
	end := time.Now().Add(w.patience)
	for pause := minPause; time.Now().Before(end); pause = min(2*pause, maxPause) {
		var stored bool
		if stored, err = w.readBack(number); err == nil {
			w.s.log.Warn("sqlite: the outcome of a failed COMMIT is now known", "batch", number, "stored", stored,
				"error", cause)
			if stored {
				w.commits.Add(1)
				return nil
			}
			return rolledBack(cause)
		}
		time.Sleep(pause) //nolint:forbidigo // the writer has nothing else to wait for
	}
	unclear := fmt.Errorf("COMMIT failed (%w), and reading whether it is stored failed: %w", cause, err)
	fault := fmt.Errorf("%w: sqlite: the store refuses writes: %w", gatehouse.ErrBusy, unclear)
	w.fault.Store(&fault)
	w.unclearBatch, w.pause = number, minPause
	w.retry = time.After(w.pause)
	w.s.log.Error("sqlite: writes are refused until it is known whether a commit is stored", "batch", number,
		"error", unclear)
	return fmt.Errorf("sqlite: a transaction may or may not be stored: %w", unclear)
}

// retryReadBack tries again to read back an unclear commit, and lets the store write again if that
// succeeds. The callers already have their answers, so no closure runs again.
func (w *writer) retryReadBack() {
	stored, err := w.readBack(w.unclearBatch)
	if err != nil {
		w.pause = min(2*w.pause, longPause)
		w.retry = time.After(w.pause)
		return
	}
	if stored {
		w.commits.Add(1)
	}
	w.people.touch()
	w.actives.touch()
	w.settle()
	w.s.log.Warn("sqlite: the outcome of a failed COMMIT is now known; writes are accepted again",
		"batch", w.unclearBatch, "stored", stored)
	w.unclearBatch, w.retry = 0, nil
	w.fault.Store(nil)
}

// readBack opens a new connection and reads whether a batch is stored. If the batch is absent, readBack
// commits an empty batch before it returns, which overwrites any remains of the failed commit in the WAL.
// The empty batch has a later number: if this commit becomes unclear too, the next read-back cannot
// mistake the empty batch for the lost batch.
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
