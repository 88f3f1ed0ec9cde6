package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.NoticeService = (*Client)(nil)

// ListNotices returns a page of changes to rights and rules, newest first.
func (c *Client) ListNotices(ctx context.Context, f gatehouse.NoticeFilter) (gatehouse.Page[*gatehouse.Notice], error) {
	q := paging(f.Cursor, f.Limit)
	if f.All {
		q.Set("state", "all")
	}
	return page[*gatehouse.Notice](ctx, c, "/notices", q)
}

// DismissNotices hides notices from the caller only.
func (c *Client) DismissNotices(ctx context.Context, ids []string) (int, error) {
	type answer struct {
		Dismissed int `json:"dismissed"`
	}
	out, err := post[answer](ctx, c, false, "/notices/dismiss", map[string]any{"ids": ids})
	if err != nil {
		return 0, err
	}
	return out.Dismissed, nil
}
