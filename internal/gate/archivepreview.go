package gate

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.KeeperService = (*Gate)(nil)

// PreviewArchive scans the store as the archiver does, moves nothing, and counts
// the actions of the caller's tenant.
func (g *Gate) PreviewArchive(ctx context.Context, retention time.Duration) (*gatehouse.ArchivePreview, error) {
	c, err := admin(ctx)
	if err != nil {
		return nil, err
	}

	own := c.Principal.Tenant
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
		return nil, gatehouse.Violations{{Pointer: "/query/retention",
			Detail: "is required, such as 180d: the server's configuration has no retention.finished"}}.Err()
	case retention < time.Second:
		return nil, gatehouse.Violations{{Pointer: "/query/retention", Detail: "must be at least 1s"}}.Err()
	}
	out.Retention = gatehouse.Duration(retention)

	seen := map[string]bool{}
	until := time.Now().Add(gatehouse.PreviewTime)
	for after := int64(0); time.Now().Before(until); {
		var plan *gatehouse.ArchivePlan
		var before time.Time
		err := g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
			before = q.Now().Add(-retention)
			plan, err = q.PlanArchive(after, before, archivePlan)
			return err
		})
		if err != nil {
			return nil, err
		}

		if out.EndedBefore.IsZero() {
			out.EndedBefore = before
		}
		for _, f := range plan.Families {
			if f.Tenant != own {
				continue
			}
			// Nothing is moved, so the scan returns a family again for each of its other
			// members.
			if len(f.IDs) > 1 {
				if seen[f.IDs[0]] {
					continue
				}
				seen[f.IDs[0]] = true
			}
			out.Actions += len(f.IDs)
			out.Bytes += f.Bytes
			if out.Oldest == nil || f.Oldest.Before(*out.Oldest) {
				out.Oldest = new(f.Oldest)
			}
			if out.Newest == nil || f.Newest.After(*out.Newest) {
				out.Newest = new(f.Newest)
			}
		}

		if after = plan.Next; after == 0 {
			out.Complete = true
			break
		}
	}

	if out.Actions > 0 {
		out.Tenants = append(out.Tenants, gatehouse.TenantArchived{Tenant: own, Actions: out.Actions})
	}
	return out, nil
}
