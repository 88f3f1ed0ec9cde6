package postgres

import (
	"math"
	"sync"
	"time"
)

// front is where a queue begins. PostgreSQL keeps what is done in the indexes as
// long as a transaction may still see it: while a backup runs, all that was done
// since. Who looks for the first that is not done walks over it. Where a look
// read many pages, those after it begin at the marks, which a look from the
// beginning has set. What a clock that fell back puts before them is found by
// the next one of these.
type front struct {
	table string
	// look reads the marks of all tenants, NULL for none. Where they are times, none
	// is after that of what may still be stored; see underWay.
	look  string
	times bool

	mu    sync.Mutex
	marks marks
	// long is whether looks from the beginning are, and again when the next one is due.
	long  bool
	again time.Time
}

// marks are the least values of a queue's columns that count, in their unit; 0
// is below them all.
type marks [3]int64

const (
	// longLook is how many pages of its table a look reads, at least, that is long.
	longLook = 500
	// A look from the beginning takes a twentieth of the time, if it is long, and
	// is due after a second at the earliest, and ten at the latest.
	lookShare             = 20
	lookLeast, lookLatest = time.Second, 10 * time.Second
	// unwritten is how long a transaction of another role may take.
	unwritten = 2 * time.Second
)

// pagesRead is read before and after a look: it goes on counting for a second
// or so, over transactions.
const pagesRead = `SELECT pg_stat_get_xact_blocks_fetched($1::text::regclass)`

// underWay is when the oldest transaction began that may have stored what a
// snapshot taken after this statement does not see. Such a one has not ended by
// then, so it is here: by the number that it has from its first write on, or,
// before that, by being one of the store's and young. Or it begins later, and
// later than who asks: within a transaction the server gives the same answer
// again. It began before it read its clock, so it stores no time before this one.
// A backup has no number. When transactions of other roles began is kept from a
// role that is no pg_read_all_stats: where replicas connect as several,
// [unwritten] has to do for what the others store.
const underWay = `SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() AND (backend_xid IS NOT NULL
  OR pid = pg_backend_pid() OR application_name = current_setting('application_name') AND xact_start > clock_timestamp() - interval '10 s')`

// stale is where the queue begins, and whether who asks is to look for it from
// the beginning, if it can: one does, and the others go on.
func (f *front) stale(can bool) (m marks, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	due = can && f.long && !time.Now().Before(f.again)
	if due {
		f.again = time.Now().Add(lookLeast)
	}
	return f.marks, due
}

// saw takes down how many pages a look from the marks read.
func (f *front) saw(pages int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.long = f.long || pages >= longLook
}

// set takes down what a look from the beginning came to.
func (f *front) set(m marks, pages int64, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.marks, f.long, f.again = marks{}, pages >= longLook, time.Time{}
	if f.long {
		f.marks, f.again = m, time.Now().Add(min(max(lookShare*took, lookLeast), lookLatest))
	}
}

// from is where the queue begins. The statements of a look each take a snapshot:
// before a View's first it has a transaction of its own, on its connection, and
// after that there is none.
func (t *readTx) from(f *front) (marks, error) {
	m, due := f.stale(!t.view || !t.begun)
	if !due {
		return m, nil
	}
	l := t
	if t.view {
		l = &readTx{s: t.s, ctx: t.ctx, c: t.c, single: true}
	}
	defer func(tenant string) { l.tenant = tenant }(l.tenant)
	l.tenant = AllTenants
	began := time.Now()
	floor, read := int64(math.MaxInt64), marks{}
	pages, err := l.counting(f,
		ask(underWay, func(r *row) error {
			if !r.null() {
				floor = r.timestamp()
			}
			return nil
		}),
		ask(f.look, func(r *row) error {
			for i := range r.raw {
				if read[i] = math.MaxInt64; r.null() {
					r.skip(1)
				} else {
					read[i] = r.int()
				}
			}
			return nil
		}))
	if err != nil {
		return m, err
	}
	if floor = min(floor, l.at.Add(-unwritten).UnixMicro()); f.times {
		for i := range read {
			read[i] = min(read[i], floor)
		}
	}
	f.set(read, pages, time.Since(began))
	return read, nil
}

// looks is read for queries that begin at the marks of a front.
func (t *readTx) looks(f *front, queries ...query) error {
	pages, err := t.counting(f, queries...)
	if err == nil {
		f.saw(pages)
	}
	return err
}

// counting is read that counts the pages of the front's table.
func (t *readTx) counting(f *front, queries ...query) (pages int64, err error) {
	sign := int64(-1)
	count := ask(pagesRead, func(r *row) error {
		pages += sign * r.int()
		sign = 1
		return nil
	}, f.table)
	err = t.read(append(append([]query{count}, queries...), count)...)
	return pages, err
}
