// Package migratestore copies a data folder (SQLite) into an empty PostgreSQL
// database, row by row and byte by byte.
//
// The protocol. The folder's lock is held all the time, so its rows stand
// still. What is copied follows from the catalogs of both databases: each
// table and column must be on both sides, but for the few that belong to one
// engine and are listed in catalog.go, and for the log, which the folder keeps
// in another form (log.go). Anything else ends the command before a row is
// written.
//
// The first transaction on the target, before there are tables of a store, makes
// the table gatehouse_move, which names the state of the folder (its clock and
// last batch) and keeps servers away until finished_at is set. When the tables
// are there, the next takes the foreign keys off and writes down their
// definitions. Then each table is copied in batches in the order of its
// primary key. A batch is one transaction: its rows by COPY, and the table's
// progress, which holds the key of its last row. Afterwards the foreign keys
// come back, one transaction each, which checks all rows; the sequences of
// identity columns are set; counts, audit logs and waiting leaves are compared;
// and finished_at is set.
//
// The process may be killed between any two of these steps, or within one. The
// next call reads how far it came and goes on. It refuses to when the folder
// was written to meanwhile, for then no one knows which rows are old.
package migratestore
