package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
)

var errNoSteps = errors.New("no step is ready")

// liteSteps is the stepper on SQLite.
type liteSteps struct {
	path  string
	db    *bareDB
	batch int
	st    []*sql.Stmt
}

var liteStepStatements = []string{
	`UPDATE step SET status = 'running', generation = generation + 1, attempts = attempts + 1, lease_owner = 'bench', lease_until = ?1,
  started_at = coalesce(started_at, ?2)
WHERE seq IN (SELECT seq FROM step INDEXED BY step_ready
WHERE status = 'ready' AND tool = '' AND tenant = 'default' AND workspace = 'default'
  AND workflow = 'line' ORDER BY ready_at, seq LIMIT ?3) RETURNING seq, run_seq, position, id, run_id`,
	`UPDATE step SET status = 'succeeded', idempotency_key = ?1, lease_owner = '', lease_until = NULL, finished_at = ?2
WHERE seq = ?3 AND status = 'running' AND generation = 1`,
	`INSERT INTO step_body (seq, tenant, item, input, output) VALUES (?, 'default', '', ?2, ?2)`,
	`INSERT INTO step_attempt (tenant, run_id, step_id, attempt, generation, worker, started_at, finished_at, outcome, code, detail)
VALUES ('default', ?, ?, 1, 1, 'bench', ?3, ?3, 'succeeded', '', '')`,
	rowLeaf,
	`UPDATE step SET status = 'ready', ready_at = ? WHERE run_seq = ? AND position = ? AND status = 'blocked'`,
	`UPDATE run SET writes = 0 WHERE seq = ? AND status = 'running'`,
	`UPDATE run SET status = 'succeeded', finished_at = ? WHERE seq = ? AND status = 'running'`,
	`UPDATE run_body SET output = '{}' WHERE seq = ?`,
	`INSERT INTO reflexion (tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at)
VALUES ('default', ?, ?, 'line', 1, 'succeeded', ?, ?, ?, ?)`,
}

func (r *liteDatabases) steps(ctx context.Context, batch int) (stepper, error) {
	b := &liteSteps{path: filepath.Join(r.dir, fmt.Sprintf("steps%d.db", batch)), batch: batch}
	if err := makeSchema(ctx, b.path); err != nil {
		return nil, err
	}
	var err error
	if b.db, err = openBare(ctx, b.path, `PRAGMA foreign_keys = ON`); err != nil {
		return nil, err
	}
	if b.st, err = b.db.prepare(ctx, liteStepStatements...); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Store stores as many runs as have n steps together.
func (b *liteSteps) Store(ctx context.Context, n int) error {
	s, err := sqlite.Open(ctx, sqlite.Config{Path: b.path})
	if err != nil {
		return err
	}
	return errors.Join(fillLines(ctx, s, n/lineSteps), s.Close())
}

func (b *liteSteps) lease(n int) (list []leased, err error) {
	now := time.Now().UnixMicro()
	err = b.db.inTx(func() error {
		rows, err := b.st[0].QueryContext(context.Background(), now+60_000_000, now, n)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var s leased
			if err := rows.Scan(&s.seq, &s.run, &s.position, &s.id, &s.runID); err != nil {
				return err
			}
			list = append(list, s)
		}
		return rows.Err()
	})
	return list, err
}

func (b *liteSteps) complete(list []leased) error {
	return b.db.inTx(func() error {
		for _, s := range list {
			if err := b.write(s); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *liteSteps) write(s leased) error {
	now := time.Now().UnixMicro()
	err := errors.Join(
		execStmt(b.st[1], s.runID+":"+s.id, now, s.seq), execStmt(b.st[2], s.seq, `{"n":1}`),
		execStmt(b.st[3], s.runID, s.id, now),
		execStmt(b.st[4], "default", "", stepLeaf(s)))
	if err != nil || s.position < lineSteps-1 {
		return errors.Join(err, execStmt(b.st[5], now, s.run, s.position+1), execStmt(b.st[6], s.run))
	}
	return errors.Join(
		execStmt(b.st[7], now, s.run), execStmt(b.st[8], s.run),
		execStmt(b.st[9], "rfx"+s.runID[3:], s.runID, bareAttempted, bareHappened, bareOtherwise, now),
		execStmt(b.st[4], "default", "", runLeaf(s)))
}

// Carry executes n steps.
func (b *liteSteps) Carry(ctx context.Context, n int) (time.Duration, error) {
	return batches(ctx, n, b.batch, func(size int) (int, error) {
		list, err := b.lease(size)
		if err == nil {
			err = b.complete(list)
		}
		return len(list), err
	})
}

// Close closes the connection.
func (b *liteSteps) Close() error { return b.db.Close() }
