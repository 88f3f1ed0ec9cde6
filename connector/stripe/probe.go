package stripe

import (
	"context"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

var _ connector.Prober = (*Connector)(nil)

// Probe connects to the target and sends nothing.
func (c *Connector) Probe(ctx context.Context) error { return rest.Reach(ctx, c.client, c.base) }
