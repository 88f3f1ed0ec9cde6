package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.MandateService = (*Client)(nil)

// ProposeMandate proposes a plan.
func (c *Client) ProposeMandate(ctx context.Context, p gatehouse.Plan) (*gatehouse.Action, error) {
	return post[gatehouse.Action](ctx, c, true, "/mandates", p)
}

// ListMandates returns the tenant's 500 newest mandates, in that order; an agent gets its own.
func (c *Client) ListMandates(ctx context.Context) ([]*gatehouse.Mandate, error) {
	return list[*gatehouse.Mandate](ctx, c, "/mandates", nil)
}

// FindMandate returns a mandate.
func (c *Client) FindMandate(ctx context.Context, id string) (*gatehouse.Mandate, error) {
	return get[gatehouse.Mandate](ctx, c, "/mandates/"+segment(id), nil)
}

// NarrowMandate lowers limits at once.
func (c *Client) NarrowMandate(ctx context.Context, id string, n gatehouse.Narrowing) (*gatehouse.Mandate, error) {
	return c.changeMandate(ctx, id, "narrow", n)
}

// PauseMandate stops a mandate at once.
func (c *Client) PauseMandate(ctx context.Context, id string) (*gatehouse.Mandate, error) {
	return c.changeMandate(ctx, id, "pause", nil)
}

// ResumeMandate ends a pause.
func (c *Client) ResumeMandate(ctx context.Context, id string) (*gatehouse.Mandate, error) {
	return c.changeMandate(ctx, id, "resume", nil)
}

// RevokeMandate ends a mandate at once.
func (c *Client) RevokeMandate(ctx context.Context, id string) (*gatehouse.Mandate, error) {
	return c.changeMandate(ctx, id, "revoke", nil)
}

func (c *Client) changeMandate(ctx context.Context, id, verb string, in any) (*gatehouse.Mandate, error) {
	return post[gatehouse.Mandate](ctx, c, true, "/mandates/"+segment(id)+"/"+verb, in)
}
