package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
)

// archiveWalls accesses one tenant's archive as another tenant.
func (s *suite) archiveWalls() {
	const other = "acme"
	s.as(other).update(
		func(tx gatehouse.Tx) error { return tx.InsertTenant(&gatehouse.Tenant{ID: other, CreatedAt: tx.Now()}) })
	a, p := s.queued(func(a *gatehouse.Action) { a.IdempotencyKey = "k" })
	s.settle(a, p)
	living, q := s.queued()
	s.settle(living, q)
	s.leaf(tenant, a.ID)
	before := s.later()
	family := []gatehouse.ActionFamily{{Tenant: other, IDs: []string{a.ID}}}
	s.as(other).update(func(tx gatehouse.Tx) error {
		list, err := tx.LockEnded(family, before)
		if len(list) > 0 {
			s.Error("another tenant locked the action for the archive")
		}
		return err
	})
	s.update(func(tx gatehouse.Tx) error {
		_, err := lockAndArchive(tx, []gatehouse.ActionFamily{{Tenant: tenant, IDs: []string{a.ID}}}, before)
		return err
	})
	for who, want := range map[string]bool{tenant: true, other: false} {
		s.as(who).view(func(tx gatehouse.ReadTx) error {
			for what, err := range map[string]error{
				"FindAction":      second(tx.FindAction(a.ID)),
				"by approval":     second(tx.FindAction(a.Approval.ID)),
				"FindActionByKey": second(tx.FindActionByKey("k")),
				"FindArchived":    second(tx.FindArchived(a.ID)),
				"FindPush":        second(tx.FindPush(p.ID)),
			} {
				if found := err == nil; found != want || !found && !errors.Is(err, gatehouse.ErrNotFound) {
					s.Errorf("%s of tenant %s: %v", what, who, err)
				}
			}
			page, err := tx.ListActions(gatehouse.ActionFilter{Archived: true})
			if listed := len(page.Items) == 1; listed != want {
				s.Errorf("tenant %s lists %d archived actions", who, len(page.Items))
			}
			return err
		})
	}
	// The other tenant can use the same key.
	s.as(other).update(func(tx gatehouse.Tx) error {
		return tx.InsertAction(s.action(tx.Now(), func(n *gatehouse.Action) { n.Tenant, n.IdempotencyKey = other, "k" }))
	})
	if s.find(living.ID).ArchivedAt != nil {
		s.Error("an action outside the family is archived")
	}
}

func second[T any](_ T, err error) error { return err }

// archiveLists pages through the archive.
func (s *suite) archiveLists() {
	var want []string
	for i := range 7 {
		status := gatehouse.StatusRejected
		if i%3 == 0 {
			status = gatehouse.StatusCanceled
		}
		want = append(want, s.in(status).ID)
	}
	s.pending()
	s.archive(s.later())
	slices.Reverse(want)
	list := func(f gatehouse.ActionFilter) (ids []string) {
		s.Helper()
		f.Archived, f.Limit = true, 2
		for {
			var page gatehouse.Page[*gatehouse.Action]
			s.view(func(tx gatehouse.ReadTx) (err error) { page, err = tx.ListActions(f); return err })
			for _, a := range page.Items {
				ids = append(ids, a.ID)
			}
			if f.Cursor = page.NextCursor; f.Cursor == "" {
				return ids
			}
		}
	}
	s.same("all", list(gatehouse.ActionFilter{}), want)
	s.same("canceled ones", list(gatehouse.ActionFilter{Status: gatehouse.StatusCanceled}),
		[]string{want[0], want[3], want[6]})
	s.same("of a type",
		list(gatehouse.ActionFilter{ActionType: "price_change", RiskLevel: gatehouse.L3, ProposedBy: "prn_bot"}), want)
	s.same("of another type", list(gatehouse.ActionFilter{ActionType: "note"}), []string(nil))
	s.same("by an approval", list(gatehouse.ActionFilter{Query: "apr_" + want[2][4:]}), want[2:3])
	s.view(func(tx gatehouse.ReadTx) error {
		page, err := tx.ListActions(gatehouse.ActionFilter{Archived: true, Limit: 2})
		if err != nil {
			return err
		}
		_, err = tx.ListActions(gatehouse.ActionFilter{Cursor: page.NextCursor})
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			s.Errorf("ListActions without Archived, given a cursor of the archive: error %v, want code invalid", err)
		}
		return nil
	})
}

// archiveRace runs several archivers at once while actions are read.
func (s *suite) archiveRace() {
	const actions, archivers = 24, 4
	var ids []string
	for range actions {
		ids = append(ids, s.in(gatehouse.StatusRejected).ID)
	}
	before := s.later()
	families := s.plan(before)
	var wait sync.WaitGroup
	var mu sync.Mutex
	times := map[string]int{}
	for n := range archivers {
		wait.Go(func() {
			for i := range families {
				f := families[(i+n*actions/archivers)%len(families)]
				var done []string
				err := s.store.Update(context.Background(), f.Tenant, func(tx gatehouse.Tx) (err error) {
					done, err = lockAndArchive(tx, []gatehouse.ActionFamily{f}, before)
					return err
				})
				if err != nil {
					s.Errorf("archiver %d: %v", n, err)
				}
				mu.Lock()
				for _, id := range done {
					times[id]++
				}
				mu.Unlock()
				for _, id := range f.IDs {
					err := s.store.Read(
						context.Background(),
						tenant,
						func(tx gatehouse.ReadTx) error { return second(tx.FindAction(id)) },
					)
					if err != nil {
						s.Errorf("reading %s meanwhile: %v", id, err)
					}
				}
			}
		})
	}
	wait.Wait()
	if len(times) == 0 {
		s.Error("the concurrent archivers archived nothing")
	}
	// What they left: archivers that lock parts of one family at the same time all skip it.
	for _, id := range s.archive(before) {
		times[id]++
	}
	for _, id := range ids {
		if times[id] != 1 {
			s.Errorf("%s was archived %d times, want once", id, times[id])
		}
		if s.find(id).ArchivedAt == nil {
			s.Errorf("%s is not in the archive", id)
		}
	}
}
