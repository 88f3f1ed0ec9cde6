package httpconn

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

var _ connector.Prober = (*Connector)(nil)

// Probe connects to the target and sends it nothing. With OAuth 2.0 it also needs an access token.
func (c *Connector) Probe(ctx context.Context) error {
	if c.token != nil {
		if _, failed := c.token.Get(ctx); failed != nil {
			return errors.New(failed.Detail)
		}
	}
	return rest.Reach(ctx, c.client, c.base)
}
