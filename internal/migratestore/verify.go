package migratestore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// maxWaiting bounds the unnumbered leaves that are counted and compared one by one; of the others, only the
// number of rows of their table is compared.
const maxWaiting = 10_000

// readLogs verifies every tenant's log in the folder. It returns their heads, and the number of leaves without a
// number, at most maxWaiting.
func readLogs(ctx context.Context, s gatehouse.Store) (logs []Log, waiting int, err error) {
	tenants, leaves, err := tenantsAndLeaves(ctx, s)
	if err != nil {
		return nil, 0, err
	}
	for _, t := range tenants {
		report, err := audit.Check(ctx, s, t.ID)
		if err == nil {
			err = report.Err()
		}
		if err != nil {
			return nil, 0, fmt.Errorf("the folder's audit log of tenant %s: %w", t.ID, err)
		}
		logs = append(logs, Log{Tenant: t.ID, Size: report.Expected, Root: report.Root})
	}
	slices.SortFunc(logs, func(a, b Log) int { return cmp.Compare(a.Tenant, b.Tenant) })
	return logs, len(leaves), nil
}

func tenantsAndLeaves(
	ctx context.Context, s gatehouse.Store,
) (tenants []*gatehouse.Tenant, leaves []*gatehouse.PendingLeaf, err error) {
	err = s.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		if tenants, err = q.ListTenants(); err != nil {
			return err
		}
		leaves, err = q.UnnumberedLeaves(maxWaiting)
		return err
	})
	return tenants, leaves, err
}

// verify compares the two sides: tables by row count, logs by their entries,
// waiting leaves one by one.
func verify(
	ctx context.Context, s *source, c *pgx.Conn, to gatehouse.Store, tables []table, counts []int64, r *Result,
) error {
	for i, t := range tables {
		var n int64
		if err := c.QueryRow(ctx, `SELECT count(*) FROM `+quoted(t.name)).Scan(&n); err != nil {
			return err
		}
		if n != counts[i] {
			return fmt.Errorf("verify: the table %s has %d rows in the folder, and %d in the database", t.name, counts[i], n)
		}
	}
	for _, head := range r.Logs {
		report, err := audit.Check(ctx, to, head.Tenant, head)
		if err == nil {
			err = report.Err()
		}
		if err == nil && report.Expected != head.Size {
			err = fmt.Errorf("it has %d entries, and %d in the folder", report.Expected, head.Size)
		}
		if err != nil {
			return fmt.Errorf("verify: the audit log of tenant %s in the database: %w", head.Tenant, err)
		}
	}
	_, here, err := tenantsAndLeaves(ctx, s)
	if err != nil {
		return err
	}
	_, there, err := tenantsAndLeaves(ctx, to)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(here, there, func(a, b *gatehouse.PendingLeaf) bool { return *a == *b }) {
		return fmt.Errorf("verify: the audit leaves without a number differ: %d in the folder, %d in the database",
			len(here), len(there))
	}
	return nil
}
