// Package usecase runs the use cases of internal/gate and internal/runs, so that no use
// case can forget a part: the caller, the earlier answer of an Idempotency-Key, the
// transaction, the stored answer, and the hint after the commit.
package usecase

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// Runner runs all use cases.
type Runner struct {
	Store gatehouse.Store
	Hints Hints
	Log   *slog.Logger
}

// Case has the caller of a use case, and the optional steps before its effect.
type Case struct {
	By *gatehouse.Caller
	// Prepare runs before each try of the transaction, outside of it; may be nil.
	Prepare func() error
	// Open is the typed read that begins the transaction; nil reads only the caller.
	Open func(gatehouse.Tx) (gatehouse.CallerFacts, error)
}

// Perform runs a use case in one transaction of the caller's tenant (see Update), once
// for each Idempotency-Key (see Once). fn may run again, and then sets all its results
// again.
func Perform[T any](ctx context.Context, r *Runner, u Case, fn func(gatehouse.Tx) (*T, error)) (*T, error) {
	var out *T
	err := r.Update(ctx, u.By.Principal.Tenant, u.Prepare, func(tx gatehouse.Tx) (err error) {
		if u.Open == nil {
			out, err = Once(tx, u.By, func() (*T, error) { return fn(tx) })
			return err
		}
		known, err := u.Open(tx)
		if err == nil {
			out, err = once(tx, u.By, known, func() (*T, error) { return fn(tx) })
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Do is Perform for a use case that returns only an error. It stores no answer under the
// Idempotency-Key.
func (r *Runner) Do(ctx context.Context, c *gatehouse.Caller, fn func(gatehouse.Tx) error) error {
	_, err := Perform(ctx, r, Case{By: c}, func(tx gatehouse.Tx) (*struct{}, error) { return nil, fn(tx) })
	return err
}

// PerformAcross is Perform for rows of several tenants.
func PerformAcross[T any](
	ctx context.Context,
	r *Runner,
	c *gatehouse.Caller,
	fn func(gatehouse.Queues) (*T, error),
) (*T, error) {
	var out *T
	err := r.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
		out, err = Once(q.In(c.Principal.Tenant), c, func() (*T, error) {
			defer q.In(c.Principal.Tenant) // the tenant in which the answer is stored
			return fn(q)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// PerformParts is Perform for a use case whose parts have their own transactions:
// the answer is stored after the last part.
func PerformParts[T any](
	ctx context.Context,
	r *Runner,
	c *gatehouse.Caller,
	run func() (*T, error),
) (out *T, err error) {
	if err := r.AlreadyAnswered(ctx, c); err != nil {
		return nil, err
	}
	if out, err = run(); err != nil || c.Idempotency == nil {
		return out, err
	}
	return out, r.Update(ctx, c.Principal.Tenant, nil, func(tx gatehouse.Tx) error {
		_, err := Once(tx, c, func() (*T, error) { return out, nil })
		return err
	})
}

// Once runs the part of a use case that is inside its transaction. It first
// verifies a cached caller. If the caller's Idempotency-Key already has an
// answer, Once returns it as a [gatehouse.Replay]. Otherwise it runs fn, and stores
// fn's answer with its effects, unless the answer is nil. Without a caller it only
// runs fn.
func Once[T any](tx gatehouse.Tx, c *gatehouse.Caller, fn func() (*T, error)) (out *T, err error) {
	if c == nil {
		return fn()
	}
	known, err := tx.OpenCaller(c)
	if err != nil {
		return nil, err
	}
	return once(tx, c, known, fn)
}

// once is Once with the caller's facts, which the transaction has read.
func once[T any](
	tx gatehouse.Tx, c *gatehouse.Caller, known gatehouse.CallerFacts, fn func() (*T, error),
) (out *T, err error) {
	if err := Verify(c, known); err != nil {
		return nil, err
	}
	if err := answered(c, known); err != nil {
		return nil, err
	}
	if out, err = fn(); err != nil || out == nil {
		return nil, err
	}
	return out, remember(tx, c, out)
}

// errStaleCaller says that a cached caller has changed or no longer exists.
var errStaleCaller = errors.New("usecase: the cached caller is out of date")

// Verify compares a cached caller with the store's data. Each run of a transaction's
// closure verifies the caller again, since a run may be rolled back.
func Verify(c *gatehouse.Caller, known gatehouse.CallerFacts) error {
	if c.Cached == nil {
		return nil
	}
	c.Cached.Verified = known.Principal != nil && samePrincipal(known.Principal, c.Principal) &&
		(!c.StepUp || subtle.ConstantTimeCompare(known.EditToken[:], c.Cached.EditToken[:]) == 1)
	if !c.Cached.Verified {
		return errStaleCaller
	}
	return nil
}

func samePrincipal(p, q *gatehouse.Principal) bool {
	return p.ID == q.ID && p.Tenant == q.Tenant && p.Name == q.Name && p.Kind == q.Kind && p.Person == q.Person &&
		p.Sponsor == q.Sponsor && p.Disabled == q.Disabled && slices.Equal(p.Roles, q.Roles) &&
		slices.Equal(p.Groups, q.Groups)
}

// ErrStale says that values read before the transaction have changed.
var ErrStale = errors.New("usecase: read before the transaction is stale")

// maxRestarts bounds the runs of a use case, including the first.
const maxRestarts = 8

// Update runs a transaction again after conflicts, and notifies the readers of the log
// if it has written to the log. prepare runs before each try, for work outside the
// transaction; it may be nil. A caller's use case runs in Perform.
func (r *Runner) Update(ctx context.Context, tenant string, prepare func() error, fn func(gatehouse.Tx) error) error {
	return r.notified(ctx, func(wrote *bool) error {
		if prepare != nil {
			if err := prepare(); err != nil {
				return err
			}
		}
		return r.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error { return fn(noted{tx, wrote}) })
	})
}

// UpdateQueues is Update for rows of several tenants.
func (r *Runner) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return r.notified(ctx, func(wrote *bool) error {
		return r.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error { return fn(notedQueues{q, wrote}) })
	})
}

// notified restarts run, and notifies the log's readers when it has set wrote.
func (r *Runner) notified(ctx context.Context, run func(wrote *bool) error) error {
	wrote := false
	err := restart(ctx, func() error { return run(&wrote) })
	if err == nil && wrote {
		r.Hints.Notify(TopicAudit)
	}
	return err
}

// noted is a transaction that notes whether it writes to the log, whose readers are
// notified after the commit.
type noted struct {
	gatehouse.Tx
	wrote *bool
}

func (t noted) AppendLeaf(l *gatehouse.Leaf) error {
	*t.wrote = true
	return t.Tx.AppendLeaf(l)
}

func (t noted) SettleDecision(s *gatehouse.Settlement) error {
	*t.wrote = true
	return t.Tx.SettleDecision(s)
}

// notedQueues is noted for rows of several tenants.
type notedQueues struct {
	gatehouse.Queues
	wrote *bool
}

func (q notedQueues) In(tenant string) gatehouse.Tx { return noted{q.Queues.In(tenant), q.wrote} }

// View runs a read for the caller. A missing row is an error with code not_found; what
// names the kind of row in its text.
func (r *Runner) View(ctx context.Context, what string, fn func(gatehouse.ReadTx, *gatehouse.Caller) error) error {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return err
	}
	return NotFound(r.Store.View(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) error { return fn(tx, c) }), what)
}

// NeedsWork is the error of a transaction that needs slow work first: the evaluation of a
// policy, or a reload of the connectors. Do does this work outside the transaction, which
// then runs again.
type NeedsWork interface {
	error
	Do(context.Context) error
}

// restart reruns a transaction after a conflict, or after the work of a NeedsWork error. After
// maxRestarts runs it fails with code busy.
func restart(ctx context.Context, run func() error) error {
	for range maxRestarts {
		err := run()
		var ahead NeedsWork
		switch {
		case errors.As(err, &ahead):
			if err := ahead.Do(ctx); err != nil {
				return err
			}
		case errors.Is(err, ErrStale), errors.Is(err, gatehouse.ErrConflict):
			if ctx.Err() != nil {
				return ctx.Err()
			}
		case errors.Is(err, gatehouse.ErrBusy):
			return Busy(err)
		default:
			return err
		}
	}
	return Busy(gatehouse.ErrConflict)
}
