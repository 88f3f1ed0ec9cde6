package invariants

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// TestSearchIndex finds no violation in an index that the store has filled, even after actions and
// their words were archived; and it finds damage.
func TestSearchIndex(t *testing.T) {
	t.Parallel()
	path, dsn := migratedfile.New(t), migrated.Database(t)
	file := migratedfile.Open(t, path, nil)
	database := migrated.Open(t, dsn, nil)
	for name, e := range map[string]struct {
		store  gatehouse.Store
		open   func() (*Target, error)
		driver string
		dsn    string
	}{
		"sqlite": {file, func() (*Target, error) { return OpenFile(t.Context(), path, quiet()) }, "sqlite", path},
		"postgres": {
			database, func() (*Target, error) { return OpenDatabase(t.Context(), dsn, quiet()) },
			"pgx", pgtest.Superuser(dsn),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer e.store.Close()
			fillIndex(t, e.store)
			target, err := e.open()
			must(t, err)
			defer target.Close()
			raw, err := sql.Open(e.driver, e.dsn)
			must(t, err)
			defer raw.Close()
			violations := func() int {
				c := &checker{t: target, r: newReport("")}
				must(t, c.searchIndex(t.Context()))
				return c.r.Violations
			}
			if n := violations(); n != 0 {
				t.Fatalf("%d violations in a sound index", n)
			}
			archiveSome(t, e.store)
			if n := violations(); n != 0 {
				t.Fatalf("%d violations after actions were archived", n)
			}
			for _, s := range []string{
				`UPDATE action_word_block SET top_id = 'act_'`,
				`DELETE FROM action_word WHERE word = '00000100'`,
				`UPDATE action_word SET rows = substr(rows, 3) WHERE word = 'because'`,
				`UPDATE action_word SET word = 'secret' WHERE word = 'because'`,
			} {
				if _, err := raw.ExecContext(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				if n := violations(); n != 1 {
					t.Errorf("%s: %d violations", s, n)
				}
			}
		})
	}
}

// archiveSome archives three actions.
func archiveSome(t *testing.T, s gatehouse.Store) {
	t.Helper()
	err := s.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		before := tx.Now().Add(time.Hour)
		var list []*gatehouse.Archived
		for _, id := range []string{"act_00000007", "act_00000008", "act_00000900"} {
			family := gatehouse.ActionFamily{Tenant: gatehouse.DefaultTenant, IDs: []string{id}}
			records, err := tx.LockEnded([]gatehouse.ActionFamily{family}, before)
			if err != nil {
				return err
			}
			for _, r := range records {
				a, err := gatehouse.NewArchived(r, "arc_1", before)
				if err != nil {
					return err
				}
				list = append(list, a)
			}
		}
		if len(list) != 3 {
			t.Errorf("%d actions can be archived", len(list))
		}
		return tx.PutArchived(list)
	})
	must(t, err)
}

// fillIndex stores actions and indexes the first block of them.
func fillIndex(t *testing.T, s gatehouse.Store) {
	t.Helper()
	err := s.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		at := tx.Now()
		for i := range 1030 {
			a := &gatehouse.Action{
				ID: fmt.Sprintf("act_%08d", i), Revision: 1, Tenant: gatehouse.DefaultTenant,
				Status: gatehouse.StatusDenied,
				Proposal: gatehouse.Proposal{
					ActionType: "note", Connector: "shop", Operation: "update", Rationale: "because",
					Target:         gatehouse.Target{EntityType: "item", EntityRef: "x"},
					ProposedChange: `{}`, RiskLevel: gatehouse.L3,
				},
				Policy:     gatehouse.PolicyOutcome{Outcome: gatehouse.OutcomeDeny, Version: 1},
				ProposedAt: at, DecidedAt: &at, FinishedAt: &at,
			}
			if err := tx.InsertAction(a); err != nil {
				return err
			}
		}
		return nil
	})
	var block *gatehouse.SearchBlock
	for deadline := time.Now().Add(30 * time.Second); err == nil && block == nil && time.Now().Before(deadline); {
		err = s.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) (err error) {
			block, err = q.NextSearchBlock()
			return err
		})
		<-time.After(20 * time.Millisecond)
	}
	if err == nil && block != nil {
		err = s.UpdateQueues(context.Background(), func(q gatehouse.Queues) error { return q.PutSearchBlock(block) })
	}
	if err != nil || block == nil {
		t.Fatalf("the index: %v, %v", block, err)
	}
}
