package client

import (
	"context"
	"net/url"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.KeeperService = (*Client)(nil)

// PreviewArchive counts what would be archived now.
func (c *Client) PreviewArchive(ctx context.Context, retention time.Duration) (*gatehouse.ArchivePreview, error) {
	q := url.Values{}
	if retention != 0 {
		set(q, "retention", gatehouse.Duration(retention).String())
	}
	return get[gatehouse.ArchivePreview](ctx, c, "/archive/preview", q)
}

// MarkUnknown marks the pushes that a restored store would send again, or only lists them.
func (c *Client) MarkUnknown(
	ctx context.Context, r gatehouse.MarkUnknownRequest,
) (*gatehouse.MarkUnknownAnswer, error) {
	return post[gatehouse.MarkUnknownAnswer](ctx, c, false, "/pushes/mark-unknown", r)
}

// CheckRoles lists work that has waited too long for a process role (such as dispatcher) of gatehouse serve, or for an
// outside worker.
func (c *Client) CheckRoles(ctx context.Context) (*gatehouse.RoleCheck, error) {
	return get[gatehouse.RoleCheck](ctx, c, "/doctor/roles", nil)
}

// AskTargets asks the targets whether pushes with an unknown outcome had their effect.
func (c *Client) AskTargets(ctx context.Context, r gatehouse.AskRequest) (*gatehouse.AskAnswer, error) {
	return post[gatehouse.AskAnswer](ctx, c, false, "/pushes/ask", r)
}
