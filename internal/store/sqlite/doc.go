// Package sqlite keeps all data in one SQLite file, for one process on one
// machine.
//
// # Writing
//
// One goroutine, the writer, owns the only connection that writes. Concurrent
// Updates queue for it. The writer takes the waiting closures, at most 64, into
// one transaction with one fsync (group commit), and never waits for more. The
// rules:
//
//   - An error, a panic or a violated foreign key undoes the closure that caused it, and is
//     reported to that closure's caller alone. Savepoints are used only when needed: when a closure other
//     than the first fails after a write, the batch is rolled back and run again with a savepoint for each
//     closure but the first. The next 64 batches use savepoints too.
//   - The writer remembers the sums of ceilings, and stores those that a batch changed before its
//     COMMIT. A rollback drops what it remembers.
//   - Callers are answered after COMMIT, never before.
//   - A caller's context never reaches the connection. A caller that gives up
//     before its closure has begun gets ctx.Err(), and nothing is stored; after
//     that the caller waits for the outcome.
//   - When SQLite rolls back a whole batch by itself (disk full, I/O error, out
//     of memory) or refuses its COMMIT, the closures run again one by one, each
//     in its own transaction. Only a closure that cannot succeed fails.
//   - Each batch writes its number into the meta row. When the outcome of a
//     COMMIT is unclear, the writer reopens the connection and reads the number
//     back. Before anything runs again, the writer commits the next number, so
//     that no later recovery can revive the lost batch. If this fails for ten
//     seconds, the callers get an unclear outcome; until it succeeds, the store refuses writes and
//     fails its Ping.
//
// # Reading
//
// View runs on one of a few read-only connections, in one snapshot.
//
// # Time
//
// Now is the larger of the wall clock and the highest reading handed out so
// far. Each batch that changes anything stores the highest reading, so the
// clock does not run backwards across restarts either. Once the approval of a
// pending action has ended, every find and list shows the action as expired or
// rejected, even before the sweeper stores that status. Only LockAction, which
// the writing use cases call, returns the stored state.
package sqlite
