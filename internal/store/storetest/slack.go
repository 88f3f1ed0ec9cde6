package storetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// storedClick stores a click that is due now.
func (s *suite) storedClick(of string, more ...func(*gatehouse.SlackClick)) *gatehouse.SlackClick {
	s.Helper()
	now := s.now()
	id := "clk_" + s.next()
	c := &gatehouse.SlackClick{
		ID: id, Tenant: of, CreatedAt: now, Key: sha256.Sum256([]byte(id)), Channel: "ops", SlackChannel: "C1", TS: "1.2",
		Issuer: "slack:T1", User: "U1", ActionID: "act_1", Digest: "sha256:0011223344556677",
		Choice: gatehouse.Approve, Reason: "\u202e<b>", DueAt: &now,
	}
	for _, f := range more {
		f(c)
	}
	s.as(c.Tenant).update(func(tx gatehouse.Tx) error { return tx.InsertSlackClick(c) })
	return c
}

// slackClicks are stored once, claimed once, and finished by the holder of the
// claim.
func (s *suite) slackClicks() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	first := s.storedClick(tenant)
	find := func(id string) (c *gatehouse.SlackClick) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) (err error) { c, err = tx.FindSlackClick(id); return err })
		return c
	}
	s.same("the click", find(first.ID), first)
	twin := *first
	twin.ID = "clk_twin"
	s.updateReturns(gatehouse.ErrConflict, "the same interaction again", func(tx gatehouse.Tx) error {
		return tx.InsertSlackClick(&twin)
	})
	s.as("acme").updateReturns(gatehouse.ErrNotFound, "another tenant's click", func(tx gatehouse.Tx) error {
		_, err := tx.FindSlackClick(first.ID)
		return err
	})
	later := s.storedClick(tenant, func(c *gatehouse.SlackClick) {
		due := c.DueAt.Add(time.Hour)
		c.DueAt = &due
	})
	s.storedClick("acme")
	open := func(want int) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) error {
			got, err := tx.OpenSlackClicks("act_1")
			if err == nil && got != want {
				s.Errorf("%d open clicks, want %d", got, want)
			}
			return err
		})
	}
	open(2)
	claim := func() (list []*gatehouse.SlackClick) {
		s.Helper()
		s.updateQueues(func(q gatehouse.Queues) (err error) {
			list, err = q.ClaimSlackClicks("worker", time.Minute, 10)
			return err
		})
		return list
	}
	mine := claim()
	if len(mine) != 2 || claim() != nil {
		s.Fatalf("claimed %d of two tenants", len(mine))
	}
	held := mine[0]
	if held.Tenant != tenant {
		held = mine[1]
	}
	if held.ID != first.ID || held.Attempts != 1 || held.Generation != 1 || held.LeaseOwner != "worker" {
		s.Fatalf("claimed %+v", held)
	}
	now := s.now()
	held.Result, held.Said, held.DueAt, held.FinishedAt, held.LeaseOwner = "decided", "done", nil, &now, ""
	s.updateReturns(gatehouse.ErrConflict, "a stale claim", func(tx gatehouse.Tx) error {
		return tx.UpdateSlackClick(held, 0)
	})
	s.update(func(tx gatehouse.Tx) error { return tx.UpdateSlackClick(held, 1) })
	s.same("finished", find(first.ID), held)
	open(1)
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		_, err := q.NextSlackClickAt()
		return err
	})
	s.updateQueues(func(q gatehouse.Queues) error {
		n, err := q.PurgeSlackClicks(now.Add(time.Hour), 10)
		if err == nil && n != 1 {
			s.Errorf("purged %d, want 1", n)
		}
		return err
	})
	s.same("not finished", find(later.ID), later)
}

// slackClickRace checks that concurrent claims never get the same click, and
// that the same interaction is stored only once.
func (s *suite) slackClickRace() {
	const clicks = 40
	var made [clicks]*gatehouse.SlackClick
	for i := range made {
		made[i] = s.storedClick(tenant)
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	seen, stored := map[string]string{}, 0
	now := s.now()
	for i := range 4 {
		owner := fmt.Sprint("worker", i)
		work.Go(func() {
			twin := &gatehouse.SlackClick{
				ID: "clk_" + owner, Tenant: tenant, CreatedAt: now, Key: sha256.Sum256([]byte("twin")), Channel: "ops",
				Issuer: "slack:T1", User: "U1", Choice: gatehouse.Reject, DueAt: &now,
			}
			if s.store.Update(
				s.Context(),
				twin.Tenant,
				func(tx gatehouse.Tx) error { return tx.InsertSlackClick(twin) },
			) == nil {
				mu.Lock()
				stored++
				mu.Unlock()
			}
			for range clicks {
				var list []*gatehouse.SlackClick
				err := s.store.UpdateQueues(s.Context(), func(q gatehouse.Queues) (err error) {
					list, err = q.ClaimSlackClicks(owner, time.Minute, 3)
					return err
				})
				if err != nil {
					s.Errorf("claim: %v", err)
					return
				}
				mu.Lock()
				for _, c := range list {
					if seen[c.ID] != "" {
						s.Errorf("%s was claimed by %s and %s", c.ID, seen[c.ID], owner)
					}
					seen[c.ID] = owner
				}
				mu.Unlock()
			}
		})
	}
	work.Wait()
	if stored != 1 || len(seen) != clicks+1 {
		s.Errorf("%d of the same interaction stored, %d clicks claimed, want %d", stored, len(seen), clicks+1)
	}
}

// cards checks that a card has one writer at a time, and that it is due again if it is touched while it
// is being written.
func (s *suite) cards() {
	put := func(ref string) {
		s.Helper()
		s.update(func(tx gatehouse.Tx) error {
			return tx.PutCard(&gatehouse.PostedCard{
				Tenant: tenant, Channel: "ops", ActionID: "act_1", Ref: ref, Shown: "a",
			})
		})
	}
	put("C1/1.2")
	claim := func(owner string) (c *gatehouse.PostedCard, err error) {
		err = s.store.Update(s.Context(), tenant, func(tx gatehouse.Tx) (err error) {
			c, err = tx.ClaimCard("ops", "act_1", owner, time.Minute)
			return err
		})
		return c, err
	}
	card := func() (c *gatehouse.PostedCard) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) (err error) { c, err = tx.FindCard("ops", "act_1"); return err })
		return c
	}
	if c := card(); c.Ref != "C1/1.2" || c.Shown != "a" || c.DueAt == nil {
		s.Fatalf("the card: %+v", c)
	}
	held, err := claim("one")
	if err != nil {
		s.Fatal(err)
	}
	if _, err := claim("two"); !errors.Is(err, gatehouse.ErrConflict) {
		s.Errorf("a second writer: %v", err)
	}
	s.updateQueues(func(q gatehouse.Queues) error {
		list, err := q.ClaimCards("ops", "two", time.Minute, 10)
		if err == nil && len(list) != 0 {
			s.Errorf("claimed a card that another worker holds: %+v", list)
		}
		return err
	})
	s.update(func(tx gatehouse.Tx) error { return tx.TouchCards("act_1") })
	if c := card(); c.LeaseOwner != "one" || !c.DueAt.After(s.now()) {
		s.Errorf("touching ended the lease: %+v", c)
	}
	done := *held
	done.DueAt, done.Shown = nil, "b"
	s.updateReturns(gatehouse.ErrConflict, "a stale claim", func(tx gatehouse.Tx) error {
		return tx.UpdateCard(&done, held.Generation-1)
	})
	s.update(func(tx gatehouse.Tx) error { return tx.UpdateCard(&done, held.Generation) })
	if c := card(); c.DueAt == nil || c.LeaseOwner != "" || c.Shown != "b" {
		s.Errorf("touched while it was written: %+v", c)
	}
	var again []*gatehouse.PostedCard
	s.updateQueues(func(q gatehouse.Queues) (err error) {
		again, err = q.ClaimCards("ops", "two", time.Minute, 10)
		return err
	})
	if len(again) != 1 || again[0].Wanted != held.Wanted+1 || again[0].Generation != held.Generation+1 {
		s.Fatalf("claimed again: %+v", again)
	}
	again[0].DueAt = nil
	s.update(func(tx gatehouse.Tx) error { return tx.UpdateCard(again[0], again[0].Generation) })
	if c := card(); c.DueAt != nil {
		s.Errorf("written, and due: %+v", c)
	}
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		tx := q.In("acme")
		next, err := q.NextCardAt("ops")
		if err == nil && !next.IsZero() {
			s.Errorf("next at %s", next)
		}
		if _, err := tx.FindCard("ops", "act_1"); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("another tenant's card: %v", err)
		}
		return err
	})
	put("C1/3.4")
	if c := card(); c.Ref != "C1/3.4" || c.DueAt == nil {
		s.Errorf("another message: %+v", c)
	}
	s.update(func(tx gatehouse.Tx) error { return tx.TouchCards("act_2") }) // has no cards
	s.updateQueues(func(q gatehouse.Queues) error {
		n, err := q.PurgeCards(q.Now().Add(time.Hour), 10)
		if err == nil && n != 0 {
			s.Errorf("purged what is due")
		}
		return err
	})
	last, err := claim("one")
	if err != nil {
		s.Fatal(err)
	}
	last.DueAt = nil
	s.update(func(tx gatehouse.Tx) error { return tx.UpdateCard(last, last.Generation) })
	s.updateQueues(func(q gatehouse.Queues) error {
		n, err := q.PurgeCards(q.Now().Add(time.Hour), 10)
		if err == nil && n != 1 {
			s.Errorf("purged %d, want 1", n)
		}
		return err
	})
}
