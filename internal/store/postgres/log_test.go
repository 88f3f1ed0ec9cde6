package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestNumberingReadsWhatItNumbers lets many leaves wait while the server's
// statistics say that none does, as they do after an idle hour: a batch is
// numbered by looking at its own rows, not at all that wait.
func TestNumberingReadsWhatItNumbers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	appendLeaves := func(n int) {
		t.Helper()
		err := s.Update(ctx, func(tx gatehouse.Tx) error {
			for i := range n {
				if err := tx.AppendLeaf(&gatehouse.Leaf{Tenant: "default", Type: "t", Subject: fmt.Sprint(i), Actor: "a"}); err != nil {
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
		err := s.Update(ctx, func(x gatehouse.Tx) error {
			waiting, err := x.UnnumberedLeaves(most)
			if err != nil {
				return err
			}
			leaves := make([]*gatehouse.NumberedLeaf, len(waiting))
			for i, l := range waiting {
				leaves[i] = &gatehouse.NumberedLeaf{Row: l.Row, Index: from + int64(i)}
			}
			const work = `SELECT (coalesce(idx_tup_fetch, 0) + coalesce(seq_tup_read, 0))::bigint FROM pg_stat_xact_user_tables WHERE relname = 'audit_leaf'`
			tx := x.(walls).w
			before, err := tx.number(work)
			if err != nil {
				return err
			}
			if err := x.NumberLeaves("default", from, leaves, nil); err != nil {
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
	for _, sql := range []string{`ALTER TABLE audit_leaf SET (autovacuum_enabled = false)`, `VACUUM ANALYZE audit_leaf`} {
		if _, err := s.pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	const waiting, batch = 3000, 300
	appendLeaves(waiting)
	if read := number(500, batch); read < batch || read > 4*batch {
		t.Errorf("numbering %d leaves read %d rows of those that wait", batch, read)
	}
	if err := s.View(ctx, func(tx gatehouse.ReadTx) error {
		left, err := tx.UnnumberedLeaves(2 * waiting)
		if len(left) != waiting-batch {
			t.Errorf("%d leaves wait, want %d", len(left), waiting-batch)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
