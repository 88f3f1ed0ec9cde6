package invariants

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// Options configure a check. The zero value is valid.
type Options struct {
	// KnownHeads are heads of audit logs that were kept elsewhere: the logs must
	// contain them. A head without a tenant belongs to the default tenant.
	KnownHeads []gatehouse.LogHead
	// Tenant, if not "", restricts the listed violations to this tenant and to
	// the store itself. All violations are counted.
	Tenant string
	// Page is the number of actions, or of runs, per snapshot; 0 means 200.
	Page int
	// Progress is called with the done and the approximate total number of
	// actions; may be nil.
	Progress func(done, total int64)
}

// Check walks the whole store. An error means that the store could not be read;
// violations are in the report.
func Check(ctx context.Context, t *Target, o Options) (*Report, error) {
	if o.Page <= 0 {
		o.Page = 200
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	r := newReport(o.Tenant)
	c := &checker{t: t, o: o, r: r}
	for _, walk := range []func(context.Context) error{c.structures, c.actions, c.archive, c.runs, c.runKeys,
		c.orphans, c.searchIndex, c.logs, c.rights} {
		if err := walk(ctx); err != nil {
			return nil, fmt.Errorf("invariants: %w", err)
		}
	}
	r.OK = r.Violations == 0
	return r, nil
}

type checker struct {
	t *Target
	o Options
	r *Report
	// heldTotals has the running totals of the held claims on ceilings; nil until the claims are read.
	heldTotals map[account][]runningTotal
}

// in runs fn on one snapshot.
func (c *checker) in(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := c.t.DB.BeginTx(ctx, c.t.snapshot)
	if err != nil {
		return err
	}
	return errors.Join(fn(tx), tx.Rollback())
}

// each calls row for every row of a query.
func each(ctx context.Context, tx *sql.Tx, query string, row func(*sql.Rows) error, args ...any) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// structures runs SQLite's own checks of the file. For PostgreSQL, pg_amcheck
// checks pages and indexes.
func (c *checker) structures(ctx context.Context) error {
	if !c.t.sqlite {
		c.r.Invariants[0].NotChecked = "use pg_amcheck on PostgreSQL"
		return nil
	}
	return c.in(ctx, func(tx *sql.Tx) error {
		err := each(ctx, tx, fmt.Sprintf(`PRAGMA integrity_check(%d)`, maxListed), func(rows *sql.Rows) error {
			var word string
			err := rows.Scan(&word)
			if c.r.examined(0, 1); word != "ok" {
				c.r.violated(0, "", "file", "%s", word)
			}
			return err
		})
		if err != nil {
			return err
		}
		return each(ctx, tx, `PRAGMA foreign_key_check`, func(rows *sql.Rows) error {
			var table, parent string
			var row, key sql.NullInt64
			err := rows.Scan(&table, &row, &parent, &key)
			c.r.violated(0, "", fmt.Sprintf("%s row %d", table, row.Int64), "it refers to a row of %s that does not exist",
				parent)
			return err
		})
	})
}

// actions walks all actions, page by page.
func (c *checker) actions(ctx context.Context) error {
	var total, done int64
	if err := c.t.DB.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM action`).Scan(&total); err != nil {
		return err
	}
	for after := int64(0); ; {
		var actions []*actionRows
		err := c.in(ctx, func(tx *sql.Tx) (err error) {
			actions, err = c.load(ctx, tx, after)
			return err
		})
		if err != nil || len(actions) == 0 {
			return err
		}
		for _, f := range actions {
			f.check(c.r)
		}
		after = actions[len(actions)-1].seq
		done += int64(len(actions))
		c.o.Progress(done, max(total, done))
	}
}

// logs verifies each tenant's log, also against the held heads.
func (c *checker) logs(ctx context.Context) error {
	var tenants []*gatehouse.Tenant
	err := c.t.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		tenants, err = q.ListTenants()
		return err
	})
	if err != nil {
		return err
	}
	held := map[string][]gatehouse.LogHead{}
	for _, h := range c.o.KnownHeads {
		if h.Tenant == "" {
			h.Tenant = gatehouse.DefaultTenant
		}
		held[h.Tenant] = append(held[h.Tenant], h)
	}
	for _, t := range tenants {
		report, err := audit.Check(ctx, c.t.Store, t.ID, held[t.ID]...)
		if err != nil {
			return err
		}
		delete(held, t.ID)
		c.r.examined(14, report.Found)
		if report.Fault != nil {
			c.r.violated(14, t.ID, fmt.Sprintf("entry %d", report.Fault.Index), "%s: %s", report.Fault.Kind, report.Fault.Detail)
		}
	}
	for tenant, heads := range held {
		c.r.violated(14, tenant, tenant, "held_head: a head held elsewhere says %d entries, but there is no such tenant",
			heads[0].Size)
	}
	return nil
}
