package storetest

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// ringKeys checks that a key is found by its number in any tenant, and that each tenant has at most one key in use per
// purpose.
func (s *suite) ringKeys() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	now := s.now()
	key := func(number uint32, more ...func(*gatehouse.RingKey)) *gatehouse.RingKey {
		k := &gatehouse.RingKey{
			ID: "rgk_" + s.next(), Number: number, Tenant: tenant, Purpose: gatehouse.RingLinks,
			Sealed: make([]byte, 72), Master: "m1", CreatedAt: now, CreatedBy: "init",
		}
		for _, f := range more {
			f(k)
		}
		return k
	}
	insert := func(k *gatehouse.RingKey) func(gatehouse.Tx) error {
		return func(tx gatehouse.Tx) error { return tx.InsertRingKey(k) }
	}
	find := func(number uint32) (k *gatehouse.RingKey) {
		s.Helper()
		s.viewQueues(func(q gatehouse.ReadQueues) (err error) { k, err = q.FindRingKey(number); return err })
		return k
	}
	first := key(1)
	first.Sealed[3] = 9
	s.update(insert(first))
	other := key(4294967295, func(k *gatehouse.RingKey) { k.Tenant = "acme" })
	s.as("acme").update(insert(other))
	s.same("as it was stored", find(1), first)
	s.same("another tenant's", find(other.Number), other)
	s.updateReturns(gatehouse.ErrNotFound, "an unknown number", func(tx gatehouse.Tx) error {
		_, err := tx.FindRingKey(2)
		return err
	})
	s.updateReturns(gatehouse.ErrConflict, "a second key in use", insert(key(2)))
	s.updateReturns(gatehouse.ErrConflict, "a known number",
		insert(key(1, func(k *gatehouse.RingKey) { k.Purpose = "secrets" })))
	secret := key(2, func(k *gatehouse.RingKey) { k.Purpose = "secrets" })
	s.update(insert(secret))

	ends := now.Add(time.Hour)
	var retired time.Time
	second := key(3, func(k *gatehouse.RingKey) { k.CreatedAt = now.Add(time.Second) })
	s.update(func(tx gatehouse.Tx) error {
		retired = tx.Now()
		if err := tx.RetireRingKey(first.ID, ends); err != nil {
			return err
		}
		return tx.InsertRingKey(second)
	})
	first.RetiredAt, first.EndsAt = &retired, &ends
	s.same("retired", find(1), first)
	s.updateReturns(gatehouse.ErrConflict, "retired twice", func(tx gatehouse.Tx) error {
		return tx.RetireRingKey(first.ID, ends)
	})
	s.as("acme").updateReturns(gatehouse.ErrConflict, "by another tenant", func(tx gatehouse.Tx) error {
		return tx.RevokeRingKey(first.ID)
	})
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		tx := q.In(tenant)
		list, err := tx.ListRingKeys(gatehouse.RingLinks)
		s.same("the list", list, []*gatehouse.RingKey{second, first})
		if err != nil {
			return err
		}
		list, err = q.OldRingKeys(gatehouse.RingLinks, now.Add(time.Minute), 10)
		if len(list) != 2 || list[0].ID != other.ID || list[1].ID != second.ID {
			s.Errorf("old keys in use: %d", len(list))
		}
		if err != nil {
			return err
		}
		list, err = q.OldRingKeys(gatehouse.RingLinks, now, 10)
		if len(list) != 0 {
			s.Errorf("%d keys created at the limit were listed as older", len(list))
		}
		return err
	})
	for _, k := range []*gatehouse.RingKey{first, second} {
		s.update(func(tx gatehouse.Tx) error {
			at := tx.Now()
			k.RevokedAt = &at
			if k.RetiredAt == nil {
				k.RetiredAt = &at
			}
			return tx.RevokeRingKey(k.ID)
		})
		s.same("revoked", find(k.Number), k)
	}
	s.updateReturns(gatehouse.ErrConflict, "revoked twice", func(tx gatehouse.Tx) error {
		return tx.RevokeRingKey(first.ID)
	})
	s.update(insert(key(5))) // no key is in use
}

// reviews: there is at most one review for each approval and recipient; tries and openings are limited.
func (s *suite) reviews() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	ana := s.insertPrincipal(func(p *gatehouse.Principal) { p.Name = "ana" })
	now := s.now()
	review := func(approval, recipient string) *gatehouse.Review {
		return &gatehouse.Review{
			ID: "rev_" + s.next(), Tenant: tenant, ActionID: "act_1", ApprovalID: approval, Recipient: recipient,
			CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		}
	}
	insert := func(v *gatehouse.Review) func(gatehouse.Tx) error {
		return func(tx gatehouse.Tx) error { return tx.InsertReview(v) }
	}
	v := review("apr_1", ana.ID)
	s.update(insert(v))
	s.update(insert(review("apr_1", "prn_2")))
	s.update(insert(review("apr_2", ana.ID)))
	s.updateReturns(gatehouse.ErrConflict, "the same review twice", insert(review("apr_1", ana.ID)))
	v.RecipientName = "ana"
	s.view(func(tx gatehouse.ReadTx) error {
		found, err := tx.FindReview(v.ID)
		s.same("by id", found, v)
		if err != nil {
			return err
		}
		found, err = tx.FindReviewOf("apr_1", ana.ID)
		s.same("by approval and recipient", found, v)
		return err
	})
	s.as("acme").updateReturns(gatehouse.ErrNotFound, "another tenant's", func(tx gatehouse.Tx) error {
		_, err := tx.FindReview(v.ID)
		return err
	})
	s.updateReturns(gatehouse.ErrNotFound, "of nobody", func(tx gatehouse.Tx) error {
		_, err := tx.FindReviewOf("apr_1", "prn_3")
		return err
	})
	try := func(tx gatehouse.Tx) error { return tx.CountReviewTry(v.ID) }
	for range gatehouse.MaxCodeTries {
		s.update(try)
	}
	s.updateReturns(gatehouse.ErrConflict, "a try too many", try)
	opened := func(tx gatehouse.Tx) error { return tx.MarkReviewOpened(v.ID) }
	s.as("acme").updateReturns(gatehouse.ErrConflict, "opened by another tenant", opened)
	s.update(opened)
	s.updateReturns(gatehouse.ErrConflict, "opened twice", opened)
	purge := func(before time.Time) (n int) {
		s.updateQueues(func(q gatehouse.Queues) (err error) { n, err = q.PurgeReviews(before, 2); return err })
		return n
	}
	s.same("purged too early", purge(v.ExpiresAt), 0)
	s.same("purged, in parts", purge(v.ExpiresAt.Add(time.Second)), 2)
	s.same("purged, the rest", purge(v.ExpiresAt.Add(time.Second)), 1)
}
