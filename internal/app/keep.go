package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.KeeperService = (*Gate)(nil)

// PreviewArchive walks over the store as the archiver does, and moves nothing.
func (g *Gate) PreviewArchive(ctx context.Context, retention time.Duration) (*gatehouse.ArchivePreview, error) {
	if _, err := defaultAdmin(ctx); err != nil {
		return nil, err
	}
	out := &gatehouse.ArchivePreview{Tenants: []gatehouse.TenantArchived{}}
	if configured := g.config.Retention; configured > 0 {
		d := gatehouse.Duration(configured)
		out.Configured = &d
		if retention == 0 {
			retention = configured
		}
	}
	switch {
	case retention == 0:
		return nil, gatehouse.Violations{{Pointer: "/query/retention", Detail: "is required, since the server has none"}}.Err()
	case retention < time.Second:
		return nil, gatehouse.Violations{{Pointer: "/query/retention", Detail: "must be at least 1s"}}.Err()
	}
	out.Retention = gatehouse.Duration(retention)
	counts, seen := map[string]int{}, map[string]bool{}
	until := time.Now().Add(gatehouse.PreviewTime)
	for after := int64(0); time.Now().Before(until); {
		var plan *gatehouse.ArchivePlan
		var before time.Time
		err := g.store.View(ctx, func(tx gatehouse.ReadTx) (err error) {
			before = tx.Now().Add(-retention)
			plan, err = tx.PlanArchive(after, before, archivePlan)
			return err
		})
		if err != nil {
			return nil, err
		}
		if out.EndedBefore.IsZero() {
			out.EndedBefore = before
		}
		for _, f := range plan.Families {
			// Nothing is moved, so the rest of a family comes by again.
			if len(f.IDs) > 1 {
				if seen[f.IDs[0]] {
					continue
				}
				seen[f.IDs[0]] = true
			}
			counts[f.Tenant] += len(f.IDs)
			out.Actions += len(f.IDs)
			out.Bytes += f.Bytes
			if out.Oldest == nil || f.Oldest.Before(*out.Oldest) {
				out.Oldest = timePtr(f.Oldest)
			}
			if out.Newest == nil || f.Newest.After(*out.Newest) {
				out.Newest = timePtr(f.Newest)
			}
		}
		if after = plan.Next; after == 0 {
			out.Complete = true
			break
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(counts)) {
		out.Tenants = append(out.Tenants, gatehouse.TenantArchived{Tenant: tenant, Actions: counts[tenant]})
	}
	return out, nil
}
