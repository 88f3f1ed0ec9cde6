package app

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// Head returns size and root hash of the tenant's numbered log.
func (g *Gate) Head(ctx context.Context) (*gatehouse.LogHead, error) {
	var head gatehouse.LogHead
	err := g.view(ctx, "log", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		head, err = audit.Head(tx, c.Principal.Tenant)
		return err
	})
	return &head, err
}
