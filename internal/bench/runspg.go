package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

const (
	pgLeaseSteps = `WITH due AS MATERIALIZED (SELECT seq FROM step
		WHERE queued_at IS NOT NULL AND tool = '' AND tenant = 'default'
  AND workspace = 'default' AND workflow = 'line' ORDER BY queued_at, seq LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED)
UPDATE step s SET status = 'running', generation = generation + 1, attempts = attempts + 1, lease_owner = 'bench', lease_until = $1,
  started_at = coalesce(started_at, $2)
FROM due WHERE s.seq = due.seq RETURNING s.seq, s.run_seq, s.position, s.id, s.run_id`
	pgStepDone = `WITH s AS (UPDATE step
		SET status = 'succeeded', idempotency_key = $1, lease_owner = '', lease_until = NULL, finished_at = $2
  WHERE seq = $3 AND status = 'running' AND generation = 1 RETURNING seq, run_id, id),
b AS (INSERT INTO step_body (seq, tenant, item, input, output) SELECT seq, 'default', '', $4, $4 FROM s),
a AS (INSERT INTO step_attempt (tenant, run_id, step_id, attempt, generation, worker, started_at, finished_at, outcome, code, detail)
  SELECT 'default', run_id, id, 1, 1, 'bench', $2, $2, 'succeeded', '', '' FROM s)
INSERT INTO audit_leaf (seq, tenant, action_id, body) SELECT nextval('audit_leaf_row'), 'default', '', $5 FROM s`
	pgStepNext = `WITH s AS (UPDATE step SET status = 'ready', ready_at = $1
		WHERE run_seq = $2 AND position = $3 AND status = 'blocked')
UPDATE run SET writes = 0 WHERE seq = $2 AND status = 'running'`
	pgRunDone = `WITH r AS (UPDATE run SET status = 'succeeded', finished_at = $1
		WHERE seq = $2 AND status = 'running' RETURNING seq, id),
b AS (UPDATE run_body SET output = '{}' FROM r WHERE run_body.seq = r.seq),
f AS (INSERT INTO reflexion (tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at)
  SELECT 'default', $3, id, 'line', 1, 'succeeded', $4, $5, $6, $1 FROM r)
INSERT INTO audit_leaf (seq, tenant, action_id, body) SELECT nextval('audit_leaf_row'), 'default', '', $7 FROM r`
)

// pgSteps is the stepper on PostgreSQL.
type pgSteps struct {
	url   string
	pool  *pgxpool.Pool
	batch int
}

func (r *pgDatabases) steps(ctx context.Context, batch int) (stepper, error) {
	kind := fmt.Sprintf("steps%d", batch)
	pool, err := r.bare(ctx, kind, "")
	if err != nil {
		return nil, err
	}
	u, err := r.base.address(r.name + "_" + kind)
	return &pgSteps{url: u, pool: pool, batch: batch}, err
}

// Store stores as many runs as have n steps together.
func (b *pgSteps) Store(ctx context.Context, n int) error {
	s, err := postgres.Open(ctx, postgres.Config{URL: b.url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return errors.Join(fillLines(ctx, s, n/lineSteps), s.Close())
}

func (b *pgSteps) lease(ctx context.Context, n int) ([]leased, error) {
	now := time.Now().UnixMicro()
	rows, err := b.pool.Query(ctx, pgLeaseSteps, now+60_000_000, now, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s leased, err error) {
		err = row.Scan(&s.seq, &s.run, &s.position, &s.id, &s.runID)
		return s, err
	})
}

func (b *pgSteps) complete(ctx context.Context, list []leased) error {
	now := time.Now().UnixMicro()
	var batch pgx.Batch
	for _, s := range list {
		batch.Queue(pgStepDone, s.runID+":"+s.id, now, s.seq, `{"n":1}`, stepLeaf(s))
		if s.position < lineSteps-1 {
			batch.Queue(pgStepNext, now, s.run, s.position+1)
		} else {
			batch.Queue(pgRunDone, now, s.run, "rfx"+s.runID[3:], bareAttempted, bareHappened, bareOtherwise, runLeaf(s))
		}
	}
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error { return tx.SendBatch(ctx, &batch).Close() })
}

// Carry executes n steps.
func (b *pgSteps) Carry(ctx context.Context, n int) (time.Duration, error) {
	return batches(ctx, n, b.batch, func(size int) (int, error) {
		list, err := b.lease(ctx, size)
		if err == nil {
			err = b.complete(ctx, list)
		}
		return len(list), err
	})
}

// Close closes the connections.
func (b *pgSteps) Close() error { b.pool.Close(); return nil }
