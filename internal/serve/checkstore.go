package serve

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/invariants"
)

// StoreChecker checks a server's store, over connections that it opens for each check.
type StoreChecker struct {
	Data, DatabaseURL string
	Log               *slog.Logger
	// own is the configuration of this server.
	own *ownConfiguration
}

// openStore opens the store for reading: the database if there is one, else
// the data folder.
func (c *StoreChecker) openStore(ctx context.Context) (*invariants.Target, error) {
	if c.DatabaseURL != "" {
		return invariants.OpenDatabase(ctx, c.DatabaseURL, c.Log)
	}
	return invariants.OpenFile(ctx, filepath.Join(c.Data, DatabaseFile), c.Log)
}

// Check checks every invariant of the store.
func (c *StoreChecker) Check(ctx context.Context, o invariants.Options) (*gatehouse.StoreCheck, error) {
	target, err := c.openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	report, err := invariants.Check(ctx, target, o)
	if err != nil {
		return nil, err
	}
	out := &gatehouse.StoreCheck{OK: report.OK, Violations: report.Violations,
		Invariants: make([]gatehouse.InvariantCheck, len(report.Invariants))}
	for n, i := range report.Invariants {
		listed := make([]gatehouse.StoreViolation, len(i.Listed))
		for n, v := range i.Listed {
			listed[n] = gatehouse.StoreViolation(v)
		}
		out.Invariants[n] = gatehouse.InvariantCheck{
			Number: i.Number, Title: i.Title, Examined: i.Examined, NotChecked: i.NotChecked, Violations: i.Violations,
			Listed: listed,
		}
	}
	return out, nil
}

// CheckStore implements [gatehouse.CheckService]. Its result names only objects of the caller's
// tenant.
func (c *StoreChecker) CheckStore(ctx context.Context, held []gatehouse.LogHead) (*gatehouse.StoreCheck, error) {
	caller, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if p := caller.Principal; p.Tenant != gatehouse.DefaultTenant || !p.Has(gatehouse.RoleAdmin) {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "this needs an administrator of the tenant %s",
			gatehouse.DefaultTenant)
	}
	return c.Check(ctx, invariants.Options{KnownHeads: held, Tenant: gatehouse.DefaultTenant})
}
