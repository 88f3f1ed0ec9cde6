package sqlite

import (
	"fmt"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-dev/gatehouse"
)

// ownCacheBytes returns the size of this connection's page cache.
func (c *conn) ownCacheBytes() int64 {
	sqlite3.Xsqlite3_db_status(c.tls, c.db, sqlite3.SQLITE_DBSTATUS_CACHE_USED, c.out, c.out+8, 0)
	return int64(int32At(c.out))
}

// The writer bounds the cache; the configured cache sizes do not. It does not run beside other tests, whose
// stores share the cache.
func TestCacheIsTrimmed(t *testing.T) {
	s := openTest(t, Config{})
	grow := func(name string) (cached int64) {
		for i := range 3 {
			update(t, s, func(x gatehouse.Tx) error {
				for j := range 500 {
					if err := x.InsertAction(pendingAction(fmt.Sprint(name, i, "-", j), x.Now())); err != nil {
						return err
					}
				}
				return nil
			})
		}
		update(t, s, func(x gatehouse.Tx) error { cached = x.(*tx).c.ownCacheBytes(); return nil })
		return cached
	}
	if full := grow("a"); full < 1<<20 {
		t.Fatalf("%d bytes are cached: too few to be trimmed", full)
	}
	s.writer.cache = 256 << 10
	if left := grow("b"); left > 512<<10 {
		t.Errorf("%d bytes are cached, with a bound of %d", left, s.writer.cache)
	}
}

// TestViewsTrimTheCache lets many Views read at once, without any write after
// them. It does not run beside other tests, whose stores share the cache.
func TestViewsTrimTheCache(t *testing.T) {
	const readers, pages = 12, 3000 // each reads 12 MB; a connection caches 4 MB
	s := openTest(t, Config{Readers: readers})
	update(t, s, func(x gatehouse.Tx) error {
		c := x.(*tx).c
		_, err := c.exec(`CREATE TABLE large (content BLOB)`)
		if err == nil {
			_, err = c.exec(`WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < ?)
INSERT INTO large (content) SELECT zeroblob(3000) FROM g`, pages)
		}
		return err
	})
	var c *conn
	var during int64
	var read func(n int) error
	read = func(n int) error {
		return s.view(t.Context(), gatehouse.DefaultTenant, func(r *readTx) error {
			_, err := r.number(`SELECT count(*) FROM large WHERE instr(content, x'01') = 0`)
			if err == nil && n > 1 {
				return read(n - 1)
			}
			c = r.c
			during = c.cacheBytes()
			return err
		})
	}
	if err := read(readers); err != nil {
		t.Fatal(err)
	}
	if during <= maxCached {
		t.Fatalf("%d bytes are cached while %d Views read: too few to be trimmed", during, readers)
	}
	if after := c.cacheBytes(); after > maxCached {
		t.Errorf("%d bytes are cached after the Views; the bound is %d", after, maxCached)
	}
}
