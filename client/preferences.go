package client

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.PreferenceService = (*Client)(nil)

// ListPreferences returns the caller's preference for each channel that sends to persons.
func (c *Client) ListPreferences(ctx context.Context) ([]*gatehouse.Preference, error) {
	return list[*gatehouse.Preference](ctx, c, "/notifications/preferences", nil)
}

// SetPreference replaces the caller's preference for a channel.
func (c *Client) SetPreference(
	ctx context.Context, change gatehouse.PreferenceChange,
) (*gatehouse.Preference, error) {
	return read[gatehouse.Preference](ctx, c, request{
		method: http.MethodPut, path: "/notifications/preferences", body: change,
	})
}
