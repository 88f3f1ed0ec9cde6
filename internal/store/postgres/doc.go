// Package postgres keeps everything in one PostgreSQL database, for any number
// of processes.
//
// # Writing
//
// An Update is a READ COMMITTED transaction that locks what it relies on, in
// one order: approval (or action, where nobody is asked), push, principals by
// id, ceilings. Its statements travel in batches, a round trip each: BEGIN with
// the first reads, writes with the reads that follow them, the last writes with
// COMMIT. So a guarded write fails on the server, by itself: a batch that holds
// one that failed does not commit. The rules:
//
//   - The first failure of the server is the answer to everything after it, and
//     to the Update, whatever the closure makes of it.
//   - A deadlock, a lock that is not had within lock_timeout, and a connection
//     that is lost before COMMIT was sent undo the transaction, and the closure
//     is run again, up to ten times; then the error is ErrBusy.
//   - A right that the role lacks is ErrBusy at once, and names the table: nothing
//     is gained by another run, and the right may be given back.
//   - A caller who gives up before COMMIT is sent gets ctx.Err(), and nothing is
//     stored; afterwards they wait for the outcome.
//   - Each connection has a row of its own in the database, and each transaction
//     writes its number there. When the answer to a COMMIT is lost, the number
//     is looked up on a new connection, and taken away where it is not there:
//     then the transaction cannot take place later either, and the closure is
//     run again. Where nothing may be written, the session is ended first, and the
//     number says what there is. Only when the server, or the standby that it
//     waits for, does not come back within Patience is the outcome unknown; the
//     error says so, and is not ErrBusy.
//   - What the server has stored without the standby that it should have waited for
//     is not acknowledged, and nothing here ends such a wait.
//
// The writes of an approval that settles its question go out as one statement
// with the mark, where the transaction goes alone (whole.go).
//
// What an Update is told that it will be asked (Foresee) goes out with its first
// batch, after the locks of that batch, and answers until the closure writes.
//
// # Groups
//
// Updates that foresee what they ask, or ask for the clock first, may go
// together. A closure runs up to its first question and gets in line. When
// nobody is under way it goes on by itself, at once; else those in line form the
// next group, of up to 64, in one transaction and two round trips: one locks and
// reads for all, then each closure runs on its own answers, and the other writes
// and commits for all. Nobody is waited for, but who was announced (Together),
// and that for 25 ms at most. Equal statements are sent as one, over a table of
// the members' arguments (see sets.go). The rules:
//
//   - A group waits for no row's lock: what somebody else holds is not among its
//     answers, and the member that wanted it runs alone, and waits there. What it
//     writes waits for two seconds at most; then its members run alone.
//   - No two members lock or write the same action or run, nor insert the same
//     key: by what they foresee, and again by what they were given. The later one
//     runs alone.
//   - Who asks what was not foreseen, or writes what groups do not write, runs
//     alone, from the beginning; who fails by themselves has written nothing; who
//     gives up before COMMIT is sent takes their writes along; who thinks for
//     longer than a tenth of a second is left behind.
//   - Any failure of the server undoes the group, and each member runs again,
//     alone: so it is told its own failure, and nobody else's. A set of guarded
//     writes fails when one of them does.
//   - The mark is the group's, and so is its fate when the answer to COMMIT is
//     lost: all members share it.
//   - The clock is read once, after the locks, for all.
//   - Members may be of several tenants; no statement is about more than one.
//
// # Waiting for locks
//
// What somebody keeps locked, such as a replica that was stopped, only those wait
// for who want it; places and connections are left to the others. Each of the two
// rules below would be too little by itself: a stopped replica keeps what a whole
// group of it has locked, and one row can have any number of callers.
//
//   - An Update waits for a lock for 100 ms at first. Who has not got it by then
//     gives up place and connection, and is run again, alone, to wait for as long
//     as lock_timeout says. Half of the places take such Updates.
//   - Of those that go alone and want the same, one has a place. The others wait
//     in line, in the order in which they came, and have nothing: no place, no
//     connection, no caller's place. They get in line before they begin, for all
//     that they want at one moment, so no two wait for each other; and for as long
//     as their contexts last.
//   - What an Update wants is what it foresees, or else what its first question
//     locks. What it is refused later, it gets in line for with its next run.
//   - Who wants what the first in line was refused joins no group.
//
// # Old primaries
//
// Each promotion begins a timeline of the cluster, with a higher number. The
// highest that was seen of each cluster is remembered, and a server that takes
// writes on a lower one is refused: another one has taken its place. The rules:
//
//   - It is asked when a connection is made, before anything else, and where it
//     is refused the next host of the address is tried. With none left, that is
//     ErrBusy.
//   - A COMMIT is looked up on no such server: what it lacks may be stored.
//   - Connections that are open to one end when they are taken from the pool, and
//     what is under way on one is run again instead of its COMMIT.
//   - It is remembered by the process. One that starts knows of no promotion, and
//     takes the first server that takes writes.
//   - Where the server does not tell, or not to this role, nothing is refused.
//
// # Reading
//
// View is a READ ONLY REPEATABLE READ transaction: one snapshot. Read, of one
// question, is one round trip: a statement by itself, or several between BEGIN
// and COMMIT.
//
// # Tenants
//
// Every statement names its tenant, and every table has a policy that shows and
// takes the rows of the tenant in the setting [TenantSetting] only. The methods
// that callers get set it before their first statement, from their arguments.
// The policies bind the tables' owner, but neither a superuser nor a role with
// BYPASSRLS; Open and Inspect, and so `gatehouse doctor --deep`, warn of those.
//
// # Plans
//
// Every statement is written for an index. The planner's other ways, those that
// read or sort whole tables, are turned off for the store's connections, so
// that plans do not depend on when the tables were last analyzed. What is joined
// to a row is looked up row by row (LATERAL with OFFSET 0): tables that were nearly
// empty when it was asked the planner would join in any order.
//
// # Time
//
// Now is the database's clock, read after the locks that were taken until
// somebody first asked for it, and never below what this process has read
// before, nor below what was stored last when it started. Between processes it
// is as steady as the server's clock: where that falls back, time stands still
// in each, at what it has read itself. A pending
// action whose approval has run out is shown as expired by every find and list,
// whether it was swept or not; only LockAction returns what is stored.
package postgres
