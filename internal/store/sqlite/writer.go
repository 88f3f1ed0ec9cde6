package sqlite

import (
	"context"
	"errors"
	"slices"
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

// request is one Update in the writer's queue.
type request struct {
	// tenant is the scope of the transaction; "" for all tenants.
	tenant string
	fn     func(*tx) error
	state  atomic.Int32
	err    error
	done   chan struct{}
}

func (r *request) answer(err error) {
	r.err = err
	close(r.done)
}

// writer owns the connection that writes.
type writer struct {
	s     *Store
	c     *conn
	queue chan *request
	done  chan struct{}
	batch int64 // number of the last committed batch
	// open holds the requests that have started and are not answered yet. running is the request whose
	// closure is executing.
	open     []*request
	running  *request
	outcomes []error
	people   people
	actives  actives
	sums     ceilingSums
	// savepointBatches is the number of coming batches that use savepoints.
	savepointBatches int
	// fault is the reason why the store refuses writes for now: the writer does not know whether
	// unclearBatch is stored. The writer reads the outcome back when retry fires. After each failure,
	// pause doubles.
	fault        atomic.Pointer[error]
	unclearBatch int64
	retry        <-chan time.Time
	pause        time.Duration

	// patience is how long the store tries to read back an unclear commit before it tells the callers
	// that the outcome is unclear.
	patience time.Duration
	// cache is the limit, in bytes, to which the writer trims the page caches after a commit: maxCached, or less in
	// a test.
	cache int64
	// commit ends a transaction; tests replace it to inject faults.
	commit func(c *conn) error
	// commits counts the transactions that wrote.
	commits atomic.Int64
}

func newWriter(s *Store, c *conn) *writer {
	return &writer{
		s: s, c: c, queue: make(chan *request, 4*maxBatch), done: make(chan struct{}), patience: 10 * time.Second,
		cache:  maxCached,
		commit: func(c *conn) error { _, err := c.exec(`COMMIT`); return err },
	}
}

// load reads the meta row: the stored clock and the last batch.
func (w *writer) load() error {
	_, err := w.c.first(`SELECT clock, batch FROM meta WHERE id = 1`, func(r *stmt) error {
		w.s.clock.Store(r.Int())
		w.batch = r.Int()
		return nil
	})
	return err
}

func (w *writer) close() error { return w.c.close() }

// refusal returns the reason why the store refuses writes for now; nil while it accepts writes. The error
// wraps ErrBusy, since a refused request stores nothing.
func (w *writer) refusal() error {
	if e := w.fault.Load(); e != nil {
		return *e
	}
	return nil
}

// Update lets the writer run fn in a transaction; see the package comment for the rules.
func (s *Store) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	return s.update(ctx, tenant, func(t *tx) error { return fn(t) })
}

// UpdateQueues is Update for all tenants.
func (s *Store) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return s.update(ctx, "", func(t *tx) error { return fn(queues{t}) })
}

func (s *Store) update(ctx context.Context, tenant string, fn func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closing:
		return errClosed
	default:
	}
	r := &request{tenant: tenant, fn: fn, done: make(chan struct{})}
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
		// The writer has ended, and has answered all requests that it took from the queue.
		select {
		case <-r.done:
			return r.err
		default:
			return errClosed
		}
	}
}

// loop serves the queue, batch by batch, until the store closes.
func (w *writer) loop() {
	defer func() {
		if w.running != nil {
			go w.resume()
			return
		}
		close(w.done)
	}()
	w.oneByOne()
	for {
		select {
		case r := <-w.queue:
			w.serve(r)
		case <-w.retry:
			w.retryReadBack()
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

// resume runs the loop in a new goroutine after a closure has ended the old goroutine (runtime.Goexit),
// as a test that fails inside a closure does. The transaction of the batch is rolled back, and the other
// closures of the batch run again.
func (w *writer) resume() {
	culprit := w.running
	w.running = nil
	w.rollback()
	w.open = slices.DeleteFunc(w.open, func(r *request) bool { return r == culprit })
	culprit.answer(errors.New("sqlite: the closure ended its goroutine"))
	w.loop()
}

// next takes the first request whose caller still waits; nil when the queue has none.
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

// serve runs the batch that begins with r and answers its requests.
func (w *writer) serve(r *request) {
	if !r.state.CompareAndSwap(waiting, started) {
		return
	}
	if err := w.refusal(); err != nil {
		r.answer(err)
		return
	}
	w.open = append(w.open[:0], r)
	outcomes, err := w.runBatch()
	if err == nil {
		for i, r := range w.open {
			r.answer(outcomes[i])
		}
		w.open = w.open[:0]
		return
	}
	if w.unclearBatch != 0 || len(w.open) == 1 && !errors.Is(err, errRolledBack) {
		for _, r := range w.open {
			r.answer(err)
		}
		w.open = w.open[:0]
		return
	}
	w.s.log.Warn("sqlite: a batch was rolled back as a whole; its transactions are run one by one",
		"batch", len(w.open), "error", err)
	w.oneByOne()
}

// oneByOne runs each open request in its own transaction and answers it.
func (w *writer) oneByOne() {
	for len(w.open) > 0 {
		r := w.open[0]
		err := w.runAlone(r)
		w.open = w.open[1:]
		r.answer(err)
	}
}
