package sqlite

import (
	"sync/atomic"

	sqlite3 "modernc.org/sqlite/lib"
)

// checkpointPages is how many pages (32 MB) are written to the log before a
// checkpoint copies them into the file.
const checkpointPages = 8000

// longLog times checkpointPages is the log size from which the writer waits, up
// to busy_timeout, for the Views that still read the log.
const longLog = 8

// passes is how often the checkpointer copies the log before the writer copies
// the rest. Each pass copies the pages written during the previous pass, so callers wait only while
// the writer copies the small rest.
const passes = 3

// checkpointer copies the log into the file on a separate connection, in parallel with the writer.
// Between two batches, the writer copies the pages written during the last pass. Then the whole log
// is copied, and the next batch restarts the log from the beginning, unless a View reads it at that
// moment. So the log does not grow under a load that never pauses. When Views have prevented the
// restart for a long time, the writer waits for them.
type checkpointer struct {
	s    *Store
	c    *conn
	wake chan struct{}
	done chan struct{}
	// copied is set when the checkpointer is done and the writer must copy the
	// rest.
	copied atomic.Bool

	// Used by the writer's goroutine only. pages is checkpointPages except in
	// tests.
	pages     int64
	counted   int64 // total pages written
	since     int64 // value of counted at the last copy of the log
	requested bool
}

func newCheckpointer(s *Store, c *conn) *checkpointer {
	return &checkpointer{s: s, c: c, pages: checkpointPages, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (k *checkpointer) run() {
	defer close(k.done)
	for range k.wake {
		for range passes {
			if _, err := k.c.checkpoint(`PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
				k.s.log.Warn("sqlite: checkpoint", "error", err)
			}
		}
		k.copied.Store(true)
	}
}

// close ends the goroutine. The writer must have ended.
func (k *checkpointer) close() error {
	close(k.wake)
	<-k.done
	return k.c.close()
}

// committed runs in the writer after each commit.
func (k *checkpointer) committed(c *conn) {
	switch k.counted += c.pagesWritten(); {
	case !k.requested && k.counted-k.since >= k.pages:
		k.requested = true
		k.wake <- struct{}{}
	case k.requested && k.copied.Load():
		pages, err := c.checkpoint(`PRAGMA wal_checkpoint(PASSIVE)`)
		if err == nil && pages >= longLog*k.pages {
			_, err = c.checkpoint(`PRAGMA wal_checkpoint(RESTART)`)
		}
		if err != nil {
			k.s.log.Warn("sqlite: checkpoint", "error", err)
		}
		k.copied.Store(false)
		k.requested, k.since = false, k.counted
	}
}

// checkpoint runs a checkpoint and returns the number of pages in the log.
func (c *conn) checkpoint(sql string) (pages int64, err error) {
	_, err = c.first(sql, func(r *stmt) error {
		_ = r.Int() // whether the checkpoint was blocked
		pages = r.Int()
		return nil
	})
	return pages, err
}

// pagesWritten returns the number of pages written since the last call.
func (c *conn) pagesWritten() int64 {
	if rc := sqlite3.Xsqlite3_db_status(c.tls, c.db, sqlite3.SQLITE_DBSTATUS_CACHE_WRITE,
		c.out, c.out+8, 1); rc != sqlite3.SQLITE_OK {
		return 0
	}
	return int64(int32At(c.out))
}
