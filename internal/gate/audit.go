package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// Head returns size and root hash of the tenant's numbered log.
func (g *Gate) Head(ctx context.Context) (*gatehouse.LogHead, error) {
	var head gatehouse.LogHead
	err := g.View(ctx, "log", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		head, err = audit.Head(tx, c.Principal.Tenant)
		return err
	})
	return &head, err
}

// CheckLog compares every entry and every tree hash of the tenant's log with
// each other, as the server does each day.
func (g *Gate) CheckLog(ctx context.Context) (*gatehouse.LogCheck, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := Require(c, gatehouse.RoleAuditor); err != nil {
		return nil, err
	}
	r, err := audit.Check(ctx, g.Store, c.Principal.Tenant)
	if err != nil {
		return nil, err
	}
	out := &gatehouse.LogCheck{
		LogHead: gatehouse.LogHead{Tenant: c.Principal.Tenant, Size: r.Expected, Root: r.Root},
		Found:   r.Found, Unnumbered: r.Unnumbered,
	}
	if err := r.Err(); err != nil {
		out.Fault = err.Error()
	}
	return out, nil
}
