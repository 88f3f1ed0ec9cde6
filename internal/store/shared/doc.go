// Package shared is what both engines have in common: the row codecs, so that a row of one engine means the
// same in the other, and the methods whose SQL is the same on both.
//
// Such a method is a method of [Reads] or [Writes], over the engine's transaction. Its statement stands there
// once, in one piece, with the parameters $1, $2 and so on of PostgreSQL. SQLite knows them as named parameters.
// What needs an engine's own SQL stays in the engine's package: the transitions, claims and purges of queues,
// locks, filtered lists, and all that names an index.
package shared
