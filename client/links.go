package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.LinkKeyService = (*Client)(nil)

// ListLinkKeys returns the keys that sign review links, newest first.
func (c *Client) ListLinkKeys(ctx context.Context) ([]*gatehouse.RingKey, error) {
	return list[*gatehouse.RingKey](ctx, c, "/links/keys", nil)
}

// RotateLinkKeys creates a key that signs further links.
func (c *Client) RotateLinkKeys(ctx context.Context) (*gatehouse.RingKey, error) {
	return post[gatehouse.RingKey](ctx, c, false, "/links/keys/rotate", nil)
}

// RevokeLinkKey invalidates all links that a key has signed.
func (c *Client) RevokeLinkKey(ctx context.Context, id string) (*gatehouse.RingKey, error) {
	return post[gatehouse.RingKey](ctx, c, false, "/links/keys/"+segment(id)+"/revoke", nil)
}
