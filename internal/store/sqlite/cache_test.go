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

// The writer bounds the cache; the configured cache sizes do not.
func TestCacheIsTrimmed(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	grow := func(name string) (cached int64) {
		for i := range 4 {
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
