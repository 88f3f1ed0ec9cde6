package gate

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
)

// useCase has the caller of a use case, and what its transaction needs besides.
type useCase struct {
	by *gatehouse.Caller
	// prepare runs before each try of the transaction, outside of it; may be nil.
	prepare func() error
	// first runs before anything else in the transaction: it takes the locks before
	// the clock is read. It may be nil.
	first func(gatehouse.Tx)
}

// perform runs a use case in one transaction of the caller's tenant, once for each
// Idempotency-Key (see once), and notifies the log's readers after the commit. fn
// may run again, and then starts anew.
func perform[T any](ctx context.Context, g *Gate, u useCase, fn func(gatehouse.Tx) (*T, error)) (*T, error) {
	var out *T
	err := g.update(ctx, u.by.Principal.Tenant, u.prepare, func(tx gatehouse.Tx) (err error) {
		if u.first != nil {
			u.first(tx)
		}
		out, err = once(tx, u.by, func() (*T, error) { return fn(tx) })
		return err
	})
	if err != nil {
		return nil, err
	}
	g.hints.Notify(TopicAudit)
	return out, nil
}

// performAcross is perform with rows of several tenants.
func performAcross[T any](
	ctx context.Context,
	g *Gate,
	c *gatehouse.Caller,
	fn func(gatehouse.Queues) (*T, error),
) (*T, error) {
	var out *T
	err := g.updateQueues(ctx, func(q gatehouse.Queues) (err error) {
		out, err = once(q.In(c.Principal.Tenant), c, func() (*T, error) {
			defer q.In(c.Principal.Tenant) // the tenant in which the answer is stored
			return fn(q)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	g.hints.Notify(TopicAudit)
	return out, nil
}

// performParts is perform for a use case whose parts have their own transactions:
// the answer is stored after the last part.
func performParts[T any](
	ctx context.Context,
	g *Gate,
	c *gatehouse.Caller,
	run func() (*T, error),
) (out *T, err error) {
	if err := g.alreadyAnswered(ctx, c); err != nil {
		return nil, err
	}
	if out, err = run(); err != nil || c.Idempotency == nil {
		return out, err
	}
	return out, g.update(ctx, c.Principal.Tenant, nil, func(tx gatehouse.Tx) error {
		_, err := once(tx, c, func() (*T, error) { return out, nil })
		return err
	})
}

// once runs the part of a use case that is inside its transaction. It first
// verifies a presumed caller. If the caller's Idempotency-Key already has an
// answer, once returns it as a [gatehouse.Replay]. Otherwise it runs fn, and stores
// fn's answer with its effects, unless the answer is nil. Without a caller it only
// runs fn.
func once[T any](tx gatehouse.Tx, c *gatehouse.Caller, fn func() (*T, error)) (out *T, err error) {
	if c == nil {
		return fn()
	}
	if err := prove(tx, c); err != nil {
		return nil, err
	}
	if err := answered(tx, c); err != nil {
		return nil, err
	}
	if out, err = fn(); err != nil || out == nil {
		return nil, err
	}
	return out, remember(tx, c, out)
}

// errStale says that values read before the transaction have changed.
var errStale = errors.New("gate: read before the transaction is stale")

// maxRestarts bounds how often a use case restarts after conflicts.
const maxRestarts = 8

// update runs a use case's transaction. prepare runs before each try, for work
// outside the transaction; it may be nil.
func (g *Gate) update(ctx context.Context, tenant string, prepare func() error, fn func(gatehouse.Tx) error) error {
	return restart(ctx, func() error {
		if prepare != nil {
			if err := prepare(); err != nil {
				return err
			}
		}
		return g.store.Update(ctx, tenant, fn)
	})
}

// updateQueues is update for rows of several tenants.
func (g *Gate) updateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return restart(ctx, func() error { return g.store.UpdateQueues(ctx, fn) })
}

// restart reruns a transaction after a conflict, or after judging a policy that the
// transaction needed.
func restart(ctx context.Context, run func() error) error {
	for range maxRestarts {
		err := run()
		var ahead *unjudged
		switch {
		case errors.As(err, &ahead):
			if err := ahead.Judge(ctx); err != nil {
				return err
			}
		case errors.Is(err, errStale), errors.Is(err, gatehouse.ErrConflict):
			if ctx.Err() != nil {
				return ctx.Err()
			}
		case errors.Is(err, gatehouse.ErrBusy):
			return busy(err)
		default:
			return err
		}
	}
	return busy(gatehouse.ErrConflict)
}
