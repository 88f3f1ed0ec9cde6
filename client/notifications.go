package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/gatehouse-dev/gatehouse"
)

var (
	_ gatehouse.NotificationService = (*Client)(nil)
	_ gatehouse.BounceService       = (*Client)(nil)
)

// ListNotifications returns a page of messages with their recipients and status, newest first.
func (c *Client) ListNotifications(
	ctx context.Context, f gatehouse.NotificationFilter,
) (gatehouse.Page[*gatehouse.Notification], error) {
	q := paging(f.Cursor, f.Limit)
	set(q, "status", string(f.Status))
	set(q, "channel", f.Channel)
	set(q, "action", f.ActionID)
	return page[*gatehouse.Notification](ctx, c, "/notifications", q)
}

// RetryNotification sends a message again now.
func (c *Client) RetryNotification(ctx context.Context, id string) (*gatehouse.Notification, error) {
	return post[gatehouse.Notification](ctx, c, false, "/notifications/retry", map[string]any{"id": id})
}

// RetryNotifications lists failed messages or, when DryRun is false, sends them again.
func (c *Client) RetryNotifications(ctx context.Context, r gatehouse.RetryRequest) (*gatehouse.RetryAnswer, error) {
	return post[gatehouse.RetryAnswer](ctx, c, false, "/notifications/retry-failed", r)
}

// ListChannels returns the channels of the caller's tenant.
func (c *Client) ListChannels(ctx context.Context) ([]*gatehouse.ChannelState, error) {
	return list[*gatehouse.ChannelState](ctx, c, "/channels", nil)
}

// TestChannel sends a test message to the caller, or to the channel's configured destination.
func (c *Client) TestChannel(ctx context.Context, channel string) (*gatehouse.Notification, error) {
	return post[gatehouse.Notification](ctx, c, false, "/channels/test", map[string]any{"channel": channel})
}

// ReceiveBounce delivers a mail that a mail server returned. It needs no key.
func (c *Client) ReceiveBounce(ctx context.Context, recipient string, mail []byte) (*gatehouse.Bounce, error) {
	query := url.Values{}
	if recipient != "" {
		query.Set("recipient", recipient)
	}
	return read[gatehouse.Bounce](ctx, c, request{
		method: http.MethodPost, path: "/hooks/mail/bounces", query: query, mail: mail, idempotent: true,
	})
}
