package client

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// Health reports whether the server answers, and its build. It needs no key: pass "" to [New].
func (c *Client) Health(ctx context.Context) (*gatehouse.Health, error) {
	return read[gatehouse.Health](ctx, c, request{method: http.MethodGet, path: "/healthz", open: true})
}
