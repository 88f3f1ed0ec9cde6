package feed_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/feed"
	"github.com/gatehouse-dev/gatehouse/internal/natstest"
)

// replaced is a store that fails, and then reads from another one.
type replaced struct {
	gatehouse.Store
	failed, reads atomic.Int64 // failed reads, and those from the other store
	by            atomic.Pointer[world]
	down          atomic.Bool
}

func (r *replaced) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	if by := r.by.Load(); by != nil {
		defer r.reads.Add(1)
		return by.store.View(ctx, tenant, fn)
	}
	if r.down.Load() {
		r.failed.Add(1)
		return errors.New("the primary is gone")
	}
	return r.Store.View(ctx, tenant, fn)
}

func (r *replaced) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	if by := r.by.Load(); by != nil {
		defer r.reads.Add(1)
		return by.store.ViewQueues(ctx, fn)
	}
	if r.down.Load() {
		r.failed.Add(1)
		return errors.New("the primary is gone")
	}
	return r.Store.ViewQueues(ctx, fn)
}

// TestStandbyLackedPublishedEvents: after a failover, the log has other entries in
// place of the published ones, and then five more. The feed must not publish the
// five as the continuation of what it has published.
func TestStandbyLackedPublishedEvents(t *testing.T) {
	t.Parallel()
	broker := natstest.Start(t)
	before, after := newWorld(t), newWorld(t)
	for _, w := range []*world{before, after} {
		for _, tenant := range tenants {
			w.write(tenant, 10)
		}
	}
	store := &replaced{Store: before.store}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	f := &feed.Feed{
		Store: store, Conn: natstest.Connect(t, broker.URL()), Wake: before.hint, Logger: slog.New(slog.DiscardHandler),
		Config: feed.Config{URL: broker.URL()},
	}
	go func() { defer close(done); f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	js := streams(t, broker.URL())
	before.exact(js)
	store.down.Store(true)
	eventually(t, func() bool { return store.failed.Load() > 0 }, func() string { return "no failed read" })
	for _, tenant := range tenants {
		after.write(tenant, 5)
	}
	store.by.Store(after)
	eventually(t, func() bool { return store.reads.Load() > 6 }, func() string { return "no reads from the other store" })
	if n := f.Published(); n != uint64(len(before.entries(tenants[0]))+len(before.entries(tenants[1]))) {
		t.Errorf("%d events are published: some are from the other log", n)
	}
}
