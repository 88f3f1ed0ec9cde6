package postgres

import (
	"math"
	"sync"
	"time"
)

// scanStart is where a queue begins. As long as a transaction may still see finished rows,
// PostgreSQL keeps them in the indexes; during a backup, that is every row finished since the
// backup began. A search for the first unfinished row reads all of them. Once a scan has read many
// pages, later scans begin at the low marks that a scan from the beginning has set. If the clock
// falls back, a new row can lie before the marks; the next scan from the beginning finds it.
type scanStart struct {
	table string
	// query reads the marks of all tenants, NULL for none. If times is true, the marks are
	// times, and none of them is later than the time of a row that may still be stored; see
	// oldestWriter.
	query string
	times bool

	mu    sync.Mutex
	marks lowMarks
	// longScan says that scans from the beginning are long; nextScan is when the next one is
	// due.
	longScan bool
	nextScan time.Time
}

// lowMarks are the least values of a queue's significant columns, in their unit; 0 is below
// them all.
type lowMarks [3]int64

const (
	// longScanPages is the number of table pages from which on a scan is long.
	longScanPages = 500
	// Long scans from the beginning take a twentieth of the time. The next one is due after one
	// second at the earliest and ten at the latest.
	scanShare                        = 20
	minScanInterval, maxScanInterval = time.Second, 10 * time.Second
	// maxForeignTx is how long a transaction of another role may take.
	maxForeignTx = 2 * time.Second
)

// pagesRead is read before and after a scan: the counter spans transactions for a second or so.
const pagesRead = `SELECT pg_stat_get_xact_blocks_fetched($1::text::regclass)`

// oldestWriter is the start of the oldest transaction that may have stored rows that a snapshot
// taken after this statement does not see. Such a transaction has not ended by then. If
// pg_stat_activity lists it, the condition finds it: after its first write by its transaction
// number, before that as a young transaction of the store. Otherwise it began after the asking
// transaction, which counts too: within a transaction the server repeats its first list. A
// transaction begins before it reads its clock, so it stores no time before its start. A backup
// has no transaction number. The server hides the transaction starts of other roles from a role
// without pg_read_all_stats: if replicas connect as several roles, [maxForeignTx] must cover the
// rows that the others store.
const oldestWriter = `SELECT min(xact_start) FROM pg_stat_activity
WHERE datname = current_database() AND (backend_xid IS NOT NULL OR pid = pg_backend_pid()
  OR application_name = current_setting('application_name') AND xact_start > clock_timestamp() - interval '10 s')`

// current returns where the queue begins. due tells the caller to scan from the beginning. Only
// one caller that can do so gets it; the others use the marks.
func (f *scanStart) current(can bool) (m lowMarks, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	due = can && f.longScan && !time.Now().Before(f.nextScan)
	if due {
		f.nextScan = time.Now().Add(minScanInterval)
	}
	return f.marks, due
}

// recordPages notes how many pages a scan from the marks read.
func (f *scanStart) recordPages(pages int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.longScan = f.longScan || pages >= longScanPages
}

// set stores the result of a scan from the beginning.
func (f *scanStart) set(m lowMarks, pages int64, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.marks, f.longScan, f.nextScan = lowMarks{}, pages >= longScanPages, time.Time{}
	if f.longScan {
		f.marks, f.nextScan = m, time.Now().Add(min(max(scanShare*took, minScanInterval), maxScanInterval))
	}
}

// scanFrom returns where the queue begins. Each statement of a scan from the beginning needs
// its own snapshot. Before its first statement, a View runs the scan in a separate transaction on
// its connection; later in a View there is no scan.
func (t *readTx) scanFrom(f *scanStart) (lowMarks, error) {
	m, due := f.current(!t.view || !t.begun)
	if !due {
		return m, nil
	}
	l := t
	if t.view {
		if t.c == nil {
			if err := t.connectView(); err != nil {
				return m, err
			}
		}
		l = &readTx{s: t.s, ctx: t.ctx, c: t.c, single: true}
	}
	defer func(tenant string) { l.tenant = tenant }(l.tenant)
	l.tenant = AllTenants
	began := time.Now()
	floor, read := int64(math.MaxInt64), lowMarks{}
	pages, err := l.countPages(f,
		ask(oldestWriter, func(r *row) error {
			if !r.Null() {
				floor = r.timestamp()
			}
			return nil
		}),
		ask(f.query, func(r *row) error {
			for i := range r.raw {
				if read[i] = math.MaxInt64; r.Null() {
					r.Skip(1)
				} else {
					read[i] = r.Int()
				}
			}
			return nil
		}))
	if err != nil {
		return m, err
	}
	if floor = min(floor, l.at.Add(-maxForeignTx).UnixMicro()); f.times {
		for i := range read {
			read[i] = min(read[i], floor)
		}
	}
	f.set(read, pages, time.Since(began))
	return read, nil
}

// scanRead is read for queries that begin at the low marks.
func (t *readTx) scanRead(f *scanStart, queries ...query) error {
	pages, err := t.countPages(f, queries...)
	if err == nil {
		f.recordPages(pages)
	}
	return err
}

// countPages is read, and counts the pages read of the queue's table.
func (t *readTx) countPages(f *scanStart, queries ...query) (pages int64, err error) {
	sign := int64(-1)
	count := ask(pagesRead, func(r *row) error {
		pages += sign * r.Int()
		sign = 1
		return nil
	}, f.table)
	err = t.read(append(append([]query{count}, queries...), count)...)
	return pages, err
}
