// Package shared is what both engines write and read alike, so that a row of
// one means the same in the other: lists and rare values as text, the bytes of
// an audit leaf, the cursors of lists. It knows no SQL.
package shared
