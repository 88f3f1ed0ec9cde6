package invariants

import (
	"context"
	"database/sql"
	"fmt"
)

// orphans checks what the walk over the actions does not reach: rows without a parent (rule 16; foreign keys
// forbid most of them), entries of the log (rule 14), and the sums of ceilings (rule 10).
func (c *checker) orphans(ctx context.Context) error {
	for _, t := range []struct{ name, key, tenant, id string }{
		{"proposal", "seq", "tenant", "seq"}, {"approval", "seq", "tenant", "id"}, {"vote", "seq", "tenant", "name"},
		{"push", "action_seq", "tenant", "id"}, {"receipt", "action_seq", "tenant", "id"},
		{"ceiling_claim", "action_seq", "tenant", "action_seq"}, {"mirror", "action_seq", "tenant", "receipt_id"},
		{"comment", "seq", "tenant", "author"}, {"snooze", "seq", "tenant", "principal_id"},
	} {
		if err := c.withoutAction(ctx, t.name, t.key, t.tenant, t.id); err != nil {
			return err
		}
	}
	if err := c.strayLeaves(ctx); err != nil {
		return err
	}
	if err := c.countLeaves(ctx); err != nil {
		return err
	}
	if err := c.checkSums(ctx); err != nil {
		return err
	}
	return c.in(ctx, func(tx *sql.Tx) error {
		for _, q := range []struct{ what, query string }{
			{"a key without a principal in its tenant",
				`SELECT k.tenant, k.id, x.id IS NULL FROM api_key k
					LEFT JOIN principal x ON x.tenant = k.tenant AND x.id = k.principal_id`},
			{"an edit token without a principal in its tenant",
				`SELECT k.tenant, k.principal_id, x.id IS NULL FROM edit_token k
					LEFT JOIN principal x ON x.tenant = k.tenant AND x.id = k.principal_id`},
			{"a principal without a tenant",
				`SELECT k.tenant, k.id, x.id IS NULL FROM principal k LEFT JOIN tenant x ON x.id = k.tenant`},
			{"an active policy version that does not exist",
				`SELECT k.tenant, k.tenant, x.version IS NULL FROM policy_active k
					LEFT JOIN policy_version x ON x.tenant = k.tenant AND x.version = k.version`},
		} {
			if err := c.strays(ctx, tx, q.what, q.query); err != nil {
				return err
			}
		}
		return nil
	})
}

// withoutAction pages through a table by the row number of the rows' action, and looks for rows whose action
// does not exist.
func (c *checker) withoutAction(ctx context.Context, table, key, tenant, id string) error {
	for after, more := int64(0), true; more; {
		more = false
		err := c.in(ctx, func(tx *sql.Tx) error {
			// A page contains all rows of its last action: the votes or receipts
			// of one action have the same key.
			var last sql.NullInt64
			err := tx.QueryRowContext(ctx, fmt.Sprintf(`SELECT max(k) FROM (SELECT %[1]s AS k FROM %[2]s WHERE %[1]s > %[3]d
				ORDER BY %[1]s LIMIT %[4]d) page`,
				key, table, after, 10*c.o.Page)).Scan(&last)
			if err != nil || !last.Valid {
				return err
			}
			query := fmt.Sprintf(`SELECT r.%[1]s, CAST(r.%[2]s AS TEXT), a.seq IS NULL FROM %[3]s r
				LEFT JOIN action a ON a.seq = r.%[4]s WHERE r.%[4]s > %[5]d AND r.%[4]s <= %[6]d`,
				tenant, id, table, key, after, last.Int64)
			after, more = last.Int64, true
			return c.strays(ctx, tx, "a row of "+table+" without an action", query)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// strayLeaves looks for leaves about actions or runs that do not exist.
func (c *checker) strayLeaves(ctx context.Context) error {
	for after, more := int64(0), true; more; {
		more = false
		err := c.in(ctx, func(tx *sql.Tx) error {
			query := fmt.Sprintf(`SELECT l.seq, l.tenant, l.action_id, l.action_id <> '' AND a.seq IS NULL AND r.seq IS NULL
				AND z.id IS NULL
FROM audit_leaf l LEFT JOIN action a ON a.tenant = l.tenant AND a.id = l.action_id
LEFT JOIN run r ON r.tenant = l.tenant AND r.id = l.action_id
LEFT JOIN action_archive z ON z.tenant = l.tenant AND z.id = l.action_id WHERE l.seq > %d ORDER BY l.seq LIMIT %d`,
				after, 10*c.o.Page)
			return each(ctx, tx, query, func(rows *sql.Rows) error {
				var tenant, id string
				var stray bool
				err := rows.Scan(&after, &tenant, &id, &stray)
				if more = true; stray {
					c.r.violated(14, tenant, id, "the log names an action or a run that does not exist")
				}
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// countLeaves looks for leaves that neither have a number nor wait for one, and for
// leaves with two numbers.
func (c *checker) countLeaves(ctx context.Context) error {
	// On SQLite, leaves get numbers in the order of seq: every leaf up to the last
	// numbered one must have a number, and every later leaf waits for one.
	query := `SELECT l.tenant, l.n, l.n - l.behind + coalesce(b.n, 0), l.n - l.behind + coalesce(b.n, 0)
FROM (SELECT tenant, count(*) AS n, sum(seq <= coalesce((SELECT max(last) FROM audit_batch b
WHERE b.tenant = audit_leaf.tenant), 0)) AS behind
  FROM audit_leaf GROUP BY tenant) l
LEFT JOIN (SELECT tenant, sum(length(leaves) / 8) AS n FROM audit_batch GROUP BY tenant) b ON b.tenant = l.tenant`
	if !c.t.sqlite {
		query = `SELECT l.tenant, l.n, coalesce(p.n, 0), coalesce(p.rows, 0)
FROM (SELECT tenant, count(*) AS n FROM audit_leaf GROUP BY tenant) l
LEFT JOIN (SELECT tenant, count(*) AS n, count(DISTINCT seq) AS rows
  FROM (SELECT tenant, unnest(leaves) AS seq FROM audit_batch UNION ALL SELECT tenant, unnest(leaves)
  FROM audit_waiting) x GROUP BY tenant) p
ON p.tenant = l.tenant`
	}
	return c.in(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, query, func(rows *sql.Rows) error {
			var tenant string
			var stored, positions, distinct int64
			err := rows.Scan(&tenant, &stored, &positions, &distinct)
			if positions != stored || distinct != stored {
				c.r.violated(14, tenant, tenant,
					"%d entries are stored, but the log and its queue have %d positions, for %d distinct entries",
					stored, positions, distinct)
			}
			return err
		})
	})
}

// strays counts the rows of a query, and reports the strays. The columns are tenant, id, and whether the row is
// a stray.
func (c *checker) strays(ctx context.Context, tx *sql.Tx, what, query string) error {
	return each(ctx, tx, query, func(rows *sql.Rows) error {
		var tenant, id string
		var stray bool
		err := rows.Scan(&tenant, &id, &stray)
		if c.r.examined(16, 1); stray {
			c.r.violated(16, tenant, id, "%s", what)
		}
		return err
	})
}
