// Package sqlconn carries changes out in the tables of an SQLite, a PostgreSQL,
// a MariaDB or MySQL, or a SQL Server database.
//
// # The protocol
//
// One Execute is one transaction at the target, on one connection:
//
//  1. Insert the idempotency record of (tenant, idempotency key) into a table of the
//     target itself. If the record exists, the change was made before: with the same
//     digest, return the stored answer; with another digest, refuse with
//     idempotency_conflict.
//  2. Read and lock the rows. Compare them with the version and with every member of
//     the pre-image; any difference is target_changed.
//  3. Write, and read the rows again. If they differ from the approved change, roll back with
//     not_as_approved.
//  4. Complete the record with the answer, and commit.
//
// The record and the change commit together, which makes every operation idempotent by
// key (class A). A caller whose answer was lost repeats the call and gets the first
// answer. A caller that was stopped halfway and continues later blocks on the record,
// finds it, and changes nothing.
//
// # What a failure proves
//
// Before a successful BEGIN, no change was sent: the failure is not_sent, transient for a lock, or terminal for a
// call that cannot be carried out. After it, only two events prove that nothing happened: a confirmed ROLLBACK, or
// an error by which the server itself ends the transaction. Constraint violations and invalid values are then
// terminal; locks, serialization failures and deadlines are transient. A connection that is lost in between, or any
// other error of COMMIT, is ambiguous.
package sqlconn
