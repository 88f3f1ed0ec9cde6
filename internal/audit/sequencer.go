package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
)

// DefaultBatch is how many leaves are numbered in one transaction.
const DefaultBatch = 1000

const (
	// tick is the longest wait of a leaf whose wake-up was lost.
	tick = 900 * time.Millisecond
	// gap is the minimum time between two batches that are not full. Under load,
	// leaves gather meanwhile, so numbering needs few commits and delays decisions
	// less.
	gap = 20 * time.Millisecond
	// contention is the mean pause after another sequencer was faster.
	contention = 50 * time.Millisecond
	// The backoff after failures: it starts at minBackoff and doubles up to
	// maxBackoff.
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
)

// Sequencer numbers the waiting leaves, in the order in which the store returns
// them. Any number of sequencers may run on one store: each batch is guarded by the
// size that the log had when it was computed.
type Sequencer struct {
	Store gatehouse.Store
	// Batch bounds the leaves of one transaction; 0 is [DefaultBatch].
	Batch int
	// Logger receives failures; nil is [slog.Default].
	Logger *slog.Logger
	// Numbered is called after the commit with each tenant whose log has grown; may
	// be nil. It must be quick.
	Numbered func(tenant string)
}

// batch is one tenant's part of a transaction.
type batch struct {
	tenant string
	tree   *Tree
	size   int64 // of the log before the batch
	leaves []*gatehouse.NumberedLeaf
	hashes []gatehouse.Hash
}

// Once numbers up to Batch waiting leaves, of all tenants, in one transaction, and
// returns their number: all of them are numbered, or none. When another sequencer
// was faster, the error is [gatehouse.ErrConflict]; call again.
//
// Leaves are read and hashed in a View, so that the Update only writes, and so that
// an idle log costs the writer nothing.
func (s *Sequencer) Once(ctx context.Context) (int, error) {
	var batches []*batch
	var n int
	err := s.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		leaves, err := q.UnnumberedLeaves(s.batch())
		if err != nil {
			return err
		}
		n = len(leaves)
		batches, err = prepare(q.In, leaves)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("audit: read waiting leaves: %w", err)
	}
	if n == 0 {
		return 0, nil
	}

	failpoint.Here("sequence/read")
	err = s.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		for _, b := range batches {
			if err := q.In(b.tenant).NumberLeaves(b.size, b.leaves, b.hashes); err != nil {
				return err
			}
			failpoint.Here("sequence/numbered")
		}
		return nil
	})
	if errors.Is(err, gatehouse.ErrConflict) {
		if err := s.overtaken(ctx, batches); err != nil {
			return 0, err
		}
	}
	if err != nil {
		return 0, fmt.Errorf("audit: number %d leaves: %w", n, err)
	}

	failpoint.Here("sequence/committed")
	if s.Numbered != nil {
		for _, b := range batches {
			s.Numbered(b.tenant)
		}
	}
	return n, nil
}

// overtaken returns nil if the cause of a conflict is another sequencer that has
// lengthened one of the logs. Otherwise the store will never accept these leaves,
// and overtaken returns an error.
func (s *Sequencer) overtaken(ctx context.Context, batches []*batch) error {
	grown := false
	err := s.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		for _, b := range batches {
			size, err := q.In(b.tenant).LogSize()
			if err != nil {
				return err
			}
			grown = grown || size != b.size
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("audit: read the logs' sizes: %w", err)
	}
	if !grown {
		return errors.New(
			"audit: the store refuses to number the waiting leaves, although no other sequencer has; check for damage with " +
				"gatehouse doctor --deep")
	}
	return nil
}

// prepare computes numbers and hashes of the leaves, to extend the logs of their
// tenants. in returns the transaction of a tenant: per tenant, prepare reads the log's
// size and the right edge of its tree, and nothing per leaf.
func prepare(in func(tenant string) gatehouse.ReadTx, leaves []*gatehouse.PendingLeaf) ([]*batch, error) {
	var batches []*batch
	byTenant := make(map[string]*batch)
	var buf []byte
	for _, l := range leaves {
		b := byTenant[l.Tenant]
		if b == nil {
			tx := in(l.Tenant)
			size, err := tx.LogSize()
			if err != nil {
				return nil, err
			}
			tree, err := loadTree(tx, l.Tenant, size)
			if err != nil {
				return nil, err
			}
			b = &batch{tenant: l.Tenant, tree: tree, size: size}
			byTenant[l.Tenant] = b
			batches = append(batches, b)
		}
		var h gatehouse.Hash
		h, buf = leafHash(l.Body, buf)
		b.leaves = append(b.leaves, &gatehouse.NumberedLeaf{Row: l.Row, Index: b.tree.Size(), LeafHash: h})
		b.hashes = b.tree.Append(h, b.hashes)
	}
	return batches, nil
}

// Run numbers leaves until ctx ends: when woken, at least every 900 ms, and again at once after a
// full batch. A wake-up is a hint; a nil wake is allowed. A failure is logged and followed by a
// backoff from one second to half a minute. Losing to another sequencer is not a failure.
func (s *Sequencer) Run(ctx context.Context, wake <-chan struct{}) {
	failures := 0
	for ctx.Err() == nil {
		n, err := s.Once(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, gatehouse.ErrConflict):
			failures = 0
			s.logger().DebugContext(ctx, "audit: another sequencer was first")
			pause(ctx, contention/2+rand.N(contention))
		case err != nil:
			failures++
			wait := backoff(failures)
			s.logger().ErrorContext(ctx, "audit: numbering the waiting leaves failed",
				"error", err, "failures", failures, "retry_in", wait)
			pause(ctx, wait)
		case n >= s.batch():
			failures = 0
		default:
			failures = 0
			if n > 0 {
				pause(ctx, gap)
			}
			wake = await(ctx, wake)
		}
	}
}

// await returns when woken, when the tick is over or when ctx ends. It returns
// wake, or nil when wake was closed.
func await(ctx context.Context, wake <-chan struct{}) <-chan struct{} {
	t := time.NewTimer(tick)
	defer t.Stop()
	select {
	case _, open := <-wake:
		if !open {
			wake = nil
		}
	case <-t.C:
	case <-ctx.Done():
	}
	return wake
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func backoff(failures int) time.Duration {
	return min(minBackoff<<min(failures-1, 10), maxBackoff)
}

func (s *Sequencer) batch() int {
	if s.Batch > 0 {
		return s.Batch
	}
	return DefaultBatch
}

func (s *Sequencer) logger() *slog.Logger {
	if s.Logger != nil {
		return s.Logger
	}
	return slog.Default()
}
