package audit_test

import (
	"encoding/hex"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// TestKnownAnswers checks the hashes against the published vectors of Certificate
// Transparency (the leaves and roots of RFC 6962's reference implementation).
func TestKnownAnswers(t *testing.T) {
	t.Parallel()
	leaves := []string{"", "\x00", "\x10", "\x20\x21", "\x30\x31", "\x40\x41\x42\x43",
		"\x50\x51\x52\x53\x54\x55\x56\x57", "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f"}
	roots := []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	var tree audit.Tree
	for i, want := range roots {
		root := tree.Root()
		if got := hex.EncodeToString(root[:]); got != want {
			t.Errorf("root of %d leaves: got %s, want %s", i, got, want)
		}
		if i < len(leaves) {
			tree.Append(audit.LeafHash(gatehouse.JSON(leaves[i])), nil)
		}
	}
}

// TestTreeEqualsTlog checks leaf hashes, stored hashes and their order against
// golang.org/x/mod, and the root against the naive definition.
func TestTreeEqualsTlog(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 80), 0, 70).Draw(t, "records")
		var tree audit.Tree
		var got []gatehouse.Hash
		var want []tlog.Hash
		read := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
			out := make([]tlog.Hash, len(indexes))
			for i, x := range indexes {
				out[i] = want[x]
			}
			return out, nil
		})
		for i, r := range records {
			got = tree.Append(audit.LeafHash(gatehouse.JSON(r)), got)
			hashes, err := tlog.StoredHashes(int64(i), r, read)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, hashes...)
		}
		if !slices.EqualFunc(got, want, func(a gatehouse.Hash, b tlog.Hash) bool { return a == gatehouse.Hash(b) }) {
			t.Fatalf("stored hashes of %d records differ from tlog's", len(records))
		}
		if tree.Size() != int64(len(records)) || tree.Root() != mth(records) {
			t.Fatalf("root of %d records differs from the naive one", len(records))
		}
	})
}

// TestNumberingEqualsNaive numbers random leaves of several tenants in batches of
// random sizes and compares all stored values with the definition.
func TestNumberingEqualsNaive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := newMemLog()
		model := make(map[string][][]byte)
		rounds := rapid.IntRange(1, 8).Draw(t, "rounds")
		number := func(n int) {
			s := audit.Sequencer{Store: log, Batch: n}
			waiting := len(log.pending)
			got, err := s.Once(t.Context())
			if err != nil || got != min(n, waiting) {
				t.Fatalf("Once with batch %d and %d waiting: %d, %v", n, waiting, got, err)
			}
		}
		for range rounds {
			for range rapid.IntRange(0, 40).Draw(t, "leaves") {
				tenant := rapid.SampledFrom([]string{"acme", "zen", "default"}).Draw(t, "tenant")
				b := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "body")
				log.append(tenant, gatehouse.JSON(b))
				model[tenant] = append(model[tenant], b)
			}
			number(rapid.IntRange(1, 50).Draw(t, "batch"))
		}
		for len(log.pending) > 0 {
			number(7)
		}
		for tenant, want := range model {
			var got [][]byte
			for i, e := range log.entries[tenant] {
				if e.Index != int64(i) || e.LeafHash != audit.LeafHash(e.Body) {
					t.Fatalf("tenant %s: entry %d has index %d and hash %x", tenant, i, e.Index, e.LeafHash)
				}
				got = append(got, []byte(e.Body))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("tenant %s: leaves (-want +got):\n%s", tenant, diff)
			}
			size := rapid.IntRange(0, len(want)).Draw(t, "size")
			head := gatehouse.LogHead{Size: int64(size), Root: mth(want[:size])}
			report, err := audit.Check(t.Context(), log, tenant, head)
			if err != nil || report.Err() != nil || report.Found != int64(len(want)) || report.Computed != mth(want) ||
				report.HeldHeads != 1 {
				t.Fatalf("tenant %s: %+v, %v", tenant, report, err)
			}
		}
	})
}

// TestBatchReadsNothingPerLeaf counts the reads of numbering a batch.
func TestBatchReadsNothingPerLeaf(t *testing.T) {
	t.Parallel()
	reads := func(leaves int) int {
		log := newMemLog()
		for i := range 777 {
			log.append("acme", body(i))
		}
		s := audit.Sequencer{Store: log, Batch: 5000}
		if _, err := s.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range leaves {
			log.append([]string{"acme", "zen"}[i%2], body(i))
		}
		log.reads = 0
		if n, err := s.Once(t.Context()); n != leaves || err != nil {
			t.Fatal(n, err)
		}
		return log.reads
	}
	if few, many := reads(2), reads(3000); few != many || many > 5 {
		t.Errorf("numbering 2 leaves took %d reads, 3000 took %d; want the same, at most 5", few, many)
	}
}
