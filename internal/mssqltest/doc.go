// Package mssqltest gives tests a fake of Microsoft SQL Server.
//
// SQL Server itself is not available to the tests. This fake replaces it, and does not prove how
// the real server behaves. It speaks TDS 7.4 and 8.0 with the real driver: logins, TLS, batches,
// sp_executesql, attentions and lost connections are real. It carries statements out on an SQLite
// file.
//
// It is strict. A statement in a form that connector/sql may not send fails with error 102. Values
// are converted by the rules of the columns' types, with the documented error numbers and the
// documented traps: settings of the session decide what is refused and what is silently cut off,
// decimals are rounded, characters that a column's code page lacks become question marks, and the
// conversion error of a value ends the transaction. A session begins with the worst defaults that an
// administrator could set, and returns to them after a reset.
//
// It has no locks on rows (a writing transaction locks the database), no plans, and no T-SQL other
// than those forms.
package mssqltest
