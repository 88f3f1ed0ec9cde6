package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.LinkKeyService = (*Client)(nil)

// ListLinkKeys returns the keys that sign review links, newest first.
func (c *Client) ListLinkKeys(ctx context.Context) ([]*gatehouse.RingKey, error) {
	p, err := page[*gatehouse.RingKey](ctx, c, "/links/keys", nil)
	return p.Items, err
}

// RotateLinkKeys creates a key that signs further links.
func (c *Client) RotateLinkKeys(ctx context.Context) (*gatehouse.RingKey, error) {
	out, _, err := post[gatehouse.RingKey](ctx, c, false, "/links/keys/rotate", nil)
	return out, err
}

// RevokeLinkKey invalidates all links that a key has signed.
func (c *Client) RevokeLinkKey(ctx context.Context, id string) (*gatehouse.RingKey, error) {
	out, _, err := post[gatehouse.RingKey](ctx, c, false, "/links/keys/"+segment(id)+"/revoke", nil)
	return out, err
}
