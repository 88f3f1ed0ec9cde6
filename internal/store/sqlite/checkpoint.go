package sqlite

import (
	"sync/atomic"

	sqlite3 "modernc.org/sqlite/lib"
)

// checkpointPages is how many pages are written to the log before they are
// copied into the file: 32 MB.
const checkpointPages = 8000

// longLog is how many times checkpointPages the log may hold before the writer
// waits, as long as its busy_timeout, for the Views that look into it.
const longLog = 8

// passes is how often the log is copied beside the writer before the writer has
// its turn: each copies what was written during the one before, so that little
// is left for which everybody waits.
const passes = 3

// checkpointer copies the log into the file beside the writer, on a connection
// of its own, so that nobody waits for it. What was written during its last pass
// the writer copies itself, between two batches; then the log is copied whole,
// and the next batch begins it anew, unless a View looks into it at that moment.
// So it does not grow under a load that never pauses; and where Views have kept
// it from being begun anew for long, the writer waits for them.
type checkpointer struct {
	s    *Store
	c    *conn
	wake chan struct{}
	done chan struct{}
	// copied is set when the writer has the rest to do.
	copied atomic.Bool

	// Of the writer's goroutine. pages is checkpointPages but in tests.
	pages   int64
	counted int64 // pages written in all
	since   int64 // counted when the log was copied last
	asked   bool
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

// committed is called by the writer after each commit.
func (k *checkpointer) committed(c *conn) {
	switch k.counted += c.pagesWritten(); {
	case !k.asked && k.counted-k.since >= k.pages:
		k.asked = true
		k.wake <- struct{}{}
	case k.asked && k.copied.Load():
		pages, err := c.checkpoint(`PRAGMA wal_checkpoint(PASSIVE)`)
		if err == nil && pages >= longLog*k.pages {
			_, err = c.checkpoint(`PRAGMA wal_checkpoint(RESTART)`)
		}
		if err != nil {
			k.s.log.Warn("sqlite: checkpoint", "error", err)
		}
		k.copied.Store(false)
		k.asked, k.since = false, k.counted
	}
}

// checkpoint returns how many pages the log holds.
func (c *conn) checkpoint(sql string) (pages int64, err error) {
	_, err = c.first(sql, func(r *stmt) error {
		_ = r.int() // whether it was kept from something
		pages = r.int()
		return nil
	})
	return pages, err
}

// pagesWritten counts the pages that the connection wrote since it was asked last.
func (c *conn) pagesWritten() int64 {
	if rc := sqlite3.Xsqlite3_db_status(c.tls, c.db, sqlite3.SQLITE_DBSTATUS_CACHE_WRITE, c.out, c.out+8, 1); rc != sqlite3.SQLITE_OK {
		return 0
	}
	return int64(int32At(c.out))
}
