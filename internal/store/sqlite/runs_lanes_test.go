package sqlite

import (
	"fmt"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-dev/gatehouse"
)

// TestLanesArePassedAtOnce: the search for the next lane does not walk over the
// ready steps or queued runs of the lane before, however many there are.
func TestLanesArePassedAtOnce(t *testing.T) {
	t.Parallel()
	const many = 1000
	s := openTest(t, Config{Readers: 1})
	err := s.Update(t.Context(), "default", func(tx gatehouse.Tx) error {
		now := tx.Now()
		w := &gatehouse.Workflow{
			ID: "wfl_1", Tenant: "default", Name: "w", Version: 1, Workspace: "default", Source: "x", Digest: "d",
			CreatedBy: "ana", CreatedAt: now,
		}
		if err := tx.InsertWorkflow(w); err != nil {
			return err
		}
		for i := range many {
			id := fmt.Sprintf("run_%d", i)
			err := tx.InsertRun(&gatehouse.Run{
				ID: id, Tenant: "default", Workflow: "w", Version: 1, Workspace: "default", Status: gatehouse.RunQueued,
				Trigger: gatehouse.TriggerAPI, Input: "{}", StartedBy: "ana", CreatedAt: now,
				Steps: []*gatehouse.Step{{
					ID: "stp_" + id, Tenant: "default", RunID: id, Key: "a", Workflow: "w", Workspace: "default", Uses: "transform",
					Status: gatehouse.StepReady, CreatedAt: now, ReadyAt: &now,
				}},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	reader := <-s.readers
	defer func() { s.readers <- reader }()
	for sql, lane := range map[string][]any{
		nextLane: {"", "default", "default", "w"}, nextQueued: {"default", "w"},
	} {
		st, err := reader.cached(sql)
		if err != nil {
			t.Fatal(err)
		}
		sqlite3.Xsqlite3_stmt_status(reader.tls, st.p, sqlite3.SQLITE_STMTSTATUS_VM_STEP, 1)
		err = reader.each(sql, func(*stmt) error { t.Errorf("there is another lane: %s", sql); return nil }, lane...)
		if err != nil {
			t.Fatal(err)
		}
		if n := sqlite3.Xsqlite3_stmt_status(reader.tls, st.p, sqlite3.SQLITE_STMTSTATUS_VM_STEP, 1); n > many {
			t.Errorf("it takes %d steps to pass over %d rows: %s", n, many, sql)
		}
	}
}
