package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.SessionService = (*Client)(nil)

// ListSessions returns a page of sessions, newest first.
func (c *Client) ListSessions(
	ctx context.Context, f gatehouse.SessionFilter,
) (gatehouse.Page[*gatehouse.Session], error) {
	q := paging(f.Cursor, f.Limit)
	set(q, "principal", f.Principal)
	if f.All {
		q.Set("of", "all")
	}
	if f.Ended {
		q.Set("state", "any")
	}
	return page[*gatehouse.Session](ctx, c, "/sessions", q)
}

// RevokeSession ends a session; its next request is refused.
func (c *Client) RevokeSession(ctx context.Context, id string) (*gatehouse.Session, error) {
	return post[gatehouse.Session](ctx, c, false, "/sessions/"+segment(id)+"/revoke", nil)
}

// CreateSetupLink creates a person's one-time link; only this answer contains it.
func (c *Client) CreateSetupLink(ctx context.Context, idOrName string) (*gatehouse.NewSetupLink, error) {
	return post[gatehouse.NewSetupLink](ctx, c, true, principal(idOrName, "/setup-link"), nil)
}
