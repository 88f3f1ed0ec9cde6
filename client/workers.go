package client

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.WorkerService = (*Client)(nil)

func step(id, verb string) string { return "/steps/" + segment(id) + verb }

func push(id, verb string) string { return "/pushes/" + segment(id) + verb }

// LeaseSteps leases ready steps. When none is ready, it waits for one. It is not retried after a
// connection error: leases whose answer was lost expire.
func (c *Client) LeaseSteps(ctx context.Context, r gatehouse.LeaseRequest) ([]gatehouse.LeasedStep, error) {
	return leases[gatehouse.LeasedStep](ctx, c, "/steps/lease", r)
}

// HeartbeatStep extends a lease. The answer says whether to stop.
func (c *Client) HeartbeatStep(ctx context.Context, id string, r gatehouse.Heartbeat) (*gatehouse.LeaseState, error) {
	return c.heartbeat(ctx, step(id, "/heartbeat"), r)
}

// CompleteStep reports that a step succeeded.
func (c *Client) CompleteStep(ctx context.Context, id string, r gatehouse.StepResult) (*gatehouse.Step, error) {
	return post[gatehouse.Step](ctx, c, true, step(id, "/complete"), r)
}

// FailStep reports that an attempt failed.
func (c *Client) FailStep(ctx context.Context, id string, r gatehouse.StepFailure) (*gatehouse.Step, error) {
	return post[gatehouse.Step](ctx, c, true, step(id, "/fail"), r)
}

// ProposeStep proposes the action that a step leads to, and parks the step.
func (c *Client) ProposeStep(ctx context.Context, id string, r gatehouse.StepProposal) (*gatehouse.Action, error) {
	return post[gatehouse.Action](ctx, c, true, step(id, "/propose"), r)
}

// LeasePushes leases due pushes of connectors of type worker.
func (c *Client) LeasePushes(ctx context.Context, r gatehouse.PushLeaseRequest) ([]gatehouse.LeasedPush, error) {
	return leases[gatehouse.LeasedPush](ctx, c, "/pushes/lease", r)
}

// HeartbeatPush extends a lease. The answer has the new end of the lease.
func (c *Client) HeartbeatPush(ctx context.Context, id string, r gatehouse.Heartbeat) (*gatehouse.LeaseState, error) {
	return c.heartbeat(ctx, push(id, "/heartbeat"), r)
}

// CompletePush reports that a change was applied.
func (c *Client) CompletePush(ctx context.Context, id string, r gatehouse.PushResult) (*gatehouse.Push, error) {
	return post[gatehouse.Push](ctx, c, true, push(id, "/complete"), r)
}

// FailPush reports that a call failed.
func (c *Client) FailPush(ctx context.Context, id string, r gatehouse.PushFailure) (*gatehouse.Push, error) {
	return post[gatehouse.Push](ctx, c, true, push(id, "/fail"), r)
}

func leases[T any](ctx context.Context, c *Client, path string, body any) ([]T, error) {
	out, err := post[[]T](ctx, c, false, path, body)
	if err != nil {
		return nil, err
	}
	return *out, nil
}

func (c *Client) heartbeat(ctx context.Context, path string, body gatehouse.Heartbeat) (*gatehouse.LeaseState, error) {
	return read[gatehouse.LeaseState](ctx, c, request{method: http.MethodPost, path: path, body: body, idempotent: true})
}
