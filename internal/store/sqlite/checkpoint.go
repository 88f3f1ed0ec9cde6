package sqlite

import (
	"sync/atomic"

	sqlite3 "modernc.org/sqlite/lib"
)

// checkpointPages is the number of pages (32 MB) after which a checkpoint copies the write-ahead log (WAL)
// into the database file.
const checkpointPages = 8000

// longLog is a factor: when the WAL has at least longLog times checkpointPages pages, the writer waits for the
// Views that still read it, up to busy_timeout.
const longLog = 8

// passes is how often the checkpointer copies the WAL before the writer copies the rest. Each pass
// copies only the pages written during the previous pass, so the rest is small and callers wait briefly.
const passes = 3

// checkpointer copies the WAL into the database file on a connection of its own, in parallel with the
// writer. Then the writer, between two batches, copies the pages written during the last pass. Now the
// whole WAL is copied, and the next batch writes from the WAL's beginning again, unless a View reads the
// WAL at that moment. So the WAL does not grow without end under a load that never pauses. When Views have
// prevented this restart for long, the writer waits for them.
type checkpointer struct {
	s    *Store
	c    *conn
	wake chan struct{}
	done chan struct{}
	// copied is true if the checkpointer has ended its passes, so the writer must copy the rest.
	copied atomic.Bool

	// Only the writer's goroutine uses the following fields.

	pages         int64 // checkpointPages except in tests
	written       int64 // all pages written so far
	writtenAtCopy int64 // value of written when the WAL was last copied
	requested     bool  // the checkpointer was woken, and the writer has not copied the rest
}

func newCheckpointer(s *Store, c *conn) *checkpointer {
	return &checkpointer{s: s, c: c, pages: checkpointPages, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (k *checkpointer) run() {
	defer close(k.done)
	for range k.wake {
		for range passes {
			if _, err := k.c.checkpoint(`PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
				k.s.log.Warn("sqlite: a checkpoint failed", "error", err)
			}
		}
		k.copied.Store(true)
	}
}

// close ends the checkpointer's goroutine. The writer must end first.
func (k *checkpointer) close() error {
	close(k.wake)
	<-k.done
	return k.c.close()
}

// committed runs in the writer after each commit.
func (k *checkpointer) committed(c *conn) {
	k.written += c.pagesWritten()
	switch {
	case !k.requested && k.written-k.writtenAtCopy >= k.pages:
		k.requested = true
		k.wake <- struct{}{}
	case k.requested && k.copied.Load():
		pages, err := c.checkpoint(`PRAGMA wal_checkpoint(PASSIVE)`)
		if err == nil && pages >= longLog*k.pages {
			_, err = c.checkpoint(`PRAGMA wal_checkpoint(RESTART)`)
		}
		if err != nil {
			k.s.log.Warn("sqlite: a checkpoint failed", "error", err)
		}
		k.copied.Store(false)
		k.requested, k.writtenAtCopy = false, k.written
	}
}

// checkpoint runs a checkpoint and returns the number of pages in the WAL.
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
