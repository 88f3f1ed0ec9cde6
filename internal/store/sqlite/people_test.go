package sqlite

import (
	"context"
	"errors"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// insertAna stores a person with a key and an edit token.
func insertAna(t *testing.T, s *Store) (*gatehouse.Principal, [32]byte) {
	t.Helper()
	p := &gatehouse.Principal{
		ID: "prn_ana", Tenant: "default", Name: "ana", Kind: gatehouse.KindPerson, Person: "prn_ana",
		Roles: []gatehouse.Role{gatehouse.RoleApprover},
	}
	hash := [32]byte{1, 2, 3}
	update(t, s, func(tx gatehouse.Tx) error {
		p.CreatedAt = tx.Now()
		return errors.Join(
			tx.InsertPrincipal(p),
			tx.InsertKey(&gatehouse.Key{ID: "key_1", Tenant: "default", PrincipalID: p.ID, Hash: hash, CreatedAt: tx.Now()}),
			tx.PutEditToken(p.ID, [32]byte{4}),
		)
	})
	return p, hash
}

func update(t *testing.T, s *Store, fn func(gatehouse.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), gatehouse.DefaultTenant, fn); err != nil {
		t.Fatal(err)
	}
}

func updateQueues(t *testing.T, s *Store, fn func(gatehouse.Queues) error) {
	t.Helper()
	if err := s.UpdateQueues(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func findKey(t *testing.T, s *Store, hash [32]byte) (p *gatehouse.Principal) {
	t.Helper()
	err := s.ViewQueues(
		context.Background(),
		func(q gatehouse.ReadQueues) (err error) { _, p, err = q.FindKey(hash); return err },
	)
	if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
		t.Fatal(err)
	}
	return p
}

func findToken(t *testing.T, s *Store, id string) (hash [32]byte) {
	t.Helper()
	err := s.View(
		context.Background(),
		"default",
		func(tx gatehouse.ReadTx) (err error) { hash, err = tx.FindEditToken(id); return err },
	)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// TestCredentialsAreForgotten checks that a cached key or token is dropped
// before an Update that changes it returns.
func TestCredentialsAreForgotten(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	p, hash := insertAna(t, s)
	for range 2 { // the second read comes from the cache
		if got := findKey(t, s, hash); got == nil || got.Disabled {
			t.Fatalf("the key finds %+v", got)
		}
		if findToken(t, s, p.ID) != [32]byte{4} {
			t.Fatal("another token")
		}
	}
	if k, _, _ := s.credentials.key(hash); k == nil {
		t.Fatal("nothing is kept: the test proves nothing")
	}
	findKey(t, s, hash).Roles[0] = gatehouse.RoleAdmin
	if findKey(t, s, hash).Roles[0] != gatehouse.RoleApprover {
		t.Error("a caller changed the cached principal")
	}
	update(t, s, func(tx gatehouse.Tx) error { return tx.PutEditToken(p.ID, [32]byte{5}) })
	if findToken(t, s, p.ID) != [32]byte{5} {
		t.Error("the old token is still known")
	}
	off := *p
	off.Disabled = true
	update(t, s, func(tx gatehouse.Tx) error { return tx.UpdatePrincipal(&off) })
	if !findKey(t, s, hash).Disabled {
		t.Error("the principal is not disabled yet")
	}
	update(t, s, func(tx gatehouse.Tx) error { return tx.RevokeKey("key_1") })
	if findKey(t, s, hash) != nil {
		t.Error("the revoked key is still known")
	}
}

// TestCredentialsReadBeforeAChange: a read that began before a change and ends after it caches nothing.
func TestCredentialsReadBeforeAChange(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	p, hash := insertAna(t, s)
	_, _, epoch := s.credentials.key(hash)
	_, _, tokens := s.credentials.token(principalID{"default", p.ID})
	update(t, s, func(tx gatehouse.Tx) error { return tx.RevokeKey("key_1") })
	s.credentials.keepKey(epoch, &gatehouse.Key{Hash: hash}, p)
	if findKey(t, s, hash) != nil {
		t.Error("a key that was read before its end was kept")
	}
	update(t, s, func(tx gatehouse.Tx) error { return tx.PutEditToken(p.ID, [32]byte{5}) })
	s.credentials.keepToken(tokens, principalID{"default", p.ID}, [32]byte{4})
	if findToken(t, s, p.ID) != [32]byte{5} {
		t.Error("a token that was read before its end was kept")
	}
}

// TestNothingIsKeptBesideAnother checks that nothing is cached from a file that
// another process writes.
func TestNothingIsKeptBesideAnother(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	_, hash := insertAna(t, s)
	r, err := Inspect(context.Background(), Config{Path: s.config.Path})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	known := func() bool {
		err := r.ViewQueues(
			context.Background(),
			func(q gatehouse.ReadQueues) error { _, _, err := q.FindKey(hash); return err },
		)
		if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	if !known() {
		t.Fatal("the key is not known")
	}
	update(t, s, func(tx gatehouse.Tx) error { return tx.RevokeKey("key_1") })
	if known() {
		t.Error("the revoked key is still known")
	}
}

// TestWriterSeesPeopleAsTheyAre checks the writer's cache of principals.
func TestWriterSeesPeopleAsTheyAre(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	p, _ := insertAna(t, s)
	disabled := func(tx gatehouse.Tx) bool {
		byID, err1 := tx.LockPrincipals([]string{p.ID, "prn_none", "ana"})
		byName, err2 := tx.FindPrincipal("ANA")
		if err := errors.Join(err1, err2); err != nil || len(byID) != 1 {
			t.Errorf("%d found, %v", len(byID), err)
			return false
		}
		if byID[0].Disabled != byName.Disabled {
			t.Errorf("disabled is %v by id, %v by name", byID[0].Disabled, byName.Disabled)
		}
		was := byID[0].Disabled
		if first, err := tx.OpenProposal(gatehouse.ProposalQuery{Asked: new(gatehouse.Audience)}); err != nil ||
			len(first.Answerers) == 0 != was {
			t.Errorf("disabled is %v, and %d may decide, %v", was, len(first.Answerers), err)
		}
		byID[0].Disabled, byName.Disabled = !was, !was // changes a copy
		return was
	}
	off := *p
	off.Disabled = true
	check := func(want bool) {
		t.Helper()
		update(t, s, func(tx gatehouse.Tx) error {
			if got := disabled(tx); got != want {
				t.Errorf("disabled: %v, want %v", got, want)
			}
			return nil
		})
	}
	check(false)
	check(false)
	err := s.Update(context.Background(), off.Tenant, func(tx gatehouse.Tx) error {
		if err := tx.UpdatePrincipal(&off); err != nil {
			return err
		}
		if !disabled(tx) {
			t.Error("the transaction does not see its own write")
		}
		return errUndone
	})
	if !errors.Is(err, errUndone) {
		t.Fatal(err)
	}
	check(false)
	update(t, s, func(tx gatehouse.Tx) error { return tx.UpdatePrincipal(&off) })
	check(true)
}

// TestWriterSeesThePolicyInForce checks the writer's cache of policy versions.
func TestWriterSeesThePolicyInForce(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	check := func(want int) {
		t.Helper()
		update(t, s, func(tx gatehouse.Tx) error {
			for range 2 {
				if got, err := tx.ActivePolicyVersion(); err != nil || got != want {
					t.Errorf("version %d is in force, want %d: %v", got, want, err)
				}
			}
			return nil
		})
	}
	check(0)
	insert := func(tx gatehouse.Tx) error {
		_, err := tx.InsertPolicy(
			&gatehouse.PolicyVersion{Tenant: "default", Source: "x", SHA256: "x", AppliedBy: "ana", AppliedAt: tx.Now()})
		return err
	}
	update(t, s, insert)
	check(1)
	err := s.Update(context.Background(), "default", func(tx gatehouse.Tx) error {
		if err := insert(tx); err != nil {
			return err
		}
		if got, err := tx.ActivePolicyVersion(); err != nil || got != 2 {
			t.Errorf("the transaction sees version %d, want its own: %v", got, err)
		}
		return errUndone
	})
	if !errors.Is(err, errUndone) {
		t.Fatal(err)
	}
	check(1)
	update(t, s, insert)
	check(2)
	update(t, s, func(tx gatehouse.Tx) error { return tx.ActivatePolicy(1) })
	check(1)
}

var errUndone = errors.New("undone")
