package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.DelegationService = (*Client)(nil)

// CreateDelegation lets another person answer for a person.
func (c *Client) CreateDelegation(ctx context.Context, d gatehouse.NewDelegation) (*gatehouse.Delegation, error) {
	out, _, err := post[gatehouse.Delegation](ctx, c, true, "/delegations", d)
	return out, err
}

// ListDelegations returns the delegations from and to the caller; for an administrator, all.
func (c *Client) ListDelegations(ctx context.Context) ([]*gatehouse.Delegation, error) {
	p, err := page[*gatehouse.Delegation](ctx, c, "/delegations", nil)
	return p.Items, err
}

// EndDelegation ends a delegation early.
func (c *Client) EndDelegation(ctx context.Context, id string) (*gatehouse.Delegation, error) {
	out, _, err := post[gatehouse.Delegation](ctx, c, true, "/delegations/"+segment(id)+"/end", nil)
	return out, err
}
