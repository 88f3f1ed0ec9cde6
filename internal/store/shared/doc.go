// Package shared is what both engines have in common: the row codecs, so that a row of one engine means the
// same in the other, and the methods whose SQL is the same on both.
//
// Such a method belongs to [Reads] or [Writes], which wrap the engine's transaction. Its statement is written
// once, as one text, with PostgreSQL's parameters $1, $2 and so on; SQLite accepts them as named parameters.
// Whatever needs an engine's own SQL stays in the engine's package: the transitions, claims and purges of
// queues, locks, filtered lists, and everything that names an index.
package shared
