package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gatehouse-dev/gatehouse"
)

// callers are the measured numbers of concurrent callers.
var callers = []int{1, 16, 64}

// spread runs work for 0 ≤ i < n on k goroutines.
func spread(b *testing.B, k, n int, work func(i int) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range k {
		wg.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				if err := work(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tx/s")
}

// BenchmarkUpdateDecide measures the reads and writes of a whole decision: two round trips. The
// test server runs without fsync: compare the numbers, do not quote them.
func BenchmarkUpdateDecide(b *testing.B) {
	for _, k := range callers {
		b.Run(fmt.Sprintf("callers=%d", k), func(b *testing.B) {
			s := openTest(b, Config{})
			ids := fill(b, s, b.N)
			spread(b, k, b.N, func(i int) error {
				return s.Update(
					context.Background(),
					gatehouse.DefaultTenant,
					func(tx gatehouse.Tx) error { return decide(tx, ids[i]) },
				)
			})
		})
	}
}

// BenchmarkUpdateClaim measures the bare claim through the store: the guarded update, its push
// and one leaf.
func BenchmarkUpdateClaim(b *testing.B) {
	for _, k := range callers {
		b.Run(fmt.Sprintf("callers=%d", k), func(b *testing.B) {
			s := openTest(b, Config{})
			ids := fill(b, s, b.N)
			spread(b, k, b.N, func(i int) error {
				return s.Update(
					context.Background(),
					gatehouse.DefaultTenant,
					func(tx gatehouse.Tx) error { return claim(tx, ids[i]) },
				)
			})
		})
	}
}

func claim(tx gatehouse.Tx, id string) error {
	err := tx.MoveAction(gatehouse.ActionMove{
		ID: "act_" + id, From: gatehouse.StatusPending, To: gatehouse.StatusApproved,
		DecidedBy: "ana", DecidedVia: gatehouse.ViaAPI, Decided: true,
	})
	if err != nil {
		return err
	}
	if err := tx.InsertPush(&gatehouse.Push{
		ID: "psh_" + id, Tenant: "default", ActionID: "act_" + id, Connector: "shop", IdempotencyKey: id, Digest: "d",
		Status: gatehouse.PushQueued, NotBefore: tx.Now(), CreatedAt: tx.Now(),
	}); err != nil {
		return err
	}
	return tx.AppendLeaf(
		&gatehouse.Leaf{Tenant: "default", Type: "hitl.approved", Subject: "act_" + id, ActionID: "act_" + id, Actor: "ana"})
}

// BenchmarkInbox reads the first page by urgency of 20,000 pending actions.
func BenchmarkInbox(b *testing.B) {
	s := openTest(b, Config{})
	fill(b, s, 20_000)
	spread(b, 1, b.N, func(int) error {
		return s.View(context.Background(), "default", func(tx gatehouse.ReadTx) error {
			_, err := tx.ListActions(gatehouse.ActionFilter{Sort: gatehouse.SortUrgency})
			return err
		})
	})
}

// BenchmarkClaimPushes claims in batches of ten.
func BenchmarkClaimPushes(b *testing.B) {
	s := openTest(b, Config{})
	for _, id := range fill(b, s, b.N) {
		if err := s.Update(context.Background(), gatehouse.DefaultTenant,
			func(tx gatehouse.Tx) error { return claim(tx, id) }); err != nil {
			b.Fatal(err)
		}
	}
	spread(b, 1, b.N/10, func(int) error {
		return s.UpdateQueues(context.Background(), func(q gatehouse.Queues) error {
			_, err := q.ClaimPushes("w", time.Minute, gatehouse.PushShare{Tenant: gatehouse.DefaultTenant, Limit: 10})
			return err
		})
	})
}

// The baseline: the claim in bare SQL over three bare tables.
const (
	bareSchema = `
CREATE TABLE bare_action (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, status TEXT NOT NULL, body TEXT NOT NULL,
  decided_by TEXT, decided_at BIGINT);
CREATE INDEX bare_status ON bare_action (tenant, status, id);
CREATE TABLE bare_push (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, action_id TEXT NOT NULL UNIQUE,
  status TEXT NOT NULL, due BIGINT NOT NULL);
CREATE INDEX bare_due ON bare_push (due) WHERE status = 'queued';
CREATE TABLE bare_event (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant TEXT NOT NULL,
  body TEXT NOT NULL);`
	bareFill = `INSERT INTO bare_action SELECT lpad(i::text, 9, '0'), 'default', 'pending', repeat('x', 400)
		FROM generate_series(0, $1::int - 1) i`
	bareUpdate = `UPDATE bare_action SET status = 'approved', decided_by = $1, decided_at = $2
		WHERE tenant = $3 AND id = $4 AND status = 'pending'`
	barePush  = `INSERT INTO bare_push VALUES ($1, $2, $1, 'queued', $3)`
	bareEvent = `INSERT INTO bare_event (tenant, body) VALUES ($1, $2)`
)

// BenchmarkBareClaim sends the three statements between BEGIN and COMMIT in one
// round trip, over a pool of sixteen.
func BenchmarkBareClaim(b *testing.B) {
	for _, k := range callers {
		b.Run(fmt.Sprintf("callers=%d", k), func(b *testing.B) {
			ctx := context.Background()
			url := database(b)
			statement(b, url, bareSchema)
			statement(b, url, bareFill, b.N)
			config, err := pgxpool.ParseConfig(url)
			if err != nil {
				b.Fatal(err)
			}
			config.MaxConns = 16
			pool, err := pgxpool.NewWithConfig(ctx, config)
			if err != nil {
				b.Fatal(err)
			}
			defer pool.Close()
			spread(b, k, b.N, func(i int) error {
				id, now := fmt.Sprintf("%09d", i), time.Now().UnixMicro()
				var batch pgx.Batch
				batch.Queue(`begin`)
				batch.Queue(bareUpdate, "ana", now, "default", id)
				batch.Queue(barePush, id, "default", now)
				batch.Queue(bareEvent, "default", `{"type":"hitl.approved","subject":"`+id+`","actor":"ana"}`)
				batch.Queue(`commit`)
				return pool.SendBatch(ctx, &batch).Close()
			})
		})
	}
}
