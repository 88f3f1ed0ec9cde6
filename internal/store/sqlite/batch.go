package sqlite

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// errRolledBack says that SQLite ended the transaction by itself, or refused
// to commit it: nothing of it is stored.
var errRolledBack = errors.New("sqlite: transaction rolled back")

// carefulBatches is for how many batches each closure gets a savepoint, after
// one without has failed when it had written.
const carefulBatches = 64

// spoiled says that a closure without a savepoint has failed with err after it
// had written: its writes can be undone with those of all before it only.
type spoiled struct{ err error }

func (s *spoiled) Error() string { return s.err.Error() }

// together runs the open request and what else waits in one transaction. An
// error means that nothing of it is stored; else outcomes has each closure's own.
//
// A savepoint costs a copy of each page that the closure is the first to write,
// a tenth of the writer's time, and is hardly ever needed: nearly every closure
// that fails does so before it has written. So the batch is run without, and
// once more with savepoints when that was too hopeful.
func (w *writer) together() (outcomes []error, err error) {
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

// attempt begins a transaction, runs the open requests and those that come
// meanwhile, and leaves it open, or rolled back with an error.
func (w *writer) attempt(savepoints bool) (wrote bool, err error) {
	if err := w.begin(); err != nil {
		return false, err
	}
	w.outcomes = w.outcomes[:0]
	for i := 0; i < len(w.open); i++ {
		// The first needs no savepoint: the transaction is begun anew.
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
				// Who is ready to run may be about to bring another closure, and
				// shares this commit then. Nobody is waited for.
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

// alone runs one closure in a transaction of its own.
func (w *writer) alone(r *request) error {
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

// rollback ends what is left of a transaction.
func (w *writer) rollback() {
	if w.c.autocommit() {
		return
	}
	if _, err := w.c.exec(`ROLLBACK`); err != nil && !w.c.autocommit() {
		w.s.log.Error("sqlite: rollback", "error", err)
	}
}

// run executes one closure. whole is set when the transaction as a whole is
// lost, or spoiled, and else err is the closure's own.
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
			err = errors.New("the closure went on after an error")
		}
		return false, nil, lost(err)
	}
	if err == nil && w.c.deferredKeys() {
		err = fmt.Errorf("%w: a row refers to one that is not there", gatehouse.ErrNotFound)
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
	return false, err, nil
}

func lost(err error) error { return fmt.Errorf("%w: %w", errRolledBack, err) }

// call runs a closure and makes an error of a panic.
func (w *writer) call(r *request) (err error) {
	w.running = r
	t := &tx{readTx: readTx{s: w.s, c: w.c, at: w.s.now(true)}, w: w}
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

// finish writes the meta row and commits. A transaction that changed nothing
// leaves no trace and costs no fsync.
func (w *writer) finish(wrote bool) error {
	if !wrote {
		w.rollback()
		return nil
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
	if !w.c.autocommit() {
		// Refused, and the transaction is still open: nothing is stored.
		w.rollback()
		return lost(err)
	}
	return w.resolve(number, err)
}

// The pauses between two looks for the outcome of a commit double from the
// first to the last; while the store waits, and afterwards, when it has told.
const (
	minPause  = 10 * time.Millisecond
	maxPause  = time.Second
	longPause = 5 * time.Second
)

// resolve finds out what became of a COMMIT that failed and left no
// transaction open. nil means that it took place. After its patience the store
// says that it does not know, takes no more writes, and goes on looking (mend).
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

// mend looks once more for what resolve could not find out. Its callers have
// had their answer: nothing is run again.
func (w *writer) mend() {
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

// readBack opens the connection anew and reads whether a batch is stored. When
// it is not, an empty batch of a later number overwrites what the failed commit
// left in the log, before anybody relies on the answer. Later, so that another
// look, should the empty one's commit be unclear in its turn, never takes it
// for the one that was lost.
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
