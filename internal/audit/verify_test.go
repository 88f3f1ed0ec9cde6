package audit_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// TestVerifyEntries verifies random intact logs, with heads held elsewhere.
func TestVerifyEntries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "n")
		entries, head := logOf(n)
		var held []gatehouse.LogHead
		for _, size := range rapid.SliceOfN(rapid.IntRange(0, n), 0, 5).Draw(t, "held") {
			_, h := logOf(size)
			held = append(held, h)
		}
		r, err := audit.VerifyEntries(sequence(entries), head, held...)
		if err != nil || r.Err() != nil {
			t.Fatal(err, r.Err())
		}
		if r.Expected != int64(n) || r.Found != int64(n) || r.Computed != head.Root || r.HeldHeads != len(held) {
			t.Fatalf("%+v", r)
		}
	})
}

// rehash gives a changed entry the leaf hash that fits, as a careful forger would.
func rehash(e *gatehouse.Entry) *gatehouse.Entry {
	return &gatehouse.Entry{Index: e.Index, Body: e.Body, LeafHash: audit.LeafHash(e.Body)}
}

// renumber gives entries the indexes 0, 1, 2, …, as a careful forger would.
func renumber(entries []*gatehouse.Entry) []*gatehouse.Entry {
	out := make([]*gatehouse.Entry, len(entries))
	for i, e := range entries {
		out[i] = &gatehouse.Entry{Index: int64(i), Body: e.Body, LeafHash: e.LeafHash}
	}
	return out
}

// TestTamper tampers at a random place in many ways, carelessly and
// carefully, and checks kind and place of the fault.
func TestTamper(t *testing.T) {
	t.Parallel()
	type log = []*gatehouse.Entry
	end := func(n, _ int64) int64 { return n }
	at := func(_, i int64) int64 { return i }
	ways := []struct {
		name   string
		tamper func(t *rapid.T, l log, i int) log
		kind   audit.FaultKind
		index  func(n, i int64) int64 // the fault's index, in a log of n with entry i changed
		found  int                    // number of surplus entries
	}{
		{"byte of a body", func(t *rapid.T, l log, i int) log {
			l[i] = &gatehouse.Entry{Index: l[i].Index, Body: flip(t, l[i].Body), LeafHash: l[i].LeafHash}
			return l
		}, audit.FaultLeafHash, at, 0},
		{"byte of a body, rehashed", func(t *rapid.T, l log, i int) log {
			l[i] = rehash(&gatehouse.Entry{Index: l[i].Index, Body: flip(t, l[i].Body)})
			return l
		}, audit.FaultRoot, end, 0},
		{"bit of a leaf hash", func(t *rapid.T, l log, i int) log {
			e := *l[i]
			e.LeafHash[rapid.IntRange(0, 31).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			l[i] = &e
			return l
		}, audit.FaultLeafHash, at, 0},
		{"body cut short", func(t *rapid.T, l log, i int) log {
			keep := rapid.IntRange(0, len(l[i].Body)-1).Draw(t, "keep")
			l[i] = &gatehouse.Entry{Index: l[i].Index, Body: l[i].Body[:keep], LeafHash: l[i].LeafHash}
			return l
		}, audit.FaultLeafHash, at, 0},
		{"body with more at its end", func(t *rapid.T, l log, i int) log {
			l[i] = &gatehouse.Entry{Index: l[i].Index, Body: l[i].Body + " ", LeafHash: l[i].LeafHash}
			return l
		}, audit.FaultLeafHash, at, 0},
		{"index", func(t *rapid.T, l log, i int) log {
			e := *l[i]
			e.Index += rapid.SampledFrom([]int64{-1, 1, 1 << 40}).Draw(t, "by")
			l[i] = &e
			return l
		}, audit.FaultIndex, at, 0},
		{"entry removed", func(t *rapid.T, l log, i int) log {
			return slices.Delete(l, i, i+1)
		}, audit.FaultIndex, at, -1},
		{"entry removed, renumbered", func(t *rapid.T, l log, i int) log {
			return renumber(slices.Delete(l, i, i+1))
		}, audit.FaultMissing, func(n, _ int64) int64 { return n - 1 }, -1},
		{"entry twice", func(t *rapid.T, l log, i int) log {
			return slices.Insert(l, i, l[i])
		}, audit.FaultIndex, func(_, i int64) int64 { return i + 1 }, 1},
		{"entry twice, renumbered", func(t *rapid.T, l log, i int) log {
			return renumber(slices.Insert(l, i, l[i]))
		}, audit.FaultBeyond, end, 1},
		{"neighbours swapped", func(t *rapid.T, l log, i int) log {
			l[i], l[i+1] = l[i+1], l[i]
			return l
		}, audit.FaultIndex, at, 0},
		{"neighbours swapped, renumbered", func(t *rapid.T, l log, i int) log {
			l[i], l[i+1] = l[i+1], l[i]
			return renumber(l)
		}, audit.FaultRoot, end, 0},
		{"end cut off", func(t *rapid.T, l log, i int) log {
			return l[:len(l)-1]
		}, audit.FaultMissing, func(n, _ int64) int64 { return n - 1 }, -1},
		{"entry appended", func(t *rapid.T, l log, i int) log {
			return append(l, rehash(&gatehouse.Entry{Index: int64(len(l)), Body: "{}"}))
		}, audit.FaultBeyond, end, 1},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(3, 40).Draw(t, "n")
				i := rapid.IntRange(0, n-2).Draw(t, "i") // not the last one, which would just shorten the log
				entries, head := logOf(n)
				r, err := audit.VerifyEntries(sequence(way.tamper(t, entries, i)), head)
				if err != nil {
					t.Fatal(err)
				}
				if r.Fault == nil || r.Fault.Kind != way.kind || r.Fault.Index != way.index(int64(n), int64(i)) {
					t.Fatalf("entry %d of %d: got %+v, want %s at %d", i, n, r.Fault, way.kind, way.index(int64(n), int64(i)))
				}
				if !errors.Is(r.Err(), audit.ErrDamaged) || r.Expected != int64(n) || r.Found != int64(n+way.found) {
					t.Fatalf("entry %d of %d: %v; expected %d, found %d", i, n, r.Err(), r.Expected, r.Found)
				}
			})
		})
	}
}

// flip changes one bit of a body.
func flip(t *rapid.T, body gatehouse.JSON) gatehouse.JSON {
	b := []byte(body)
	b[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	return gatehouse.JSON(b)
}

// TestHeldHeads rewrites a log from some entry on, with a matching head. A head
// held elsewhere detects it if and only if its size exceeds that entry.
func TestHeldHeads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		i := rapid.IntRange(0, n-1).Draw(t, "rewritten")
		size := rapid.IntRange(0, n+3).Draw(t, "held")
		_, held := logOf(size)

		entries, head := logOf(n)
		entries[i] = rehash(&gatehouse.Entry{Index: int64(i), Body: "{}"})
		rewritten := bodies(n)
		rewritten[i] = []byte("{}")
		head.Root = mth(rewritten)

		if r, err := audit.VerifyEntries(sequence(entries), head); err != nil || r.Err() != nil {
			t.Fatalf("the forgery is not consistent: %v, %v", err, r.Err())
		}
		r, err := audit.VerifyEntries(sequence(entries), head, held)
		if err != nil {
			t.Fatal(err)
		}
		if detected := r.Fault != nil; detected != (size > i) {
			t.Fatalf("entry %d of %d rewritten, a head of size %d held: fault %+v", i, n, size, r.Fault)
		}
		if r.Fault != nil && (r.Fault.Kind != audit.FaultHead || r.Fault.Index != int64(size)) {
			t.Fatalf("%+v", r.Fault)
		}
	})
}

// TestImpossibleHeads: a head that no log can have never verifies.
func TestImpossibleHeads(t *testing.T) {
	t.Parallel()
	entries, head := logOf(4)
	_, empty := logOf(0)
	negative := gatehouse.LogHead{Size: -1, Root: empty.Root}
	if r, err := audit.VerifyEntries(sequence(entries), head, negative); err != nil || r.Fault == nil ||
		r.Fault.Kind != audit.FaultHead {
		t.Errorf("held: %+v, %v", r, err)
	}
	if r, err := audit.VerifyEntries(sequence(nil), negative); err != nil || r.Fault == nil ||
		r.Fault.Kind != audit.FaultMissing {
		t.Errorf("head: %+v, %v", r, err)
	}
}

// growingLog is a log that always has one entry more than when its head was taken.
type growingLog struct {
	gatehouse.AuditService
	size int64
}

func (l growingLog) ListEntries(_ context.Context, from int64, limit int) (page []*gatehouse.Entry, err error) {
	for i := from; i <= l.size && len(page) < limit; i++ {
		page = append(page, &gatehouse.Entry{Index: i})
	}
	return page, nil
}

// TestProgressOfAGrowingLog: the progress reaches the size of the head.
func TestProgressOfAGrowingLog(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, gatehouse.MaxLimit - 1, gatehouse.MaxLimit, gatehouse.MaxLimit + 1} {
		var done, entries int64
		read := func(n int64) { done = n }
		for _, err := range audit.EntriesUpTo(t.Context(), growingLog{size: size}, size, read) {
			if err != nil {
				t.Fatal(err)
			}
			entries++
		}
		if done != size || entries != size {
			t.Errorf("%d of %d entries, progress %d", entries, size, done)
		}
	}
}

func TestVerifyEntriesReadError(t *testing.T) {
	t.Parallel()
	entries, head := logOf(5)
	broken := errors.New("disk on fire")
	r, err := audit.VerifyEntries(func(yield func(*gatehouse.Entry, error) bool) {
		if yield(entries[0], nil) {
			yield(nil, broken)
		}
	}, head)
	if !errors.Is(err, broken) || r.Found != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// BenchmarkVerifyEntries measures leaves of 420 bytes, the typical size of a
// decision's leaf.
func BenchmarkVerifyEntries(b *testing.B) {
	const n = 100_000
	entries := make([]*gatehouse.Entry, n)
	var tree audit.Tree
	pad := make([]byte, 420)
	for i := range entries {
		copy(pad, body(i))
		e := &gatehouse.Entry{Index: int64(i), Body: gatehouse.JSON(pad)}
		e.LeafHash = audit.LeafHash(e.Body)
		tree.Append(e.LeafHash, nil)
		entries[i] = e
	}
	head := gatehouse.LogHead{Size: n, Root: tree.Root()}
	for b.Loop() {
		if r, err := audit.VerifyEntries(sequence(entries), head); err != nil || r.Err() != nil {
			b.Fatal(err, r.Err())
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}
