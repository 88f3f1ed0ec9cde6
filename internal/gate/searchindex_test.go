package gate_test

import (
	"fmt"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestIndexActions indexes the first block of the stored actions; the search then finds the one that matches.
func TestIndexActions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	wanted := w.propose(bot, nil)
	err := w.store.Update(t.Context(), wanted.Tenant, func(tx gatehouse.Tx) error {
		for i := range 1100 {
			a := *wanted
			a.ID, a.IdempotencyKey, a.Approval = fmt.Sprintf("act_%032d", i), "", nil
			a.Status, a.DecidedAt, a.FinishedAt = gatehouse.StatusDenied, &a.ProposedAt, &a.ProposedAt
			a.Target.EntityRef = "other"
			if err := tx.InsertAction(&a); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, err)
	for i, want := range []bool{true, false} {
		if more, err := w.gate.IndexActions(t.Context()); err != nil || more != want {
			t.Fatalf("step %d: more %v, %v", i, more, err)
		}
	}
	page, err := w.gate.ListActions(w.admin, gatehouse.ActionFilter{Query: wanted.Target.EntityRef})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != wanted.ID {
		t.Errorf("found %d actions, %v", len(page.Items), err)
	}
}
