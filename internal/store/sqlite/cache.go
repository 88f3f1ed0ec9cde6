package sqlite

import (
	"encoding/binary"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// All connections of the process share one page cache (the library is compiled
// that way): they take the oldest pages from each other, and their sizes add up
// to one budget. Once the budget is used up, for instance after one connection
// took pages from another, every page is dropped as soon as it is
// released, however often it is needed. A decision then read thirty pages again
// and took 70 µs longer. So the budget exceeds any use. A reading connection
// stays within its own cache size. The writer after each commit, and each View
// at its end, trim the shared cache to maxCached.

// roomForCaches sets the budget to 1 GB, on a connection that needs no cache.
const roomForCaches = `PRAGMA cache_size = -1048576;`

// maxCached bounds the page cache of the process, in bytes. It is slightly more
// than the cache sizes of the writer and four readers.
const maxCached = 32 << 20

// trim releases the least recently used pages of all connections when they hold
// more than limit bytes.
func (c *conn) trim(limit int64) {
	if used := c.cacheBytes(); used > limit {
		sqlite3.Xsqlite3_release_memory(c.tls, int32(min(used-limit+limit/8, 1<<30)))
	}
}

// cacheBytes returns the size of all page caches of the process.
func (c *conn) cacheBytes() int64 {
	sqlite3.Xsqlite3_status64(c.tls, sqlite3.SQLITE_STATUS_PAGECACHE_OVERFLOW, c.out, c.out+8, 0)
	return int64(binary.NativeEndian.Uint64(libc.GoBytes(c.out, 8)))
}
