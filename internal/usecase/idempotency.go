package usecase

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// answered returns a Replay error when the caller's Idempotency-Key already has an
// answer, and idempotency_key_reused when that answer was for another body.
func answered(c *gatehouse.Caller, known gatehouse.CallerFacts) error {
	rec := known.Answer
	switch {
	case rec == nil:
		return nil
	case rec.BodyHash != c.Idempotency.BodyHash:
		return gatehouse.E(gatehouse.CodeKeyReused, "this Idempotency-Key was used for another request")
	}
	return &gatehouse.Replay{Body: rec.Body}
}

// AlreadyAnswered makes the same check as answered, in a View of its own, for use cases
// that read something before their transaction.
func (r *Runner) AlreadyAnswered(ctx context.Context, c *gatehouse.Caller) error {
	if c.Idempotency == nil {
		return nil
	}
	return r.Store.View(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) error {
		known, err := tx.OpenCaller(c)
		if err != nil {
			return err
		}
		return answered(c, known)
	})
}

// remember stores the answer under the caller's Idempotency-Key, in the transaction.
func remember(tx gatehouse.Tx, c *gatehouse.Caller, result any) error {
	if c.Idempotency == nil {
		return nil
	}
	body, err := c.Idempotency.Encode(result)
	if err != nil {
		return err
	}
	return tx.InsertIdempotency(&gatehouse.IdempotencyRecord{
		Tenant: c.Principal.Tenant, PrincipalID: c.Principal.ID,
		Route: c.Idempotency.Route, Key: c.Idempotency.Key,
		BodyHash: c.Idempotency.BodyHash, Body: body, CreatedAt: tx.Now(),
	})
}

// PurgeIdempotency deletes answers past their window, in batches, and returns how
// many it deleted.
func (r *Runner) PurgeIdempotency(ctx context.Context) (int, error) {
	total := 0
	for {
		n := 0
		err := r.Store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
			n, err = q.PurgeIdempotency(q.Now().Add(-gatehouse.IdempotencyWindow-time.Minute), 500)
			return err
		})
		total += n
		if err != nil || n < 500 {
			return total, err
		}
	}
}
