package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// poolSize is the maximum number of connections: the default of the gate's store.
const poolSize = 16

// job carries a number, as a job for a push would carry the id of its payload.
type job struct {
	Item int `json:"item"`
}

// Kind names the job to River.
func (job) Kind() string { return "noop" }

// noop is the worker of the jobs. It counts them in worked.
type noop struct {
	river.WorkerDefaults[job]
	worked *atomic.Int64
}

// Work only counts the job.
func (w *noop) Work(context.Context, *river.Job[job]) error {
	w.worked.Add(1)
	return nil
}

// queue is River in the gate's database.
type queue struct {
	pool    *pgxpool.Pool
	workers int
	made    int
}

// openRiver creates River's tables beside the gate's: their names differ.
func openRiver(ctx context.Context, url string, workers int) (*queue, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet()})
	if err == nil {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &queue{pool: pool, workers: workers}, nil
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// Is describes the queue for the report.
func (q *queue) Is() string {
	return fmt.Sprintf("River, a job that does nothing, %d workers", q.workers)
}

// Store inserts jobs.
func (q *queue) Store(ctx context.Context, n int) error {
	client, err := river.NewClient(riverpgxv5.New(q.pool), &river.Config{Logger: quiet()})
	if err != nil {
		return err
	}
	for n > 0 {
		batch := make([]river.InsertManyParams, min(n, 5000))
		for i := range batch {
			batch[i].Args = job{q.made}
			q.made++
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return err
		}
		n -= len(batch)
	}
	return nil
}

// Carry runs the jobs and waits until all are stored as completed: River
// completes in batches, some time after the work.
func (q *queue) Carry(ctx context.Context, n int) (took time.Duration, err error) {
	before, err := q.completed(ctx)
	if err != nil {
		return 0, err
	}
	var worked atomic.Int64
	client, err := q.client(&noop{worked: &worked})
	if err != nil {
		return 0, err
	}
	done, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: n + 1, Kinds: []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed},
	})
	defer unsubscribe()
	start := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	for range n {
		select {
		case e := <-done:
			if e.Kind != river.EventKindJobCompleted {
				return 0, errors.Join(fmt.Errorf("job %d: %s", e.Job.ID, e.Kind), stop(client))
			}
		case <-ctx.Done():
			return 0, errors.Join(ctx.Err(), stop(client))
		}
	}
	took = time.Since(start)
	if err := stop(client); err != nil {
		return 0, err
	}
	after, err := q.completed(ctx)
	if err == nil && (after-before != n || worked.Load() != int64(n)) {
		err = fmt.Errorf("of %d jobs %d were worked and %d are completed", n, worked.Load(), after-before)
	}
	return took, err
}

// client makes a client that fetches jobs with the shortest cooldown that River permits.
func (q *queue) client(w *noop) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	return river.NewClient(riverpgxv5.New(q.pool), &river.Config{
		Logger: quiet(), Workers: workers,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: 5 * time.Millisecond,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: q.workers}},
	})
}

func (q *queue) completed(ctx context.Context) (n int, err error) {
	err = q.pool.QueryRow(ctx, `SELECT count(*) FROM river_job WHERE state = 'completed'`).Scan(&n)
	return n, err
}

func stop(client *river.Client[pgx.Tx]) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return client.Stop(ctx)
}

// Close closes the connections.
func (q *queue) Close() error {
	q.pool.Close()
	return nil
}
