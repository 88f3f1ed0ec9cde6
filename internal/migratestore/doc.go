// Package migratestore copies a data folder (SQLite) into an empty PostgreSQL
// database, row by row and byte by byte.
//
// The protocol. The folder's lock is held throughout, so its rows do not change.
// What is copied follows from the catalogs of both databases: each table and
// column must exist on both sides, except the few that belong to one engine and
// are listed in catalog.go. The log has another form in the folder (see array
// and queueLeaves). Any other difference ends the command before a row is
// copied.
//
// The first transaction on the target creates the table gatehouse_move, even
// if the target has no tables of a store yet. The table identifies the state of
// the folder (its clock and last batch) and keeps servers away until finished_at
// is set. Once the store's tables exist, the next transaction drops the foreign
// keys and saves their definitions. Then each table is copied in batches, in primary key order. A
// batch is one transaction: its rows by COPY, and the table's progress with the
// key of the last row. Afterwards the audit log's leaves that have no number are queued; the
// foreign keys are restored, one transaction each, which checks all rows; the
// sequences of identity columns are set; counts, audit logs and waiting leaves
// are compared; and finished_at is set.
//
// The process may be killed between or within these steps. The next call reads
// the progress and continues. It refuses to do so if the folder was written to
// meanwhile, because then nobody knows which rows are outdated.
package migratestore
