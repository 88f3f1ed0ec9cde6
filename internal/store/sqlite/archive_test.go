package sqlite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestKeptButForTheCopy bypasses the store and tries what is forbidden: to delete
// rows of an action that is not in the archive, and to delete or change the archive.
func TestKeptButForTheCopy(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	ended := func(id string) *gatehouse.Action {
		var a *gatehouse.Action
		err := s.Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			a = pendingAction(id, tx.Now())
			if err := tx.InsertAction(a); err != nil {
				return err
			}
			return errors.Join(
				tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalRejected),
				tx.MoveAction(
					gatehouse.ActionMove{ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusRejected, Decided: true,
						Finished: true}),
			)
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	kept, gone := ended("1"), ended("2")
	delete := func(what string) error {
		return s.Update(context.Background(), gone.Tenant, func(x gatehouse.Tx) error {
			_, err := x.(*tx).exec(`DELETE FROM ` + what)
			return err
		})
	}
	for _, table := range []string{"action", "proposal", "approval"} {
		if err := delete(table); !errors.Is(err, gatehouse.ErrConflict) {
			t.Errorf("deleting all of %s: %v", table, err)
		}
	}
	before := time.Now().Add(time.Hour)
	err := s.Update(context.Background(), gone.Tenant, func(x gatehouse.Tx) error {
		records, err := x.LockEnded([]gatehouse.ActionFamily{{Tenant: gone.Tenant, IDs: []string{gone.ID}}}, before)
		if err != nil || len(records) != 1 {
			return fmt.Errorf("%d records, %w", len(records), err)
		}
		a, err := gatehouse.NewArchived(records[0], "arc_1", before)
		if err != nil {
			return err
		}
		return x.PutArchived([]*gatehouse.Archived{a})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := delete("action_archive"); !errors.Is(err, gatehouse.ErrConflict) {
		t.Errorf("deleting the archive: %v", err)
	}
	err = s.Update(context.Background(), gone.Tenant, func(x gatehouse.Tx) error {
		_, err := x.(*tx).exec(`UPDATE action_archive SET status = 'denied'`)
		return err
	})
	if !errors.Is(err, gatehouse.ErrConflict) {
		t.Errorf("changing the archive: %v", err)
	}
	for _, a := range []*gatehouse.Action{kept, gone} {
		err := s.View(
			context.Background(),
			gatehouse.DefaultTenant,
			func(tx gatehouse.ReadTx) error { _, err := tx.FindAction(a.ID); return err },
		)
		if err != nil {
			t.Errorf("%s: %v", a.ID, err)
		}
	}
}
