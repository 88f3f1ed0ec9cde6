package storetest

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// secrets: a secret has one value at a time. Each new value gets the next version number, and is sealed under a key of
// the ring.
func (s *suite) secrets() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	now := s.now()
	key := &gatehouse.RingKey{
		ID: "rgk_" + s.next(), Number: 11, Tenant: tenant, Purpose: gatehouse.RingSecrets, Sealed: make([]byte, 72),
		Master:    "m1",
		CreatedAt: now, CreatedBy: "prn_1",
	}
	s.update(func(tx gatehouse.Tx) error { return tx.InsertRingKey(key) })
	secret := func(version int, fill byte) *gatehouse.Secret {
		sealed := make([]byte, 60)
		sealed[0] = fill
		return &gatehouse.Secret{
			Tenant: tenant, Name: "shop-token", Version: version, SetAt: &now, SetBy: "prn_1", SetByName: "prn_1",
			Sealed: sealed, RingKey: key.ID,
		}
	}
	put := func(v *gatehouse.Secret) func(gatehouse.Tx) error {
		return func(tx gatehouse.Tx) error { return tx.PutSecret(v) }
	}
	stored := func(what string, want *gatehouse.Secret) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) error {
			found, err := tx.FindSecret("shop-token")
			s.same(what, found, want)
			if err != nil {
				return err
			}
			list, err := tx.ListSecrets()
			s.same(what+", in the list", list, []*gatehouse.Secret{want})
			return err
		})
	}

	first := secret(1, 1)
	s.update(put(first))
	stored("as it was set", first)
	s.updateReturns(gatehouse.ErrConflict, "set twice", put(first))
	s.updateReturns(gatehouse.ErrConflict, "a version left out", put(secret(3, 3)))
	keyless := secret(2, 2)
	keyless.RingKey = "rgk_none"
	if err := s.store.Update(context.Background(), s.tenant, put(keyless)); err == nil {
		s.Fatal("a secret names a missing key of the ring")
	}
	used := now.Add(time.Minute)
	s.update(func(tx gatehouse.Tx) error { return tx.UseSecret("shop-token", used) })
	s.update(func(tx gatehouse.Tx) error { return tx.UseSecret("shop-token", now) })
	first.LastUsedAt = &used
	stored("used", first)

	second := secret(2, 2)
	s.update(put(second))
	second.LastUsedAt = &used
	stored("rotated", second)
	s.updateReturns(gatehouse.ErrConflict, "an old version", put(secret(2, 9)))

	var revoked time.Time
	revoke := func(tx gatehouse.Tx) error { revoked = tx.Now(); return tx.RevokeSecret("shop-token", "prn_2") }
	s.as("acme").updateReturns(gatehouse.ErrConflict, "revoked by another tenant", revoke)
	s.update(revoke)
	second.RevokedAt, second.RevokedBy, second.Sealed, second.RingKey = &revoked, "prn_2", nil, ""
	stored("revoked", second)
	s.updateReturns(gatehouse.ErrConflict, "revoked twice", revoke)
	third := secret(3, 3)
	s.update(put(third))
	third.LastUsedAt = &used
	stored("set again", third)

	s.as("acme").view(func(tx gatehouse.ReadTx) error {
		list, err := tx.ListSecrets()
		s.same("another tenant's list", len(list), 0)
		return err
	})
	s.as("acme").updateReturns(gatehouse.ErrNotFound, "another tenant's", func(tx gatehouse.Tx) error {
		_, err := tx.FindSecret("shop-token")
		return err
	})
	s.resealed(key)
}

// resealed seals a key of the ring under another master key.
func (s *suite) resealed(key *gatehouse.RingKey) {
	s.Helper()
	under := func(master string) (list []*gatehouse.RingKey) {
		s.Helper()
		s.viewQueues(func(q gatehouse.ReadQueues) (err error) {
			list, err = q.RingKeysUnder(gatehouse.RingSecrets, master, 10)
			return err
		})
		return list
	}
	s.same("under the old master key", under("m1"), []*gatehouse.RingKey{key})
	sealed := make([]byte, 80)
	reseal := func(tx gatehouse.Tx) error { return tx.ResealRingKey(key.ID, "m1", sealed, "m2") }
	s.as("acme").updateReturns(gatehouse.ErrConflict, "resealed by another tenant", reseal)
	s.update(reseal)
	key.Sealed, key.Master = sealed, "m2"
	s.same("under the old one, afterwards", len(under("m1")), 0)
	s.same("under the new one", under("m2"), []*gatehouse.RingKey{key})
	s.updateReturns(gatehouse.ErrConflict, "resealed twice", reseal)
	var at time.Time
	s.update(func(tx gatehouse.Tx) error { at = tx.Now(); return tx.RetireRingKey(key.ID, at) })
	key.RetiredAt, key.EndsAt = &at, &at
	s.same("a retired key", under("m2"), []*gatehouse.RingKey{key})
}
