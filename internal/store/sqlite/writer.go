package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// maxBatch bounds how many closures share a transaction and its fsync.
const maxBatch = 64

// The states of a request.
const (
	waiting int32 = iota
	started
	abandoned
)

// request is one Update on its way through the writer.
type request struct {
	fn    func(gatehouse.Tx) error
	state atomic.Int32
	err   error
	done  chan struct{}
}

func (r *request) answer(err error) {
	r.err = err
	close(r.done)
}

// writer owns the writing connection.
type writer struct {
	s     *Store
	c     *conn
	queue chan *request
	done  chan struct{}
	batch int64 // the number of the last batch that was committed
	// open has the requests that were begun and not yet answered, running the
	// one whose closure is being executed.
	open     []*request
	running  *request
	outcomes []error
	fault    atomic.Pointer[error]

	// commit ends a transaction; tests put faults in its place.
	commit func(c *conn) error
	// commits counts transactions that wrote.
	commits atomic.Int64
}

func newWriter(s *Store, c *conn) *writer {
	return &writer{
		s: s, c: c, queue: make(chan *request, 4*maxBatch), done: make(chan struct{}),
		commit: func(c *conn) error { _, err := c.exec(`COMMIT`); return err },
	}
}

// load reads the meta row: the stored clock and the last batch.
func (w *writer) load() error {
	_, err := w.c.first(`SELECT clock, batch FROM meta WHERE id = 1`, func(r *stmt) error {
		w.s.clock.Store(r.int())
		w.batch = r.int()
		return nil
	})
	return err
}

func (w *writer) close() error { return w.c.close() }

// broken returns why the store takes no more writes, nil while it does.
func (w *writer) broken() error {
	if e := w.fault.Load(); e != nil {
		return *e
	}
	return nil
}

// Update hands fn to the writer; see the package comment for its rules.
func (s *Store) Update(ctx context.Context, fn func(gatehouse.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closing:
		return errClosed
	default:
	}
	r := &request{fn: fn, done: make(chan struct{})}
	w := s.writer
	select {
	case w.queue <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return errClosed
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		<-r.done
		return r.err
	case <-w.done:
		// The writer ended; it answered all that it took.
		select {
		case <-r.done:
			return r.err
		default:
			return errClosed
		}
	}
}

// loop takes what waits, batch by batch, until the store closes.
func (w *writer) loop() {
	defer func() {
		if w.running != nil {
			go w.resume()
			return
		}
		close(w.done)
	}()
	for {
		select {
		case r := <-w.queue:
			w.serve(r)
		case <-w.s.closing:
			for {
				select {
				case r := <-w.queue:
					w.serve(r)
				default:
					return
				}
			}
		}
	}
}

// resume takes over from a loop whose goroutine a closure has ended, as a test
// that fails inside one does (runtime.Goexit). That closure is undone, the
// others of its batch are run again.
func (w *writer) resume() {
	culprit := w.running
	w.running = nil
	w.rollback()
	open := w.open
	w.open = nil
	for _, r := range open {
		if r == culprit {
			r.answer(errors.New("sqlite: the closure ended its goroutine"))
		}
	}
	for _, r := range open {
		if r != culprit {
			r.answer(w.alone(r))
		}
	}
	w.loop()
}

// next returns a request that waits and still has its caller, nil when there is none.
func (w *writer) next() *request {
	for {
		select {
		case r := <-w.queue:
			if r.state.CompareAndSwap(waiting, started) {
				return r
			}
		default:
			return nil
		}
	}
}

// serve runs one batch that begins with r and answers it.
func (w *writer) serve(r *request) {
	if !r.state.CompareAndSwap(waiting, started) {
		return
	}
	if err := w.broken(); err != nil {
		r.answer(err)
		return
	}
	w.open = append(w.open[:0], r)
	outcomes, err := w.together()
	if err == nil {
		for i, r := range w.open {
			r.answer(outcomes[i])
		}
		w.open = w.open[:0]
		return
	}
	if len(w.open) == 1 && !errors.Is(err, errRolledBack) {
		r.answer(err)
		return
	}
	w.s.log.Warn("sqlite: a batch was rolled back as a whole; its transactions are run one by one",
		"batch", len(w.open), "error", err)
	for len(w.open) > 0 {
		r := w.open[0]
		err := w.alone(r)
		w.open = w.open[1:]
		r.answer(err)
	}
}

// errRolledBack says that SQLite ended the transaction by itself, or refused
// to commit it: nothing of it is stored.
var errRolledBack = errors.New("sqlite: transaction rolled back")

// together runs the open request and what else waits in one transaction. An
// error means that nothing of it is stored; else outcomes has each closure's own.
func (w *writer) together() (outcomes []error, err error) {
	if err := w.begin(); err != nil {
		return nil, err
	}
	wrote := false
	outcomes = w.outcomes[:0]
	for i := 0; i < len(w.open); i++ {
		did, outcome, whole := w.run(w.open[i], i > 0)
		if whole != nil {
			w.rollback()
			return nil, whole
		}
		wrote = wrote || did
		outcomes = append(outcomes, outcome)
		if len(w.open) < maxBatch {
			if r := w.next(); r != nil {
				w.open = append(w.open, r)
			}
		}
	}
	w.outcomes = outcomes
	return outcomes, w.finish(wrote)
}

// alone runs one closure in a transaction of its own.
func (w *writer) alone(r *request) error {
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
// lost, and else err is the closure's own. The first closure of a transaction
// needs no savepoint: the transaction is begun anew when it fails.
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
	undo := [2]string{`ROLLBACK TO closure`, `RELEASE closure`}
	if !savepoint {
		undo = [2]string{`ROLLBACK`, `BEGIN IMMEDIATE`}
	}
	for _, sql := range undo {
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
	t := &tx{readTx{c: w.c, at: w.s.now(true)}}
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
		return nil
	}
	if !w.c.autocommit() {
		// Refused, and the transaction is still open: nothing is stored.
		w.rollback()
		return lost(err)
	}
	return w.resolve(number, err)
}

// resolve finds out what became of a COMMIT that failed and left no
// transaction open. nil means that it took place.
func (w *writer) resolve(number int64, cause error) error {
	var err error
	for wait := 10 * time.Millisecond; wait < 5*time.Second; wait *= 2 {
		var stored bool
		if stored, err = w.readBack(number); err == nil {
			w.s.log.Warn("sqlite: an unclear commit was read back", "batch", number, "stored", stored, "error", cause)
			if stored {
				w.commits.Add(1)
				return nil
			}
			return lost(cause)
		}
		time.Sleep(wait)
	}
	fault := fmt.Errorf("sqlite: stopped writing: the outcome of a commit (%w) cannot be read back: %w", cause, err)
	w.fault.Store(&fault)
	w.s.log.Error("sqlite: stopped writing until restarted", "error", fault)
	return fault
}

// readBack opens the connection anew and reads whether a batch is stored. When
// it is not, its number is given to an empty batch, which overwrites what the
// failed commit left in the log, before anybody relies on the answer.
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
	w.batch = last
	if last == number {
		return true, nil
	}
	if _, err := c.exec(`UPDATE meta SET batch = ? WHERE id = 1`, number); err != nil {
		return false, err
	}
	w.batch = number
	return false, nil
}
