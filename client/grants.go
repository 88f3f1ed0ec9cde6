package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.GrantService = (*Client)(nil)

// CreateGrant approves the next actions of one agent in advance.
func (c *Client) CreateGrant(ctx context.Context, n gatehouse.NewGrant) (*gatehouse.Grant, error) {
	return post[gatehouse.Grant](ctx, c, true, "/grants", n)
}

// ListGrants returns the newest 500 grants of the tenant, newest first.
func (c *Client) ListGrants(ctx context.Context) ([]*gatehouse.Grant, error) {
	return list[*gatehouse.Grant](ctx, c, "/grants", nil)
}

// FindGrant returns a grant.
func (c *Client) FindGrant(ctx context.Context, id string) (*gatehouse.Grant, error) {
	return get[gatehouse.Grant](ctx, c, "/grants/"+segment(id), nil)
}

// RevokeGrant ends a grant at once.
func (c *Client) RevokeGrant(ctx context.Context, id string) (*gatehouse.Grant, error) {
	return post[gatehouse.Grant](ctx, c, true, "/grants/"+segment(id)+"/revoke", nil)
}
