package audit_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/gatehouse-dev/gatehouse"
)

// memLog is the log part of a store in memory, for tests of pure functions and of
// timing. Transactions are tested on SQLite.
type memLog struct {
	mu      sync.Mutex
	pending []*gatehouse.PendingLeaf
	entries map[string][]*gatehouse.Entry
	hashes  map[string][]gatehouse.Hash
	rows    int64
	// views counts the views of the store, reads the methods that read the log.
	views, reads int
	// failView, when set, is called before each View.
	failView func() error
	// refuses makes NumberLeaves fail.
	refuses bool
}

func newMemLog() *memLog {
	return &memLog{entries: make(map[string][]*gatehouse.Entry), hashes: make(map[string][]gatehouse.Hash)}
}

// memTx and memQueues are the transactions of a memLog.
type memTx struct {
	gatehouse.Tx // nil: only the log is implemented
	*memLog
	tenant string
}

type memQueues struct {
	gatehouse.Queues
	*memLog
}

type memReadQueues struct {
	gatehouse.ReadQueues
	*memLog
}

func (q memQueues) UnnumberedLeaves(limit int) ([]*gatehouse.PendingLeaf, error) {
	return q.waiting(limit)
}

func (q memReadQueues) UnnumberedLeaves(limit int) ([]*gatehouse.PendingLeaf, error) {
	return q.waiting(limit)
}

func (q memQueues) In(tenant string) gatehouse.Tx { return memTx{memLog: q.memLog, tenant: tenant} }

func (q memReadQueues) In(tenant string) gatehouse.ReadTx {
	return memTx{memLog: q.memLog, tenant: tenant}
}

// of returns a transaction on the log of a tenant.
func (m *memLog) of(tenant string) memTx { return memTx{memLog: m, tenant: tenant} }

func (m *memLog) Read(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return m.View(ctx, tenant, fn)
}

func (m *memLog) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return m.ViewQueues(ctx, func(q gatehouse.ReadQueues) error { return fn(q.In(tenant)) })
}

func (m *memLog) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	return m.UpdateQueues(ctx, func(q gatehouse.Queues) error { return fn(q.In(tenant)) })
}

func (m *memLog) ReadQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return m.ViewQueues(ctx, fn)
}

func (m *memLog) ViewQueues(_ context.Context, fn func(gatehouse.ReadQueues) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.views++
	if m.failView != nil {
		if err := m.failView(); err != nil {
			return err
		}
	}
	return fn(memReadQueues{memLog: m})
}

func (m *memLog) UpdateQueues(_ context.Context, fn func(gatehouse.Queues) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(memQueues{memLog: m})
}

func (m *memLog) Ping(context.Context) error { return nil }
func (m *memLog) Close() error               { return nil }

// append adds a waiting leaf with the given body.
func (m *memLog) append(tenant string, body gatehouse.JSON) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows++
	m.pending = append(m.pending, &gatehouse.PendingLeaf{Row: m.rows, Tenant: tenant, Body: body})
}

func (m memTx) LogSize() (int64, error) {
	m.reads++
	return int64(len(m.entries[m.tenant])), nil
}

func (m memTx) ListEntries(from int64, limit int) ([]*gatehouse.Entry, error) {
	m.reads++
	var out []*gatehouse.Entry
	for _, e := range m.entries[m.tenant] {
		if e.Index >= from && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

func (m memTx) LogHashes(indexes []int64) ([]gatehouse.Hash, error) {
	m.reads++
	var out []gatehouse.Hash
	for _, i := range indexes {
		if i >= int64(len(m.hashes[m.tenant])) {
			return nil, gatehouse.ErrNotFound
		}
		out = append(out, m.hashes[m.tenant][i])
	}
	return out, nil
}

func (m *memLog) waiting(limit int) ([]*gatehouse.PendingLeaf, error) {
	m.reads++
	return m.pending[:min(limit, len(m.pending))], nil
}

func (m memTx) NumberLeaves(expectedSize int64, leaves []*gatehouse.NumberedLeaf, hashes []gatehouse.Hash) error {
	if m.refuses || int64(len(m.entries[m.tenant])) != expectedSize {
		return gatehouse.ErrConflict
	}
	if int64(len(m.hashes[m.tenant])) != tlog.StoredHashCount(expectedSize) {
		return errors.New("hashes and entries do not agree")
	}
	waiting := make(map[int64]*gatehouse.PendingLeaf, len(m.pending))
	for _, p := range m.pending {
		waiting[p.Row] = p
	}
	for _, l := range leaves {
		if p := waiting[l.Row]; p != nil {
			m.entries[m.tenant] = append(m.entries[m.tenant],
				&gatehouse.Entry{Index: l.Index, Body: p.Body, LeafHash: l.LeafHash})
			delete(waiting, l.Row)
		}
	}
	// The caller may still hold the old list.
	m.pending = slices.DeleteFunc(slices.Clone(m.pending),
		func(p *gatehouse.PendingLeaf) bool { return waiting[p.Row] == nil })
	m.hashes[m.tenant] = append(m.hashes[m.tenant], hashes...)
	return nil
}

// mth is the Merkle tree hash of RFC 6962, section 2.1, transcribed literally.
func mth(d [][]byte) gatehouse.Hash {
	switch n := len(d); n {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(append([]byte{0}, d[0]...))
	default:
		k := 1
		for k*2 < n {
			k *= 2
		}
		left, right := mth(d[:k]), mth(d[k:])
		return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
	}
}

// bodies makes n different leaves.
func bodies(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = []byte(body(i))
	}
	return out
}

func body(i int) gatehouse.JSON {
	return gatehouse.JSON(fmt.Sprintf(`{"actor":"ana","id":"leaf_%d","type":"hitl.approved"}`, i))
}

// logOf makes the entries and the head of a log of n leaves.
func logOf(n int) ([]*gatehouse.Entry, gatehouse.LogHead) {
	entries := make([]*gatehouse.Entry, n)
	for i := range entries {
		entries[i] = &gatehouse.Entry{Index: int64(i), Body: body(i), LeafHash: mth([][]byte{[]byte(body(i))})}
	}
	return entries, gatehouse.LogHead{Tenant: "acme", Size: int64(n), Root: mth(bodies(n))}
}

func sequence(entries []*gatehouse.Entry) iter.Seq2[*gatehouse.Entry, error] {
	return func(yield func(*gatehouse.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}
