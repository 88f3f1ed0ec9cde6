package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.TargetService = (*Client)(nil)

// TargetChanged says that something in a target system is another now.
func (c *Client) TargetChanged(ctx context.Context, t gatehouse.TargetChange) (*gatehouse.TargetChanges, error) {
	out, _, err := post[gatehouse.TargetChanges](ctx, c, true, "/targets/changed", t)
	return out, err
}
