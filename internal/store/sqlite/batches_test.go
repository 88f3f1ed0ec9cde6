package sqlite

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// TestNumberInBatches numbers more leaves than fit into one row and refuses
// hashes that do not belong to the leaves.
func TestNumberInBatches(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	const leaves = 2*shared.MaxEntries + 88
	update(t, s, func(tx gatehouse.Tx) error {
		for range leaves {
			if err := tx.AppendLeaf(&gatehouse.Leaf{Tenant: "default", Type: "t", Subject: "s", Actor: "a"}); err != nil {
				return err
			}
		}
		return nil
	})
	for name, spoil := range map[string]func(*gatehouse.NumberedLeaf, []gatehouse.Hash) []gatehouse.Hash{
		"another leaf hash": func(l *gatehouse.NumberedLeaf,
			h []gatehouse.Hash) []gatehouse.Hash {
			l.LeafHash[0]++
			return h
		},
		"a hash too few": func(_ *gatehouse.NumberedLeaf, h []gatehouse.Hash) []gatehouse.Hash { return h[1:] },
		"a hash too many": func(_ *gatehouse.NumberedLeaf, h []gatehouse.Hash) []gatehouse.Hash {
			return append(h, gatehouse.Hash{})
		},
	} {
		err := s.UpdateQueues(t.Context(), func(q gatehouse.Queues) error {
			tx := q.In("default")
			list, err := q.UnnumberedLeaves(1)
			if err != nil {
				return err
			}
			l := &gatehouse.NumberedLeaf{Row: list[0].Row, LeafHash: audit.LeafHash(list[0].Body)}
			return tx.NumberLeaves(
				0,
				[]*gatehouse.NumberedLeaf{l},
				spoil(l, []gatehouse.Hash{audit.LeafHash(list[0].Body)}),
			)
		})
		if err == nil {
			t.Errorf("%s: went through", name)
		}
	}
	if n, err := (&audit.Sequencer{Store: s}).Once(t.Context()); n != leaves || err != nil {
		t.Fatalf("%d leaves were numbered: %v", n, err)
	}
	if n, err := s.writer.c.number(
		`SELECT count(*) * 1000 + max(length(leaves)) / 8 FROM audit_batch`); n != 3*1000+shared.MaxEntries || err != nil {
		t.Errorf("batches and the most entries of one: %d, %v", n, err)
	}
	if r, err := audit.Check(t.Context(), s, "default"); err != nil || r.Err() != nil || r.Found != leaves {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNumberOneTenant numbers the leaves of one tenant while earlier leaves of
// another tenant still wait.
func TestNumberOneTenant(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	updateQueues(t, s, func(q gatehouse.Queues) error {
		for _, tenant := range []string{"default", "acme", "default", "acme"} {
			if err := q.In(tenant).AppendLeaf(&gatehouse.Leaf{Tenant: tenant, Type: "t", Subject: "s", Actor: "a"}); err != nil {
				return err
			}
		}
		return nil
	})
	updateQueues(t, s, func(q gatehouse.Queues) error {
		tx := q.In("acme")
		list, err := q.UnnumberedLeaves(2)
		if err != nil {
			return err
		}
		h := audit.LeafHash(list[1].Body)
		return tx.NumberLeaves(0, []*gatehouse.NumberedLeaf{{Row: list[1].Row, LeafHash: h}}, []gatehouse.Hash{h})
	})
	err := s.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) error {
		list, err := q.UnnumberedLeaves(10)
		var rows []int64
		for _, l := range list {
			rows = append(rows, l.Row)
		}
		if d := cmp.Diff([]int64{1, 3, 4}, rows); d != "" {
			t.Errorf("waiting (-want +got):\n%s", d)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
