// Package usecase runs the use cases of internal/gate and internal/runs, so that no
// use case can forget a part: who calls, the answer that an Idempotency-Key already
// has, the transaction, the stored answer, and the hint after the commit.
package usecase
