package audit_test

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// numbered returns a log of n numbered leaves of tenant acme.
func numbered(t testing.TB, n int) *memLog {
	t.Helper()
	log := newMemLog()
	for i := range n {
		log.append("acme", body(i))
	}
	s := audit.Sequencer{Store: log, Batch: n + 1}
	if got, err := s.Once(t.Context()); got != n || err != nil {
		t.Fatal(got, err)
	}
	return log
}

// TestProofs checks inclusion and consistency proofs of random sizes with the
// checkers of tlog against naive roots, and checks that they prove nothing else.
func TestProofs(t *testing.T) {
	t.Parallel()
	const n = 100
	log := numbered(t, n)
	rapid.Check(t, func(t *rapid.T) {
		size := int64(rapid.IntRange(1, n).Draw(t, "size"))
		index := rapid.Int64Range(0, size-1).Draw(t, "index")
		from := rapid.Int64Range(1, size).Draw(t, "from")
		root := func(size int64) tlog.Hash { return tlog.Hash(mth(bodies(int(size)))) }
		leaf := func(i int64) tlog.Hash { return tlog.Hash(audit.LeafHash(body(int(i)))) }

		entry, err := audit.ProveEntry(log.of("acme"), "acme", index, size)
		if err != nil || tlog.Hash(entry.Root) != root(size) || tlog.Hash(entry.LeafHash) != leaf(index) {
			t.Fatalf("entry %d in %d: %+v, %v", index, size, entry, err)
		}
		inclusion := hashesOf(entry.Hashes)
		if err := tlog.CheckRecord(inclusion, size, root(size), index, leaf(index)); err != nil {
			t.Fatalf("entry %d in %d: %v", index, size, err)
		}
		if err := tlog.CheckRecord(inclusion, size, root(size), index, leaf(index+1)); err == nil {
			t.Fatalf("the proof of entry %d in %d proves entry %d too", index, size, index+1)
		}

		growth, err := audit.ProveGrowth(log.of("acme"), "acme", from, size)
		if err != nil || tlog.Hash(growth.FromRoot) != root(from) || tlog.Hash(growth.ToRoot) != root(size) {
			t.Fatalf("%d to %d: %+v, %v", from, size, growth, err)
		}
		consistency := hashesOf(growth.Hashes)
		if err := tlog.CheckTree(consistency, size, root(size), from, root(from)); err != nil {
			t.Fatalf("%d to %d: %v", from, size, err)
		}
		if err := tlog.CheckTree(consistency, size, root(size), from, leaf(n)); err == nil {
			t.Fatalf("the proof from %d to %d proves another beginning too", from, size)
		}
	})
}

func hashesOf(proof []gatehouse.Hash) []tlog.Hash {
	out := make([]tlog.Hash, len(proof))
	for i, h := range proof {
		out[i] = tlog.Hash(h)
	}
	return out
}

func TestProofBounds(t *testing.T) {
	t.Parallel()
	log := numbered(t, 5)
	proof := func(tenant string, index, size int64) error {
		_, err := audit.ProveEntry(log.of(tenant), tenant, index, size)
		return err
	}
	consistency := func(tenant string, from, to int64) error {
		_, err := audit.ProveGrowth(log.of(tenant), tenant, from, to)
		return err
	}
	for i, tt := range []struct {
		err     error
		pointer string // "" for none
	}{
		{proof("acme", 0, 1), ""}, {proof("acme", 4, 5), ""}, {proof("acme", 4, 0), ""},
		{proof("acme", 5, 5), "/query/entry"}, {proof("acme", -1, 5), "/query/entry"},
		{proof("acme", 0, 6), "/query/size"}, {proof("acme", 0, -1), "/query/size"}, {proof("acme", 5, 0), "/query/entry"},
		{proof("nobody", 0, 1), "/query/size"},
		{consistency("acme", 1, 5), ""}, {consistency("acme", 5, 5), ""}, {consistency("acme", 5, 0), ""},
		{consistency("acme", 0, 5), "/query/from"}, {consistency("acme", 4, 3), "/query/from"},
		{consistency("acme", 1, 6), "/query/to"}, {consistency("nobody", 1, 1), "/query/to"},
	} {
		var e *gatehouse.Error
		switch {
		case tt.pointer == "" && tt.err != nil:
			t.Errorf("case %d: %v", i, tt.err)
		case tt.pointer != "" &&
			(!errors.As(tt.err, &e) || e.Code != gatehouse.CodeInvalid || e.Violations[0].Pointer != tt.pointer):
			t.Errorf("case %d: got %v, want invalid %s", i, tt.err, tt.pointer)
		}
	}
}

func TestHeadOfDamagedLog(t *testing.T) {
	t.Parallel()
	log := numbered(t, 6)
	log.hashes["acme"] = log.hashes["acme"][:2]
	if _, err := audit.Head(log.of("acme"), "acme"); !errors.Is(err, audit.ErrDamaged) ||
		errors.Is(err, gatehouse.ErrNotFound) {
		t.Errorf("Head with a missing hash: %v", err)
	}
	if _, err := audit.Head(shortReads{log.of("acme")}, "acme"); !errors.Is(err, audit.ErrDamaged) {
		t.Errorf("Head with a store that leaves missing hashes out: %v", err)
	}
}

// shortReads leaves out missing hashes.
type shortReads struct{ gatehouse.LogReader }

func (s shortReads) LogHashes(indexes []int64) ([]gatehouse.Hash, error) {
	var out []gatehouse.Hash
	for _, i := range indexes {
		if h, err := s.LogReader.LogHashes([]int64{i}); err == nil {
			out = append(out, h...)
		}
	}
	return out, nil
}

func ExampleOrigin() {
	fmt.Println(audit.Origin("gate.example.com", "acme"))
	// Output: gate.example.com/acme
}
