package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// clock checks the contract of Now.
func (s *suite) clock() {
	var last time.Time
	for range 50 {
		s.update(func(tx gatehouse.Tx) error {
			now := tx.Now()
			if now.Before(last) {
				s.Errorf("the clock ran back from %s to %s", last, now)
			}
			if now.Location() != time.UTC || now.Nanosecond()%1000 != 0 {
				s.Errorf("%s is not in UTC and whole microseconds", now)
			}
			time.Sleep(time.Microsecond) // makes a second reading differ
			if !tx.Now().Equal(now) {
				s.Errorf("two readings in one transaction: %s, %s", now, tx.Now())
			}
			last = now
			return nil
		})
	}
	s.view(func(tx gatehouse.ReadTx) error {
		if tx.Now().Before(last) {
			s.Errorf("a View reads %s after an Update read %s", tx.Now(), last)
		}
		return nil
	})
	// Across goroutines, too, a later transaction never reads less.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var mine time.Time
			for range 20 {
				err := s.store.Update(context.Background(), s.tenant, func(tx gatehouse.Tx) error {
					if tx.Now().Before(mine) {
						s.Errorf("the clock ran back from %s to %s", mine, tx.Now())
					}
					mine = tx.Now()
					return nil
				})
				if err != nil {
					s.Errorf("Update: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// clockJumps sets the wall clock forward and back.
func (s *suite) clockJumps() {
	store, ok := s.store.(Clocked)
	if !ok {
		s.Skip("this engine's clock cannot be set")
	}
	base := time.Date(2030, 1, 1, 0, 0, 0, 123456789, time.UTC)
	at := func(now time.Time) { store.SetClock(func() time.Time { return now }) }
	at(base)
	s.same("set", s.now(), base.Truncate(time.Microsecond))
	a := s.pending(func(a *gatehouse.Action) { a.Approval.ExpiresAt = base.Truncate(time.Microsecond).Add(time.Hour) })
	at(base.Add(-365 * 24 * time.Hour))
	s.same("back", s.now(), base.Truncate(time.Microsecond))
	s.same("shown", s.find(a.ID).Status, gatehouse.StatusPending)
	at(a.Approval.ExpiresAt.Add(-time.Microsecond))
	s.same("just before its expiry", s.find(a.ID).Status, gatehouse.StatusPending)
	at(a.Approval.ExpiresAt)
	s.same("at its expiry", s.find(a.ID).Status, gatehouse.StatusExpired)
	s.same("forward", s.now(), a.Approval.ExpiresAt)
	at(base)
	s.same("expired stays expired", s.find(a.ID).Status, gatehouse.StatusExpired)

	// The urgency buckets of all pages are relative to the time of the first page, also in a search.
	for i, query := range []string{"", "lamp"} {
		day := base.Add(time.Duration(i+1) * 24 * time.Hour)
		at(day)
		expiring := func(after time.Duration) *gatehouse.Action {
			return s.pending(func(a *gatehouse.Action) {
				a.Target.EntityRef = "lamp-" + after.String()
				a.Approval.ExpiresAt = a.ProposedAt.Add(after)
			})
		}
		soon, second, sooner, later := expiring(61*time.Minute), expiring(62*time.Minute), expiring(30*time.Minute),
			expiring(5*time.Hour)
		f := gatehouse.ActionFilter{Query: query, Sort: gatehouse.SortUrgency, Limit: 1}
		var got []string
		for f.Cursor != "" || len(got) == 0 {
			s.view(func(tx gatehouse.ReadTx) error {
				page, err := tx.ListActions(f)
				for _, a := range page.Items {
					got = append(got, a.ID)
				}
				f.Cursor = page.NextCursor
				return err
			})
			at(day.Add(10 * time.Minute))
		}
		s.same(fmt.Sprintf("walk %d while time passes", i), got, []string{sooner.ID, soon.ID, second.ID, later.ID})
	}
}
