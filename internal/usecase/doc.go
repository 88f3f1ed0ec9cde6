// Package usecase runs the use cases of internal/gate and internal/runs, so that no use
// case can forget a part: the caller, the earlier answer of an Idempotency-Key, the
// transaction, the stored answer, and the hint after the commit.
package usecase
