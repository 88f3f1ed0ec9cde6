package audit_test

import (
	"errors"
	"testing"

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

func TestHeadOfDamagedLog(t *testing.T) {
	t.Parallel()
	log := numbered(t, 6)
	log.hashes["acme"] = log.hashes["acme"][:2]
	if _, err := audit.Head(log.of("acme"), "acme"); !errors.Is(err, gatehouse.ErrNotFound) {
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
