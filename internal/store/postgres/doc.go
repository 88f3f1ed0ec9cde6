// Package postgres implements [gatehouse.Store] on one PostgreSQL database that
// any number of processes share.
//
// # Updates
//
// An Update is a READ COMMITTED transaction. It locks the rows that it relies on,
// always in the same order: approval (or action, when nobody is asked), push,
// principals by id, ceilings. Statements travel in batches, one round trip each:
// BEGIN with the first reads, queued writes with the reads that follow them, and
// the last writes with COMMIT. A guarded write takes effect only if its row is in the expected
// state. In a transition, a failed guard makes the statement fail on the server, and a batch with a
// failed statement does not commit. For all other guarded writes (WriteOrFail), the store itself
// checks the number of written rows, and so sends the writes one round trip before COMMIT. The rules:
//
//   - Every later call in the transaction, and the Update itself, returns the first server error,
//     even if the closure ignores that error.
//   - A deadlock, an exceeded lock_timeout, and a connection lost before COMMIT was
//     sent undo the transaction. The store then runs the closure again; once it has run
//     ten times, the error is ErrBusy.
//   - If the role lacks a privilege, the error is ErrBusy at once and names the table. The store
//     does not run the closure again, which would fail too. The caller may retry, since an operator
//     can grant the privilege.
//   - A caller whose context ends before COMMIT is sent gets ctx.Err(), and nothing
//     is stored. After COMMIT is sent, the caller waits for the outcome.
//   - Each connection has its own row in the table gatehouse_session. Each transaction writes its
//     number into that row: the commit mark. When the answer to a COMMIT is lost, the store looks
//     for the number on a new connection. If the number is absent, the store makes it invalid, so
//     that the transaction can never commit, and runs the closure again. If the database is
//     read-only, the store terminates the old connection's server process instead, and then reads
//     the mark. The outcome stays unknown only if the server, or the standby that the COMMIT waits
//     for, does not respond within Patience. The error then says so, and is not ErrBusy.
//   - If a canceled wait for a synchronous standby leaves a commit on the primary alone, the Update
//     does not report success. The store itself never cancels such a wait.
//
// A transition begins with an Open method (open.go). Its first batch takes the locks, and reads
// the clock and all rows that the rules examine. The method returns these rows.
//
// # Statements
//
// The arguments of a transition's statement are arrays, one for each column (statement.go). An
// Update that runs alone sends arrays of one row; a group sends the rows of all its members. A
// locking read contains SKIP LOCKED in a comment; a group sends the statement without the comment
// marks. All statements are constants, with two exceptions: the filters of lists are concatenated,
// and lists of columns are inserted (plain_test.go names the files).
//
// One statement writes a whole decision (settle.go). When its transaction runs alone, the same
// statement also writes the stored answer and the commit mark.
//
// # Groups
//
// Updates whose first call is an Open method or Now can share a transaction: group commit. A
// closure runs up to this call, and the Update then joins the queue. If no other Update is under
// way, the Update runs alone, at once. Otherwise the queued Updates form the next group, of up to
// 64, in one transaction with two round trips. The first round trip locks and reads for all
// members; each closure then runs on its own answers; the second round trip writes and commits for
// all. Each statement goes out once, with the rows of all members. An Update waits in an idle queue
// only if its context announces others (gatehouse.WithCompanions), and for a millisecond at most.
// The rules:
//
//   - The reads of a group do not wait for row locks. If another transaction holds a row, the row is
//     missing from the answers, and the member that needs it runs alone and waits for the lock. The
//     writes of a group wait for a lock for two seconds at most; then its members run alone.
//   - No two members lock or write the same action or run, or insert the same key. The store first
//     compares the keys that the members open with, and later the ids of the rows that they read. Of
//     two members that conflict, the later one runs alone.
//   - A member that makes a second read, or a write that groups do not support, runs again, alone.
//     A member whose closure fails writes nothing. If a caller gives up before COMMIT is sent, its
//     member withdraws its writes. The group continues without a member whose closure takes longer
//     than 100 ms.
//   - Any server error undoes the whole group, and each member runs again, alone. So no caller gets
//     the error of another. A guarded statement fails if the guard of any of its rows fails.
//   - A member that reserves amounts of ceilings does not read their sums. The group locks the
//     ceilings and adds all amounts, and the server checks the sums. If one sum exceeds its ceiling,
//     the group is undone, and each member runs alone and reads the sums itself.
//   - The commit mark belongs to the group. When the answer to COMMIT is lost, all members
//     share the outcome.
//   - The clock is read once for all members, after the locks.
//   - Members may belong to several tenants. Each row of a statement names its tenant.
//
// # Waiting for locks
//
// A running Update holds a caller slot, which bounds the closures, and an update slot, which bounds
// the connections. A lock that another transaction holds for long, for example that of a stopped
// replica, delays only the Updates that need it. Slots and connections remain free for all others.
// The first of the following rules is needed because a stopped replica holds the locks of a whole
// group; the second is needed because any number of callers can want the same row.
//
//   - An Update waits for a lock for 100 ms at first. If it does not get the lock, it returns its
//     update slot and its connection, and runs again, alone, with the full lock_timeout. Such Updates
//     take at most half of the update slots, but may take the only one.
//   - Among the Updates that run alone and need the same lock, one has slots. The others wait in the
//     lock queue in order of arrival, without any slot or connection, until their context ends. An
//     Update joins the queues of all its keys at once, before it begins, so no two Updates wait for
//     each other.
//   - The lock keys of an Update are the keys that its Open method names, or else the key that its
//     first read locks. If the Update does not get a later lock, it adds that key for its next run.
//   - While the first Update in the queue of a key does not get its lock, no Update with this key
//     joins a group.
//
// # Old primaries
//
// Each promotion of a standby begins a timeline of the cluster, with a higher number. The process
// remembers the highest timeline of each cluster. It refuses a server that accepts writes on a lower
// timeline, because a newer primary has replaced that server. The rules:
//
//   - The store reads the timeline when it makes a connection, before anything else. If
//     it refuses the server, it tries the next host of the address. When no host is left,
//     the error is ErrBusy.
//   - The store never looks for a COMMIT on an old primary: a commit that is absent there may
//     be stored on the new primary.
//   - The store closes an open connection to an old primary when a caller takes it from the pool. A
//     transaction under way on such a connection does not commit; its closure runs again.
//   - The highest timeline is kept in memory only. A new process knows of no promotion, and accepts
//     the first server that accepts writes.
//   - The store accepts a server that does not report its timeline, or does not show it to this role.
//
// # Reading
//
// View is a READ ONLY REPEATABLE READ transaction, so it sees one snapshot. Read is a View
// of one method call, in one round trip: a single statement, or several between BEGIN and
// COMMIT.
//
// Reads that arrive while another Read is under way form the next batch (readbatch.go): one View in
// one round trip, in which each statement goes out once, with the rows of all members. A batch
// starts as soon as the previous one ends, or has taken 25 ms. If a batch fails, each member runs
// alone. A member whose caller gives up leaves the batch at once.
//
// # Tenants
//
// Every statement about one tenant names it. In addition, every table has a row security policy that
// shows and accepts only rows of the tenant in the setting [TenantSetting]. A transaction sets its
// tenant before its first statement; a group or a batch sets the tenants of all its members. The
// policies apply to the owner of the tables, but not to a superuser or a role with BYPASSRLS. Open,
// Inspect and `gatehouse doctor --deep` warn of such a role.
//
// # Plans
//
// Every statement is written for an index. The store's connections disable plans that read or sort
// whole tables, so plans do not depend on the time of the last ANALYZE. Joins look their rows up
// one by one (LATERAL with OFFSET 0), because the planner joins tables in an arbitrary order if they
// are nearly empty when it plans.
//
// # Time
//
// Now is the database's clock. The first call of Now reads the clock, after all locks taken so far.
// A reading is never before an earlier reading of this process, nor before the time of the last audit leaf that was
// stored when the process started. If the server's clock falls back, each process repeats its last reading until
// the clock has caught up, so the readings of two processes may differ by that much.
//
// Every find and list shows a pending action as expired or rejected once its approval has ended, even
// if the sweeper has not stored that yet. Only LockAction returns the stored status.
package postgres
