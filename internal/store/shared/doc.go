// Package shared encodes and decodes what both engines store in the same form,
// so that a row of one means the same in the other: lists and rare values as
// text, the bytes of an audit leaf, the cursors of lists. It runs no SQL.
package shared
