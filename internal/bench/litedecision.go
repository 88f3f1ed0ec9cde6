package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// liteDecisions is a second baseline for decisions: all rows that the gate writes, to the gate's
// tables with their checks and their indexes except audit_action, by bare statements with prepared
// values. The gate's additional cost consists of that index, its reads and checks, the answer, and the
// numbering of the log.
type liteDecisions struct {
	db    *bareDB
	rows  *liteProposals
	group *group[func() error]
	st    []*sql.Stmt
	made  int
}

var sameStatements = []string{
	`INSERT INTO vote (seq, tenant, person, principal_id, name, decision, notes, via, digest, at)
SELECT seq, tenant, ?, ?, ?, 'approved', ?, 'api', ?, ? FROM approval WHERE tenant = ? AND id = ?`,
	`UPDATE approval SET status = 'approved' WHERE tenant = ? AND id = ? AND status = 'requested'`,
	`UPDATE action SET status = 'approved', decided_by = ?, decided_via = 'api', decided_at = ?
WHERE tenant = ? AND id = ? AND status = 'pending' RETURNING seq`,
	`INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts, attempt_base,
last_error, error_code, not_before, created_at, next_attempt, generation, lease_owner, replays)
VALUES (?, ?, ?, ?, 'shop', ?, ?, 'queued', 0, 0, '', '', ?, ?, ?, 0, '', 0)`,
	rowLeaf,
}

func openDecisions(ctx context.Context, dir string, template *gatehouse.Action) (b *liteDecisions, err error) {
	b = &liteDecisions{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	path := filepath.Join(dir, "rows.db")
	if err := makeSchema(ctx, path); err != nil {
		return b, err
	}
	if b.db, err = openBare(ctx, path, rowsSetup); err != nil {
		return b, err
	}
	b.rows = &liteProposals{db: b.db, template: template}
	if err := b.rows.prepare(ctx); err != nil {
		return b, err
	}
	if b.st, err = b.db.prepare(ctx, sameStatements...); err != nil {
		return b, err
	}
	b.group = newLiteGroup(b.db)
	return b, nil
}

// pending stores n more pending actions and returns their ids.
func (b *liteDecisions) pending(n int) ([]string, error) {
	ids := make([]string, n)
	err := b.db.inTx(func() error {
		for i := range ids {
			ids[i] = gate.NewID("act")
			in := bareRequest(proposal(b.made))
			b.made++
			if err := b.rows.write(ids[i], in); err != nil {
				return err
			}
		}
		return nil
	})
	return ids, err
}

func (b *liteDecisions) ways() []way[bareDecision] {
	return []way[bareDecision]{{sameRowsIs + liteHow, func(id string, in *bareDecision) error {
		return b.group.do(func() error { return b.write(id, in) })
	}}}
}

// write writes the rows of an approval.
func (b *liteDecisions) write(id string, in *bareDecision) error {
	a, ctx := b.rows.template, context.Background()
	now := time.Now().UnixMicro()
	rest := id[len("act"):]
	if err := execStmt(b.st[0], whoDecides, whoDecides, nameDecides, whyDecided, in.Digest, now, a.Tenant,
		"apr"+rest); err != nil {
		return err
	}
	if err := execStmt(b.st[1], a.Tenant, "apr"+rest); err != nil {
		return err
	}
	var seq int64
	if err := b.st[2].QueryRowContext(ctx, nameDecides, now, a.Tenant, id).Scan(&seq); err != nil {
		return fmt.Errorf("claim %s: %w", id, err)
	}
	if err := execStmt(b.st[3], a.Tenant, "psh"+rest, seq, id, "bench-"+rest, in.Digest, now, now, now); err != nil {
		return err
	}
	return execStmt(b.st[4], a.Tenant, id, decidedLeaf(id, in.Digest))
}

func (b *liteDecisions) close() error {
	if b.group != nil {
		b.group.close()
	}
	if b.db != nil {
		return b.db.Close()
	}
	return nil
}
