package client

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.PreferenceService = (*Client)(nil)

// ListPreferences returns the caller's preference for each channel that sends to persons.
func (c *Client) ListPreferences(ctx context.Context) ([]*gatehouse.Preference, error) {
	p, err := page[*gatehouse.Preference](ctx, c, "/notifications/preferences", nil)
	return p.Items, err
}

// SetPreference replaces the caller's preference for a channel.
func (c *Client) SetPreference(
	ctx context.Context, change gatehouse.PreferenceChange,
) (*gatehouse.Preference, error) {
	out := new(gatehouse.Preference)
	_, err := c.do(ctx, request{
		method: http.MethodPut, path: "/notifications/preferences", body: change, out: out,
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
