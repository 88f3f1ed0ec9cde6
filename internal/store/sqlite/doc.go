// Package sqlite keeps everything in one SQLite file, for one process on one
// machine.
//
// # Writing
//
// One goroutine, the writer, owns the one connection that writes. Concurrent
// Updates queue up for it; it takes what waits, up to 64, into one transaction
// with one fsync (group commit), without ever waiting for more. The rules:
//
//   - An error, a panic or an unfulfilled foreign key undoes that closure and
//     is its caller's alone. Savepoints are taken only when they are needed: a
//     batch in which a closure fails after it has written is rolled back and
//     run again with a savepoint for each.
//   - Callers are answered after COMMIT, never before.
//   - A caller's context never reaches the connection. One who gives up before
//     their closure began gets ctx.Err(), and nothing is stored; afterwards
//     they wait for the outcome.
//   - When SQLite rolls back a whole batch by itself (disk full, I/O error,
//     out of memory), or refuses its COMMIT, the closures are run again one by
//     one, each in its own transaction: only those fail that cannot succeed.
//   - Each batch writes its number into the meta row. When it is unclear
//     whether a COMMIT took place, the connection is opened anew and the number
//     read back; before anything is run again, the next number is committed, so
//     that no later recovery can bring the lost batch back to life. Where not
//     even that succeeds for ten seconds, the callers are told that it is
//     unclear, and the store refuses writes, and fails its Ping, until it does.
//
// # Reading
//
// View runs on one of a few read-only connections, in one snapshot.
//
// # Time
//
// Now is the larger of the wall clock and the highest reading handed out so
// far. The highest one is stored with each batch that changes anything, so it
// holds across restarts too. A pending action whose approval has run out is
// shown as expired by every find and list, whether it was swept or not; only
// LockAction, by which the writers work, returns what is stored.
package sqlite
