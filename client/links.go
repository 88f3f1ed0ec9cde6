package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.LinkKeyService = (*Client)(nil)

// ListLinkKeys returns the keys that sign links, the newest first.
func (c *Client) ListLinkKeys(ctx context.Context) ([]*gatehouse.RingKey, error) {
	p, err := page[*gatehouse.RingKey](ctx, c, "/links/keys", nil)
	return p.Items, err
}

// RotateLinkKeys has links signed with a new key.
func (c *Client) RotateLinkKeys(ctx context.Context) (*gatehouse.RingKey, error) {
	out, _, err := post[gatehouse.RingKey](ctx, c, false, "/links/keys/rotate", nil)
	return out, err
}

// RevokeLinkKey ends all links that a key has signed.
func (c *Client) RevokeLinkKey(ctx context.Context, id string) (*gatehouse.RingKey, error) {
	out, _, err := post[gatehouse.RingKey](ctx, c, false, "/links/keys/"+segment(id)+"/revoke", nil)
	return out, err
}
