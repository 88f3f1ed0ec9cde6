// Package sqlconn carries changes out in the tables of an SQLite, a PostgreSQL,
// or a MariaDB or MySQL database.
//
// # The protocol
//
// One Execute is one transaction at the target, on one connection:
//
//  1. Insert the idempotency record of (tenant, idempotency key) into a table
//     that lives in the target itself. When it is there already, the change
//     was made before: with the same digest, answer as then; with another,
//     refuse with idempotency_conflict.
//  2. Read and lock the rows. Compare them with the version and with every
//     member of the pre-image; any difference is target_changed.
//  3. Write, and read what was written. What landed must equal what was
//     approved, or all is rolled back with not_as_approved.
//  4. Complete the record with the answer, and commit.
//
// So the record and the change stand or fall together, which makes every
// operation idempotent by key (class A): a caller whose answer was lost calls
// again and gets the first answer; one that was stopped half-way and goes on
// later blocks on the record, finds it, and changes nothing.
//
// # What a failure proves
//
// Before BEGIN has succeeded nothing was sent (not_sent). After it, only a
// confirmed ROLLBACK, or an error with which the server itself ends the
// transaction, proves that nothing happened: then constraints and values are
// terminal; locks, serialization failures and deadlines are transient. A
// connection that is lost in between, or any other error of COMMIT, is
// ambiguous.
package sqlconn
