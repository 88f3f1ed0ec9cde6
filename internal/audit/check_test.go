package audit_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// TestCheckTamper tampers with entries and hashes of a log of several pages, and
// checks that the report names the changed place.
func TestCheckTamper(t *testing.T) {
	t.Parallel()
	const n = 2500 // entries, on three pages
	forged := func(i int64) *gatehouse.Entry {
		return rehash(&gatehouse.Entry{Index: i, Body: `{"forged":true}`})
	}
	for _, tt := range []struct {
		name   string
		tamper func(m *memLog)
		kind   audit.FaultKind // "" for none
		index  int64
		found  int64
	}{
		{"nothing", func(m *memLog) {}, "", 0, n},
		{"body", func(m *memLog) { m.entries["acme"][1700].Body = "{}" }, audit.FaultLeafHash, 1700, n},
		{"body with its leaf hash", func(m *memLog) { m.entries["acme"][1700] = forged(1700) }, audit.FaultTreeHash, 1700, n},
		{"the first entry", func(m *memLog) { m.entries["acme"][0] = forged(0) }, audit.FaultTreeHash, 0, n},
		{"body, leaf hash and leaf of the tree", func(m *memLog) {
			e := forged(1700)
			m.entries["acme"][1700] = e
			m.hashes["acme"][tlog.StoredHashIndex(0, 1700)] = e.LeafHash
		}, audit.FaultTreeHash, 1701, n}, // the entry that completes the pair
		{"node of the tree", func(m *memLog) {
			m.hashes["acme"][tlog.StoredHashIndex(4, 3)][0] ^= 1
		}, audit.FaultTreeHash, 63, n},
		{"leaf of the tree", func(m *memLog) {
			m.hashes["acme"][tlog.StoredHashIndex(0, n-1)][0] ^= 1
		}, audit.FaultTreeHash, n - 1, n},
		{"tree hashes cut off", func(m *memLog) {
			m.hashes["acme"] = m.hashes["acme"][:tlog.StoredHashIndex(0, 2100)]
		}, audit.FaultTreeHash, 2100, n},
		{"all tree hashes gone", func(m *memLog) { m.hashes["acme"] = nil }, audit.FaultTreeHash, 0, n},
		{"entry removed", func(m *memLog) {
			m.entries["acme"] = slices.Delete(m.entries["acme"], 1000, 1001)
		}, audit.FaultIndex, 1000, n - 1},
		{"end cut off", func(m *memLog) { m.entries["acme"] = m.entries["acme"][:2400] }, audit.FaultBeyond, 2400, 2400},
		{"all entries gone", func(m *memLog) { m.entries["acme"] = nil }, audit.FaultBeyond, 0, 0},
		{"entry appended", func(m *memLog) {
			m.entries["acme"] = append(m.entries["acme"], forged(n))
		}, audit.FaultTreeHash, n, n + 1},
		{"entries with the largest possible number", func(m *memLog) {
			for range 1500 {
				m.entries["acme"] = append(m.entries["acme"], forged(math.MaxInt64))
			}
		}, audit.FaultIndex, n, n + 1500},
		{"entries swapped", func(m *memLog) {
			l := m.entries["acme"]
			l[7], l[2007] = l[2007], l[7]
			m.entries["acme"] = renumber(l)
		}, audit.FaultTreeHash, 7, n},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			log := numbered(t, n)
			tt.tamper(log)
			r, err := audit.Check(t.Context(), log, "acme")
			must(t, err)
			if tt.kind == "" {
				if r.Err() != nil || r.Expected != n || r.Found != n || r.Computed != r.Root || r.Root != mth(bodies(n)) {
					t.Errorf("%+v", r)
				}
				return
			}
			if r.Fault == nil || r.Fault.Kind != tt.kind || r.Fault.Index != tt.index || r.Found != tt.found {
				t.Errorf("got %+v with %d found, want %s at %d with %d", r.Fault, r.Found, tt.kind, tt.index, tt.found)
			}
			if !errors.Is(r.Err(), audit.ErrDamaged) {
				t.Errorf("Err is %v", r.Err())
			}
		})
	}
}

// TestCheckHeldHead rewrites a whole log, including its tree. The log is
// consistent, and only the head that was kept elsewhere detects it.
func TestCheckHeldHead(t *testing.T) {
	t.Parallel()
	log := numbered(t, 20)
	held, err := audit.Head(log.of("acme"), "acme")
	must(t, err)
	rewritten := newMemLog()
	for i := range 30 {
		b := body(i)
		if i == 3 {
			b = `{"forged":true}`
		}
		rewritten.append("acme", b)
	}
	s := audit.Sequencer{Store: rewritten}
	if _, err := s.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := audit.Check(t.Context(), rewritten, "acme"); err != nil || r.Err() != nil {
		t.Fatalf("the forgery is not consistent: %v, %v", err, r.Err())
	}
	r, err := audit.Check(t.Context(), rewritten, "acme", held)
	if err != nil || r.Fault == nil || r.Fault.Kind != audit.FaultHead || r.Fault.Index != 20 {
		t.Errorf("with the held head: %+v, %v", r.Fault, err)
	}
}

// growing numbers one more leaf before each ViewQueues.
type growing struct{ *memLog }

func (g growing) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	var tree audit.Tree
	entries := g.entries["acme"]
	for _, e := range entries {
		tree.Append(e.LeafHash, nil)
	}
	e := rehash(&gatehouse.Entry{Index: tree.Size(), Body: `{"late":true}`})
	g.entries["acme"] = append(entries, e)
	g.hashes["acme"] = tree.Append(e.LeafHash, g.hashes["acme"])
	return g.memLog.ViewQueues(ctx, fn)
}

// TestCheckWhileGrowing checks a log that grows meanwhile, with waiting leaves.
func TestCheckWhileGrowing(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 998, 999, 1000, 1999} {
		log := numbered(t, n)
		log.append("zen", body(1))
		log.append("acme", body(2))
		log.append("acme", body(3))
		r, err := audit.Check(t.Context(), growing{log}, "acme")
		if err != nil || r.Err() != nil || r.Found != int64(n)+1 || r.Unnumbered != 2 || r.UnnumberedCapped {
			t.Errorf("log of %d entries: %+v, %v", n, r, err)
		}
	}
}

func TestCheckReadError(t *testing.T) {
	t.Parallel()
	log := numbered(t, 5)
	broken := errors.New("disk on fire")
	for at := 1; at <= 2; at++ {
		views := 0
		log.failView = func() error {
			if views++; views == at {
				return broken
			}
			return nil
		}
		if r, err := audit.Check(t.Context(), log, "acme"); !errors.Is(err, broken) {
			t.Errorf("View %d fails: %+v, %v", at, r, err)
		}
	}
}

// TestCheckBeside: CheckBeside finds a fault as Check does, in small pages, pauses after each page but the
// last, and stops when its context ends.
func TestCheckBeside(t *testing.T) {
	t.Parallel()
	const n, page = 1100, 250
	synctest.Test(t, func(t *testing.T) {
		log := numbered(t, n)
		log.entries["acme"][1050].Body = "{}"
		began := time.Now()
		r, err := audit.CheckBeside(t.Context(), log, "acme")
		if err != nil || r.Found != n || r.Fault == nil || r.Fault.Kind != audit.FaultLeafHash || r.Fault.Index != 1050 {
			t.Errorf("%+v, %v", r, err)
		}
		if rests := time.Since(began) / (10 * time.Millisecond); rests != n/page {
			t.Errorf("rested %d times", rests)
		}

		ctx, cancel := context.WithCancel(t.Context())
		views := 0
		log.failView = func() error {
			if views++; views == 2 {
				cancel()
			}
			return nil
		}
		if r, err := audit.CheckBeside(ctx, log, "acme"); !errors.Is(err, context.Canceled) || views != 2 {
			t.Errorf("canceled after %d views: %+v, %v", views, r, err)
		}
	})
}
