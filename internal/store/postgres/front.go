package postgres

import (
	"sync"
	"time"
)

// front is where a queue begins. PostgreSQL keeps what is done in the indexes as
// long as a transaction may still see it: while a backup runs, all that was done
// since. Who looks for the first that is not done walks over it. Where a look
// read many pages, those after it begin at the marks, which a look from the
// beginning has set. What is put before them, by a transaction that took long
// or a clock that fell back, is found by the next one of these.
type front struct {
	table string
	// look reads the marks; its argument is the time.
	look string

	mu    sync.Mutex
	marks marks
	// long is whether looks from the beginning are, and again when the next one is due.
	long  bool
	again time.Time
}

// marks are the least values of a queue's columns that count, in their unit; 0
// is below them all.
type marks [2]int64

const (
	// longLook is how many pages of its table a look reads, at least, that is long.
	longLook = 500
	// A look from the beginning takes a twentieth of the time, if it is long, and
	// is due after a second at the earliest, and ten at the latest.
	lookShare             = 20
	lookLeast, lookLatest = time.Second, 10 * time.Second
)

// pagesRead is read before and after a look: it goes on counting for a second
// or so, over transactions.
const pagesRead = `SELECT pg_stat_get_xact_blocks_fetched($1::text::regclass)`

func (f *front) stale() (m marks, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks, f.long && !time.Now().Before(f.again)
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

// from is where the queue begins.
func (t *readTx) from(f *front) (marks, error) {
	m, due := f.stale()
	if !due {
		return m, nil
	}
	now, began := t.Now().UnixMicro(), time.Now()
	pages, err := t.counting(f, ask(f.look, func(r *row) error {
		for i := range m {
			m[i] = r.int()
		}
		return nil
	}, now))
	if err == nil {
		f.set(m, pages, time.Since(began))
	}
	return m, err
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
