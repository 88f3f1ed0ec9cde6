package gate

import (
	"cmp"
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// Head returns the size and the root hash of the tenant's numbered log.
func (g *Gate) Head(ctx context.Context) (*gatehouse.LogHead, error) {
	var head gatehouse.LogHead
	err := g.View(ctx, "log", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		head, err = audit.Head(tx, c.Principal.Tenant)
		return err
	})
	return &head, err
}

// Checkpoint returns the head of the tenant's log, signed.
func (g *Gate) Checkpoint(ctx context.Context) ([]byte, error) {
	head, err := g.Head(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := g.logKeys(head.Tenant)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, gatehouse.E(gatehouse.CodeUnsupported,
			"no master key is configured, so no checkpoint can be signed: see links.master_key")
	}
	return audit.SignCheckpoint(*head, keys[0])
}

// LogKeys returns the public keys of the tenant's log.
func (g *Gate) LogKeys(ctx context.Context) (*gatehouse.LogKeys, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := g.logKeys(c.Principal.Tenant)
	out := gatehouse.LogKeys{Keys: make([]string, len(keys))}
	for i, key := range keys {
		out.Keys[i] = key.Public()
	}
	return &out, err
}

// logKeys derives the keys of a tenant's log, one from each master key. They are not in the store:
// whoever can write there cannot sign.
func (g *Gate) logKeys(tenant string) ([]*audit.Key, error) {
	if g.config.Master == nil {
		return nil, nil
	}
	origin := audit.Origin(cmp.Or(g.config.LogOrigin, "localhost"), tenant)
	seeds, err := g.config.Master.Derive("checkpoints of " + origin)
	if err != nil {
		return nil, err
	}
	keys := make([]*audit.Key, len(seeds))
	for i, seed := range seeds {
		if keys[i], err = audit.NewKey(origin, seed); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// ProveEntry proves that an entry lies in the tenant's log.
func (g *Gate) ProveEntry(ctx context.Context, entry, size int64) (*gatehouse.EntryProof, error) {
	var p *gatehouse.EntryProof
	err := g.View(ctx, "log", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		p, err = audit.ProveEntry(tx, c.Principal.Tenant, entry, size)
		return err
	})
	return p, err
}

// ProveGrowth proves that the tenant's log at a size begins with the log at an earlier size.
func (g *Gate) ProveGrowth(ctx context.Context, from, to int64) (*gatehouse.GrowthProof, error) {
	var p *gatehouse.GrowthProof
	err := g.View(ctx, "log", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		p, err = audit.ProveGrowth(tx, c.Principal.Tenant, from, to)
		return err
	})
	return p, err
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
