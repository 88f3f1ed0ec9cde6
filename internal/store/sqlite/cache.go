package sqlite

import (
	"encoding/binary"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// The library is built so that the page caches of all connections of a process
// are one: they take pages from each other, the oldest first, and share one
// budget, the sum of their sizes. Once it is used up, as when one holds what
// another has given up, each page that anybody lets go of is dropped at once,
// however often it is needed: a decision then read thirty pages anew and took
// 70 µs more. So the budget is made larger than what is ever used, and the
// writer sees to it that no more than maxCached is.

// roomForCaches makes the budget 1 GB, on a connection that needs no cache.
const roomForCaches = `PRAGMA cache_size = -1048576;`

// maxCached bounds the page caches of the process, in bytes: somewhat more than
// the sizes of one store's.
const maxCached = 32 << 20

// trim drops the pages that nobody has used for longest, of all connections,
// where there are more than limit bytes of them.
func (c *conn) trim(limit int64) {
	if used := c.cacheBytes(); used > limit {
		sqlite3.Xsqlite3_release_memory(c.tls, int32(min(used-limit+limit/8, 1<<30)))
	}
}

// cacheBytes is how many bytes all caches of the process hold.
func (c *conn) cacheBytes() int64 {
	sqlite3.Xsqlite3_status64(c.tls, sqlite3.SQLITE_STATUS_PAGECACHE_OVERFLOW, c.out, c.out+8, 0)
	return int64(binary.NativeEndian.Uint64(libc.GoBytes(c.out, 8)))
}
