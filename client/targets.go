package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.TargetService = (*Client)(nil)

// ReadTarget reads the target of a pending action, or what the reversal of an applied one would
// change.
func (c *Client) ReadTarget(ctx context.Context, id string) (*gatehouse.TargetState, error) {
	return get[gatehouse.TargetState](ctx, c, action(id, "/target"), nil)
}

// Preview asks the target of a pending action what it would do.
func (c *Client) Preview(ctx context.Context, id string) (*gatehouse.Preview, error) {
	return get[gatehouse.Preview](ctx, c, action(id, "/preview"), nil)
}

// TargetChanged reports that an entity in a target system has changed.
func (c *Client) TargetChanged(ctx context.Context, t gatehouse.TargetChange) (*gatehouse.TargetChanges, error) {
	out, _, err := post[gatehouse.TargetChanges](ctx, c, true, "/targets/changed", t)
	return out, err
}
