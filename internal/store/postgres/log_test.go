package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// TestNumberingReadsWhatItNumbers makes many leaves wait while the server's statistics say that
// none does, as after an idle hour: numbering a batch reads only its own rows, not all waiting
// ones.
func TestNumberingReadsWhatItNumbers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	appendLeaves := func(n int) {
		t.Helper()
		err := s.Update(ctx, "default", func(tx gatehouse.Tx) error {
			for i := range n {
				if err := tx.AppendLeaf(
					&gatehouse.Leaf{Tenant: "default", Type: "t", Subject: fmt.Sprint(i), Actor: "a"}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	number := func(from int64, most int) (read int64) {
		t.Helper()
		err := s.UpdateQueues(ctx, func(q gatehouse.Queues) error {
			x := q.In("default")
			const work = `SELECT sum(coalesce(idx_tup_fetch, 0) + coalesce(seq_tup_read, 0))::bigint
				FROM pg_stat_xact_user_tables WHERE relname IN ('audit_leaf', 'audit_waiting')`
			tx := x.(*tx)
			before, err := tx.number(work)
			if err != nil {
				return err
			}
			waiting, err := q.UnnumberedLeaves(most)
			if err != nil {
				return err
			}
			leaves, hashes := numbersFor(from, waiting)
			if err := x.NumberLeaves(from, leaves, hashes); err != nil {
				return err
			}
			read, err = tx.number(work)
			read -= before
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	appendLeaves(500)
	number(0, 500)
	for _, sql := range []string{`ALTER TABLE audit_waiting SET (autovacuum_enabled = false)`,
		`VACUUM ANALYZE audit_leaf, audit_waiting`} {
		if _, err := s.pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	const waiting, batch = 3000, 300
	appendLeaves(waiting)
	if read := number(500, batch); read < 2*batch || read > 4*batch {
		t.Errorf("%d rows were read to find and number %d leaves, want %d to %d", read, batch, 2*batch, 4*batch)
	}
	if err := s.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		left, err := q.UnnumberedLeaves(2 * waiting)
		if len(left) != waiting-batch {
			t.Errorf("%d leaves wait, want %d", len(left), waiting-batch)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestNumberingIsAllOrNone: a batch with a leaf that already has a number, or that belongs to
// another tenant, numbers none.
func TestNumberingIsAllOrNone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	p := populate(t, s) // its leaves wait for their numbers
	if _, err := p.gate.CreateTenant(p.root, "acme"); err != nil {
		t.Fatal(err)
	}
	number := func(from int64, leaves ...*gatehouse.PendingLeaf) error {
		numbered, hashes := numbersFor(from, leaves)
		return s.Update(
			ctx,
			gatehouse.DefaultTenant,
			func(tx gatehouse.Tx) error { return tx.NumberLeaves(from, numbered, hashes) },
		)
	}
	waiting := func() (own, others []*gatehouse.PendingLeaf) {
		t.Helper()
		err := s.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
			list, err := q.UnnumberedLeaves(100)
			for _, l := range list {
				if l.Tenant == gatehouse.DefaultTenant {
					own = append(own, l)
				} else {
					others = append(others, l)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return own, others
	}
	own, others := waiting()
	if len(own) < 3 || len(others) < 1 {
		t.Fatalf("%d and %d leaves wait", len(own), len(others))
	}
	if err := number(0, own[0]); err != nil {
		t.Fatal(err)
	}
	for name, batch := range map[string][]*gatehouse.PendingLeaf{
		"numbered": {own[1], own[0]}, "another tenant's": {own[1], others[0]}, "twice": {own[1], own[1]},
		"out of their order": {own[2], own[1]}, "nobody's": {own[1], {Row: 1 << 40}},
	} {
		if err := number(1, batch...); !errors.Is(err, gatehouse.ErrConflict) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	if left, _ := waiting(); len(left) != len(own)-1 {
		t.Errorf("%d leaves wait, want %d", len(left), len(own)-1)
	}
	if err := number(1, own[1], own[2]); err != nil {
		t.Error(err)
	}
}

// TestNumberingGoesOnWithoutDeletedLeaves: if somebody deletes waiting leaves in spite of the triggers,
// all other leaves still get numbers, whether they were stored with the deleted leaves or later. The
// deleted leaves remain listed in audit_waiting, for doctor to report.
func TestNumberingGoesOnWithoutDeletedLeaves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	if err := s.Update(ctx, "default", func(tx gatehouse.Tx) error {
		for i := range 12 {
			if err := tx.AppendLeaf(
				&gatehouse.Leaf{Tenant: "default", Type: "t", Subject: fmt.Sprint(i), Actor: "a"}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// Leaves 1 to 4 have a row each, 5 to 9 share one, 10 to 12 share one.
	for _, sql := range []string{
		`DELETE FROM audit_waiting WHERE first > 4`,
		`INSERT INTO audit_waiting (first, tenant, leaves)
			VALUES (5, 'default', '{5,6,7,8,9}'), (10, 'default', '{10,11,12}')`,
		`ALTER TABLE audit_leaf DISABLE TRIGGER USER`,
		`DELETE FROM audit_leaf WHERE seq < 6 OR seq = 8`,
	} {
		if _, err := s.pool.Exec(ctx, `SET `+TenantSetting+` = '*'; `+sql); err != nil {
			t.Fatal(err)
		}
	}
	var got [][]int64
	for from := int64(0); len(got) < 10; {
		var rows []int64
		if err := s.UpdateQueues(ctx, func(q gatehouse.Queues) error {
			tx := q.In("default")
			waiting, err := q.UnnumberedLeaves(2)
			if err != nil || len(waiting) == 0 {
				return err
			}
			for _, l := range waiting {
				rows = append(rows, l.Row)
			}
			leaves, hashes := numbersFor(from, waiting)
			return tx.NumberLeaves(from, leaves, hashes)
		}); err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			break
		}
		got, from = append(got, rows), from+int64(len(rows))
	}
	if diff := cmp.Diff([][]int64{{6, 7}, {9, 10}, {11, 12}}, got); diff != "" {
		t.Errorf("numbered (-want +got):\n%s", diff)
	}
	var left []int64
	if err := s.pool.QueryRow(ctx,
		`SELECT array_agg(l ORDER BY l) FROM audit_waiting CROSS JOIN LATERAL unnest(leaves) l`).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1, 2, 3, 4, 5, 8}, left); diff != "" {
		t.Errorf("still waiting (-want +got):\n%s", diff)
	}
}

// numbersFor numbers the waiting leaves, beginning with from. It also returns as many tree hashes as
// they need, with arbitrary values.
func numbersFor(
	from int64, waiting []*gatehouse.PendingLeaf,
) (leaves []*gatehouse.NumberedLeaf, hashes []gatehouse.Hash) {
	for i, l := range waiting {
		n := from + int64(i)
		leaf := &gatehouse.NumberedLeaf{Row: l.Row, Index: n, LeafHash: gatehouse.Hash{byte(n), byte(n >> 8), 1}}
		hashes = append(hashes, leaf.LeafHash)
		hashes = append(hashes, make([]gatehouse.Hash, shared.LeafPosition(n+1)-shared.LeafPosition(n)-1)...)
		leaves = append(leaves, leaf)
	}
	return leaves, hashes
}
