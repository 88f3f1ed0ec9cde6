package client

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// Health reports whether the server answers, and its build. It needs no key: pass "" to [New].
func (c *Client) Health(ctx context.Context) (*gatehouse.Health, error) {
	out := new(gatehouse.Health)
	if _, err := c.do(ctx, request{method: http.MethodGet, path: "/healthz", open: true, out: out}); err != nil {
		return nil, err
	}
	return out, nil
}
