package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.DelegationService = (*Client)(nil)

// CreateDelegation lets another person answer for a person.
func (c *Client) CreateDelegation(ctx context.Context, d gatehouse.NewDelegation) (*gatehouse.Delegation, error) {
	return post[gatehouse.Delegation](ctx, c, true, "/delegations", d)
}

// ListDelegations returns the delegations from or to the caller; for an administrator, all.
func (c *Client) ListDelegations(ctx context.Context) ([]*gatehouse.Delegation, error) {
	return list[*gatehouse.Delegation](ctx, c, "/delegations", nil)
}

// EndDelegation ends a delegation early.
func (c *Client) EndDelegation(ctx context.Context, id string) (*gatehouse.Delegation, error) {
	return post[gatehouse.Delegation](ctx, c, true, "/delegations/"+segment(id)+"/end", nil)
}
