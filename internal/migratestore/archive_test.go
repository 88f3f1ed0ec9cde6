package migratestore

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// archivedIsWhole reads every document of the copied archive.
func archivedIsWhole(t *testing.T, s gatehouse.Store) {
	t.Helper()
	err := s.View(t.Context(), "acme", func(tx gatehouse.ReadTx) error {
		page, err := tx.ListActions(gatehouse.ActionFilter{Archived: true, Limit: gatehouse.MaxLimit})
		if len(page.Items) < 8 {
			t.Errorf("%d actions are in the copied archive", len(page.Items))
		}
		for _, listed := range page.Items {
			a, err := tx.FindAction(listed.ID)
			if err != nil {
				return err
			}
			if a.ArchivedAt == nil || a.ComputeDigest() != a.Digest {
				t.Errorf("%s (%s) is not what it was: %s", a.ID, a.Status, a.Digest)
			}
		}
		return err
	})
	must(t, err)
}
