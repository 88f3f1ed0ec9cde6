package postgres

import (
	"math"
	"sync"
	"time"
)

// scanStart is the position in an index at which the scans of a queue begin. PostgreSQL keeps
// finished rows in the index as long as a transaction may see them; during a backup, it keeps every
// row that finished since the backup began. A scan from the beginning reads all of them before it
// finds the first unfinished row. If such a scan reads many pages, it sets low marks, and later scans
// begin at the marks. If the clock falls back, a new row can lie before the marks; the next scan from
// the beginning finds that row.
type scanStart struct {
	table string
	// query reads the marks of all tenants; NULL means that a part of the queue is empty. times says
	// that the marks are times. The store lowers them to oldestWriter, because a running transaction
	// may still insert rows with earlier times.
	query string
	times bool

	mu    sync.Mutex
	marks lowMarks
	// longScan says that scans from the beginning are long. nextScan is when the next such scan is
	// due.
	longScan bool
	nextScan time.Time
}

// lowMarks are the lowest values of the columns by which a queue is ordered. The value 0 is lower
// than all stored values.
type lowMarks [3]int64

const (
	// longScanPages is the number of table pages from which a scan counts as long.
	longScanPages = 500
	// The interval between two long scans from the beginning is scanShare times the duration of the first,
	// but at least minScanInterval and at most maxScanInterval.
	scanShare                        = 20
	minScanInterval, maxScanInterval = time.Second, 10 * time.Second
	// maxForeignTx is how long a transaction of another role may take; see oldestWriter.
	maxForeignTx = 2 * time.Second
)

// pagesRead reads a counter, before and after a scan. One reading alone would include earlier
// transactions, since the server resets the counter only about once a second.
const pagesRead = `SELECT pg_stat_get_xact_blocks_fetched($1::text::regclass)`

// oldestWriter reads the start of the oldest running transaction that may insert rows which the next
// snapshot does not contain. No such row has a time before that start, because a transaction reads
// the clock after its start. One of these holds for each such transaction:
//
//   - It has written a row, and so has a transaction number (backend_xid).
//   - It has not written yet. Then it belongs to the store, and is younger than 10 s.
//   - It is not in pg_stat_activity, which shows the same list during a whole transaction. Then it
//     began after the current transaction. The query therefore includes the current transaction.
//
// A backup has no transaction number, so the query ignores it. A role without pg_read_all_stats does
// not see when transactions of other roles began. If replicas connect as several roles, each
// transaction must therefore end within [maxForeignTx].
const oldestWriter = `SELECT min(xact_start) FROM pg_stat_activity
WHERE datname = current_database() AND (backend_xid IS NOT NULL OR pid = pg_backend_pid()
  OR application_name = current_setting('application_name') AND xact_start > clock_timestamp() - interval '10 s')`

// current returns the marks. mayScan says whether the caller can scan from the beginning. If due is true, the caller
// must do so. Of concurrent callers, only one gets due, and the others use the marks.
func (start *scanStart) current(mayScan bool) (m lowMarks, due bool) {
	start.mu.Lock()
	defer start.mu.Unlock()
	due = mayScan && start.longScan && !time.Now().Before(start.nextScan)
	if due {
		start.nextScan = time.Now().Add(minScanInterval)
	}
	return start.marks, due
}

// recordPages notes how many pages a scan from the marks read.
func (start *scanStart) recordPages(pages int64) {
	start.mu.Lock()
	defer start.mu.Unlock()
	start.longScan = start.longScan || pages >= longScanPages
}

// set stores the result of a scan from the beginning.
func (start *scanStart) set(m lowMarks, pages int64, took time.Duration) {
	start.mu.Lock()
	defer start.mu.Unlock()
	start.marks, start.longScan, start.nextScan = lowMarks{}, pages >= longScanPages, time.Time{}
	if start.longScan {
		start.marks, start.nextScan = m, time.Now().Add(min(max(scanShare*took, minScanInterval), maxScanInterval))
	}
}

// scanFrom returns the marks, after a scan from the beginning if one is due. Each statement of this
// scan needs a snapshot of its own. So a View that has not begun runs the scan on its connection
// before its own transaction, and a View that has begun does not scan.
func (t *readTx) scanFrom(start *scanStart) (lowMarks, error) {
	m, due := start.current(!t.view || !t.begun)
	if !due {
		return m, nil
	}
	scan := t
	if t.view {
		if t.c == nil {
			if err := t.connectView(); err != nil {
				return m, err
			}
		}
		scan = &readTx{s: t.s, ctx: t.ctx, c: t.c, single: true}
	}
	defer scan.AllTenants()()
	began := time.Now()
	oldest, marks := int64(math.MaxInt64), lowMarks{}
	pages, err := scan.countPages(start,
		ask(oldestWriter, func(r *row) error {
			if !r.Null() {
				oldest = r.timestamp()
			}
			return nil
		}),
		ask(start.query, func(r *row) error {
			for i := range r.raw {
				if r.Null() {
					marks[i] = math.MaxInt64
					r.Skip(1)
				} else {
					marks[i] = r.Int()
				}
			}
			return nil
		}))
	if err != nil {
		return m, err
	}
	if start.times {
		oldest = min(oldest, scan.at.Add(-maxForeignTx).UnixMicro())
		for i := range marks {
			marks[i] = min(marks[i], oldest)
		}
	}
	start.set(marks, pages, time.Since(began))
	return marks, nil
}

// scanRead calls read with queries that begin at the low marks, and records how many pages they read.
func (t *readTx) scanRead(start *scanStart, queries ...query) error {
	pages, err := t.countPages(start, queries...)
	if err == nil {
		start.recordPages(pages)
	}
	return err
}

// countPages calls read, and returns how many pages of the queue's table the queries read.
func (t *readTx) countPages(start *scanStart, queries ...query) (pages int64, err error) {
	sign := int64(-1)
	count := ask(pagesRead, func(r *row) error {
		pages += sign * r.Int()
		sign = 1
		return nil
	}, start.table)
	err = t.read(append(append([]query{count}, queries...), count)...)
	return pages, err
}
