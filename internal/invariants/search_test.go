package invariants

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
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
			database, func() (*Target, error) { return OpenDatabase(t.Context(), dsn+"&pool_max_conns=4", quiet()) },
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
			violations := func() []Violation {
				c := &checker{t: target, r: newReport("")}
				must(t, c.searchIndex(t.Context()))
				return c.r.Invariants[16].Listed
			}
			if v := violations(); len(v) > 0 {
				t.Fatalf("violations in a sound index: %+v", v)
			}
			archiveSome(t, e.store)
			if v := violations(); len(v) > 0 {
				t.Fatalf("violations after actions were archived: %+v", v)
			}
			for _, d := range []struct{ damage, undo, want string }{
				{`UPDATE action_word_block SET top_id = 'act_'`,
					`UPDATE action_word_block SET top_id = 'act_~'`, "range of ids"},
				{`UPDATE action_word SET word = 'secret' WHERE word = 'because'`,
					`UPDATE action_word SET word = 'because' WHERE word = 'secret'`, `lacks "because"`},
				{`UPDATE action_word SET word = 'zzz' WHERE word = '00000100'`,
					`UPDATE action_word SET word = '00000100' WHERE word = 'zzz'`, `lacks "00000100"`},
				{`UPDATE action_word SET rows = substr(rows, 3) WHERE word = 'because'`, `SELECT 1`, `rows of "because"`},
			} {
				if _, err := raw.ExecContext(t.Context(), d.damage); err != nil {
					t.Fatal(err)
				}
				if v := violations(); len(v) != 1 || !strings.Contains(v[0].Detail, d.want) {
					t.Errorf("%s: %+v", d.damage, v)
				}
				if _, err := raw.ExecContext(t.Context(), d.undo); err != nil {
					t.Fatal(err)
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
