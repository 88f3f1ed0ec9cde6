package client

import (
	"context"
	"net/url"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.InsightService = (*Client)(nil)

// Insights sums up how the gate was used.
func (c *Client) Insights(ctx context.Context, f gatehouse.InsightFilter) (*gatehouse.Insights, error) {
	q := make(url.Values)
	set(q, "action_type", f.ActionType)
	set(q, "proposed_by", f.ProposedBy)
	if !f.Since.IsZero() {
		set(q, "since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	return get[gatehouse.Insights](ctx, c, "/insights", q)
}
