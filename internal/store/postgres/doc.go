// Package postgres implements [gatehouse.Store] on one PostgreSQL database that
// any number of processes share.
//
// # Updates
//
// An Update is a READ COMMITTED transaction. It locks the rows that it relies on,
// always in the same order: approval (or action, when nobody is asked), push,
// principals by id, ceilings. Statements travel in batches, one round trip each:
// BEGIN with the first reads, queued writes with the reads that follow them, and
// the last writes with COMMIT. A guarded write of a transition checks its guard on the server,
// and a batch with a failed statement does not commit. The other guarded writes (WriteOrFail) are
// sent before COMMIT, one round trip earlier, and the store checks the number of rows. The rules:
//
//   - The first server error is the answer to every later call in the transaction
//     and to the Update itself, whatever the closure does with that error.
//   - A deadlock, an exceeded lock_timeout, and a connection lost before COMMIT was
//     sent undo the transaction. The store then runs the closure again, up to ten
//     times; after that the error is ErrBusy.
//   - A missing privilege of the role is ErrBusy at once, and the error names the
//     table. Another run would gain nothing, and the privilege may be granted again.
//   - A caller whose context ends before COMMIT is sent gets ctx.Err(), and nothing
//     is stored. After COMMIT is sent, the caller waits for the outcome.
//   - Each connection has its own row in the database, its session. Each transaction writes its
//     number there: the commit mark. When the answer to a COMMIT is lost, the store looks the
//     number up on a new connection. If the number is absent, the store revokes it, so that the
//     transaction cannot commit later either, and runs the closure again. Where the database
//     refuses writes, the store terminates the session first, and the mark then gives the outcome.
//     The outcome is unknown only when the server, or the standby that it waits for, does not come
//     back within Patience. That error says so, and is not ErrBusy.
//   - A commit that the server stored without the standby that it should have waited
//     for is not acknowledged. The store never ends such a wait.
//
// A transition begins with an Open method (open.go). Its first batch takes the locks,
// reads the clock and all rows that the rules examine. The method returns the rows.
//
// # Statements
//
// The statements of the transitions are texts over arrays, one array for each column
// (statement.go). An Update that runs alone sends one row, a group the rows of all its
// members. A read that locks says SKIP LOCKED in a comment; a group sends the text without the
// comment marks. No text is made from other texts; only filters of lists are put together, and
// lists of columns are inserted (plain_test.go names the files).
//
// A decision is one statement with all its parts (settle.go). When its transaction runs
// alone, the stored answer and the commit mark are parts of it, too.
//
// # Groups
//
// Updates that begin with an Open method, or ask for the clock first, can share a
// transaction: group commit. A closure runs up to its first read and then joins the
// queue. If no other Update is under way, it runs alone, at once. Otherwise the queued Updates form
// the next group, of up to 64, in one transaction with two round trips. The first locks and reads
// for all members; each closure then runs on its own answers; the second writes and commits for
// all. The queue holds only Updates with companions (gatehouse.WithCompanions), for a millisecond at most.
// Each statement goes out once, with the rows of all members. The rules:
//
//   - A group waits for no row lock. A row that somebody else holds is missing from the
//     answers, and the member that wanted it runs alone and waits there. The writes of a
//     group wait for two seconds at most; then its members run alone.
//   - No two members lock or write the same action or run, or insert the same key. The
//     store checks the keys that the members open with, and checks again with the rows that
//     they got. The later member runs alone.
//   - A member that makes a second read, or a write that groups do not support, runs again, alone.
//     A member whose closure fails writes nothing. A member whose caller gives up before COMMIT is
//     sent withdraws its writes. The group continues without a member whose closure takes longer
//     than 100 ms.
//   - Any server error undoes the whole group, and each member runs again, alone. So each caller
//     gets only its own failure. A guarded statement fails when the guard of one row does.
//   - A member that claims ceilings does not read their sums. The group locks the ceilings, adds all
//     claims, and has the server check the sums. A claim that does not fit undoes the group, and each
//     member that runs alone compares its claims with the sums.
//   - The commit mark belongs to the group. When the answer to COMMIT is lost, all members
//     share the outcome.
//   - The clock is read once for all members, after the locks.
//   - Members may belong to several tenants. Each row of a statement names its tenant.
//
// # Waiting for locks
//
// A lock that is held for long, for example by a stopped replica, delays only the Updates
// that want it. Slots and connections remain free for all others. Both rules below are
// needed: a stopped replica holds the locks of a whole group, and one row can have any
// number of callers.
//
//   - An Update waits for a lock for 100 ms at first. If it does not get the lock, it
//     returns its slot and its connection and runs again, alone, with the full
//     lock_timeout. Half of the slots take such Updates.
//   - Among Updates that run alone and want the same lock, one has a slot. The others wait
//     in the lock queue in order of arrival and hold nothing: no slot, no connection, no
//     caller's slot. An Update joins the queues of all its keys at once and before it
//     begins, so no two Updates wait for each other. It waits as long as its context lasts.
//   - The lock keys of an Update are those that it opens with, or else the key that its first
//     read locks. If a later lock is refused, the Update queues for that key with its
//     next run.
//   - An Update whose key was refused to the first in the queue joins no group.
//
// # Old primaries
//
// Each promotion begins a timeline of the cluster, with a higher number. The process
// remembers the highest timeline that it saw of each cluster. It refuses a server that
// takes writes on a lower one, since another server has taken its place. The rules:
//
//   - The store asks for the timeline when it makes a connection, before anything else. If
//     it refuses the server, it tries the next host of the address. When no host is left,
//     the error is ErrBusy.
//   - The store never looks a COMMIT up on an old primary: a commit that is absent there may
//     be stored on the new one.
//   - The store closes an open connection to an old primary when a caller takes it from the pool. A
//     transaction under way on such a connection does not commit; its closure runs again.
//   - The memory belongs to the process. A new process does not know about promotions, and accepts
//     the first server that accepts writes.
//   - The store accepts a server that does not report its timeline, or hides it from this role.
//
// # Reading
//
// View is a READ ONLY REPEATABLE READ transaction, so it sees one snapshot. Read is a View
// with one question, in one round trip: a single statement, or several between BEGIN and
// COMMIT.
//
// Reads that arrive while another one is under way form the next batch (readbatch.go): one View,
// in one round trip, in which each statement goes out once, with the rows of all members. A batch waits for no more members. If it fails, each member runs alone; a member that
// gives up leaves at once. A batch that takes longer than 25 ms does not delay the next one.
//
// # Tenants
//
// Every statement names its tenant. In addition, every table has a row security policy that
// shows and accepts only rows of the tenant in the setting [TenantSetting], which a transaction
// sets before its first statement; a group and a batch name the tenants of their members. The policies apply to the owner of the tables, but not to a
// superuser or a role with BYPASSRLS; Open and Inspect, and so `gatehouse doctor --deep`, warn of
// such a role.
//
// # Plans
//
// Every statement is written for an index. The store's connections turn off the plans that read
// or sort whole tables, so plans do not depend on the time of the last ANALYZE. Joined rows are
// looked up row by row (LATERAL with OFFSET 0), because the planner would join tables in any
// order if they were nearly empty when it planned.
//
// # Time
//
// Now is the database's clock. The first call of Now reads it, after the locks taken before. It
// never falls below an earlier reading of this process, nor below the time that was stored last
// when the process started. Between processes it is as steady as the server's clock: when that
// clock falls back, each process repeats its last reading until the clock has caught up.
//
// Every find and list shows a pending action as expired once its approval has run out, whether
// or not the sweeper has stored that. Only LockAction returns the stored status.
package postgres
