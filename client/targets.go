package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.TargetService = (*Client)(nil)

// TargetChanged reports that an entity in a target system has changed.
func (c *Client) TargetChanged(ctx context.Context, t gatehouse.TargetChange) (*gatehouse.TargetChanges, error) {
	out, _, err := post[gatehouse.TargetChanges](ctx, c, true, "/targets/changed", t)
	return out, err
}
