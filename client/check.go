package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.CheckService = (*Client)(nil)

// CheckStore makes the server check its whole store, which takes up to 90 s.
func (c *Client) CheckStore(ctx context.Context, held []gatehouse.LogHead) (*gatehouse.StoreCheck, error) {
	return post[gatehouse.StoreCheck](ctx, c, false, "/doctor", struct {
		Held []gatehouse.LogHead `json:"held,omitempty"`
	}{held})
}

// CheckConfiguration makes the server check everything that its configuration names.
func (c *Client) CheckConfiguration(ctx context.Context) (*gatehouse.ConfigurationCheck, error) {
	return get[gatehouse.ConfigurationCheck](ctx, c, "/doctor/configuration", nil)
}
