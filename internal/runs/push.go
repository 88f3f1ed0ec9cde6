package runs

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Outside leases the pushes of connectors of type worker to workers in other processes. A
// worker's report settles a push as the result of a connector does.
type Outside interface {
	// MayLease returns an error with code worker_not_allowed unless a principal may lease the pushes of the connectors.
	MayLease(ctx context.Context, p *gatehouse.Principal, connectors []string) error
	Lease(ctx context.Context, tenant string, c gatehouse.LaneClaim) ([]gatehouse.LeasedPush, error)
	Heartbeat(ctx context.Context, tenant, id string, generation int, holds func(owner string) bool,
		lease time.Duration) (*gatehouse.LeaseState, error)
	Complete(ctx context.Context, tenant, id string, holds func(owner string) bool,
		r gatehouse.PushResult) (*gatehouse.Push, error)
	Fail(ctx context.Context, tenant, id string, holds func(owner string) bool, f gatehouse.PushFailure) (*gatehouse.Push,
		error)
}

// SetOutside sets the source of pushes for outside workers. Call it before serving.
func (r *Runs) SetOutside(o Outside) { r.outside = o }

var _ gatehouse.WorkerService = (*Runs)(nil)

// pushWorker returns the caller of a valid request, who must have the role worker, and the source of its pushes.
func (r *Runs) pushWorker(
	ctx context.Context, request interface{ Validate() error },
) (*gatehouse.Caller, Outside, error) {
	c, err := worker(ctx, request)
	if err == nil && r.outside == nil {
		err = gatehouse.E(gatehouse.CodeUnsupported, "no connector of type worker is configured")
	}
	return c, r.outside, err
}

// LeasePushes leases due pushes to an outside worker. When none is due, it waits for one.
func (r *Runs) LeasePushes(ctx context.Context, q gatehouse.PushLeaseRequest) ([]gatehouse.LeasedPush, error) {
	c, outside, err := r.pushWorker(ctx, &q)
	if err != nil {
		return nil, err
	}
	claim := gatehouse.LaneClaim{
		Owner: ownerOf(c, q.Worker), Lease: cmp.Or(q.Lease, defaultLease).D(), Lanes: q.Connectors,
		Operations: q.Operations, Limit: cmp.Or(q.Max, 1),
	}
	if q.Own {
		claim.Proposer = c.Principal.ID
	}
	var list []gatehouse.LeasedPush
	err = usecase.Poll(ctx, r.Hints, q.Wait.D(), []string{usecase.TopicPush}, func() (_ bool, err error) {
		if err := outside.MayLease(ctx, c.Principal, q.Connectors); err != nil {
			return false, err
		}
		if q.ProposedBy != "" && claim.Proposer == "" {
			if claim.Proposer, err = r.proposerID(ctx, c, q.ProposedBy); err != nil {
				return false, err
			}
		}
		list, err = outside.Lease(ctx, c.Principal.Tenant, claim)
		return len(list) > 0, err
	})
	return usecase.OrEmpty(list), err
}

// proposerID returns the id of a principal that is named by its id or name.
func (r *Runs) proposerID(ctx context.Context, c *gatehouse.Caller, idOrName string) (id string, err error) {
	err = r.Store.View(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) error {
		p, err := tx.FindPrincipal(idOrName)
		if errors.Is(err, gatehouse.ErrNotFound) {
			return gatehouse.Violations{{Pointer: "/proposed_by", Detail: "names no principal of this tenant"}}.Err()
		}
		if err == nil {
			id = p.ID
		}
		return err
	})
	return id, err
}

// HeartbeatPush renews the lease of a push.
func (r *Runs) HeartbeatPush(ctx context.Context, id string, q gatehouse.Heartbeat) (*gatehouse.LeaseState, error) {
	c, outside, err := r.pushWorker(ctx, &q)
	if err != nil {
		return nil, err
	}
	q.Lease = cmp.Or(q.Lease, defaultLease)
	state, err := outside.Heartbeat(ctx, c.Principal.Tenant, id, q.Generation, holder(c), q.Lease.D())
	return state, usecase.NotFoundAs(err, "push", id)
}

func holder(c *gatehouse.Caller) func(string) bool {
	return func(owner string) bool { return holds(c, owner) }
}

// CompletePush records that the change was applied.
func (r *Runs) CompletePush(ctx context.Context, id string, q gatehouse.PushResult) (*gatehouse.Push, error) {
	c, outside, err := r.pushWorker(ctx, &q)
	if err != nil {
		return nil, err
	}
	p, err := outside.Complete(ctx, c.Principal.Tenant, id, holder(c), q)
	return p, usecase.NotFoundAs(err, "push", id)
}

// FailPush records that a call failed, and how much is proven about its effect.
func (r *Runs) FailPush(ctx context.Context, id string, q gatehouse.PushFailure) (*gatehouse.Push, error) {
	c, outside, err := r.pushWorker(ctx, &q)
	if err != nil {
		return nil, err
	}
	p, err := outside.Fail(ctx, c.Principal.Tenant, id, holder(c), q)
	return p, usecase.NotFoundAs(err, "push", id)
}
