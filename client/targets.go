package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.TargetService = (*Client)(nil)

// ReadTarget reads the target of a pending action, or the target of the reversal of an applied
// action.
func (c *Client) ReadTarget(ctx context.Context, id string) (*gatehouse.TargetState, error) {
	return get[gatehouse.TargetState](ctx, c, actionPath(id, "/target"), nil)
}

// Preview asks the target of a pending action what the action would do.
func (c *Client) Preview(ctx context.Context, id string) (*gatehouse.Preview, error) {
	return get[gatehouse.Preview](ctx, c, actionPath(id, "/preview"), nil)
}

var _ gatehouse.EvaluationService = (*Client)(nil)

// Evaluate stores the caller's result for a pending action.
func (c *Client) Evaluate(ctx context.Context, id string, n gatehouse.NewEvaluated) (*gatehouse.Evaluated, error) {
	return post[gatehouse.Evaluated](ctx, c, true, actionPath(id, "/evaluations"), n)
}

// TargetChanged reports that an entity in a target system has changed.
func (c *Client) TargetChanged(ctx context.Context, t gatehouse.TargetChange) (*gatehouse.TargetChanges, error) {
	return post[gatehouse.TargetChanges](ctx, c, true, "/targets/changed", t)
}
