package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *suite) session(p *gatehouse.Principal, change ...func(*gatehouse.Session)) *gatehouse.Session {
	now := s.now()
	n := &gatehouse.Session{
		ID: "ses_" + s.next(), Tenant: p.Tenant, PrincipalID: p.ID, Method: gatehouse.SignInPasskey, Credential: "pky_1",
		UserAgent: "Firefox", CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(time.Hour),
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func (s *suite) insertSession(
	p *gatehouse.Principal, hash byte, change ...func(*gatehouse.Session),
) *gatehouse.Session {
	s.Helper()
	n := s.session(p, change...)
	s.as(p.Tenant).update(func(tx gatehouse.Tx) error { return tx.InsertSession(n, [32]byte{hash}) })
	return n
}

func (s *suite) sessions() {
	ana := s.insertPrincipal()
	bot := s.insertPrincipal(func(p *gatehouse.Principal) {
		p.Kind, p.Sponsor, p.Roles = gatehouse.KindAgent, ana.ID, []gatehouse.Role{gatehouse.RoleProposer}
	})
	first, second := s.insertSession(ana, 1),
		s.insertSession(ana, 2, func(n *gatehouse.Session) { n.Credential = "pky_2" })
	s.view(func(tx gatehouse.ReadTx) error {
		got, p, err := tx.FindSession([32]byte{1})
		s.same("session", got, first)
		s.same("its principal", p, ana)
		if err != nil {
			return err
		}
		if _, _, err := tx.FindSession([32]byte{3}); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("FindSession of an unknown hash: error %v", err)
		}
		got, err = tx.FindSessionByID(second.ID)
		s.same("by id", got, second)
		return err
	})
	for what, refuse := range map[string]struct {
		want error
		p    *gatehouse.Principal
		hash byte
	}{
		"the same hash": {gatehouse.ErrConflict, ana, 1},
		"an agent's":    {gatehouse.ErrConflict, bot, 9},
		"nobody's":      {gatehouse.ErrNotFound, &gatehouse.Principal{Tenant: tenant, ID: "prn_none"}, 9},
	} {
		n := s.session(refuse.p)
		s.updateReturns(refuse.want, what, func(tx gatehouse.Tx) error { return tx.InsertSession(n, [32]byte{refuse.hash}) })
	}

	seen := first.LastSeenAt.Add(time.Minute)
	touch := func(id string, seen time.Time) {
		s.update(func(tx gatehouse.Tx) error { return tx.TouchSession(id, seen, seen.Add(time.Hour)) })
	}
	touch(first.ID, seen)
	touch(first.ID, seen.Add(-time.Second)) // a slower request
	first.LastSeenAt, first.ExpiresAt = seen, seen.Add(time.Hour)
	s.same("touched", s.sessionOf(first.ID), first)

	var at time.Time
	s.update(func(tx gatehouse.Tx) error { at = tx.Now(); return tx.RevokeSession(first.ID) })
	s.update(func(tx gatehouse.Tx) error { return tx.RevokeSession(first.ID) })
	touch(first.ID, seen.Add(time.Minute))
	first.RevokedAt = &at
	s.same("revoked once, and not touched", s.sessionOf(first.ID), first)
	s.updateReturns(
		gatehouse.ErrNotFound,
		"revoking nothing",
		func(tx gatehouse.Tx) error { return tx.RevokeSession("ses_none") },
	)
}

func (s *suite) sessionOf(id string) (n *gatehouse.Session) {
	s.Helper()
	s.view(func(tx gatehouse.ReadTx) (err error) { n, err = tx.FindSessionByID(id); return err })
	return n
}

func (s *suite) sessionLists() {
	ana, ben := s.insertPrincipal(), s.insertPrincipal()
	var all []*gatehouse.Session
	for i, p := range []*gatehouse.Principal{ana, ben, ana, ana} {
		all = append(all, s.insertSession(p, byte(i+1), func(n *gatehouse.Session) {
			if i == 2 {
				n.Credential = "pky_2"
			}
		}))
	}
	old := s.insertSession(ana, 9, func(n *gatehouse.Session) {
		n.CreatedAt = n.CreatedAt.Add(-2 * time.Hour)
		n.LastSeenAt, n.ExpiresAt = n.CreatedAt, n.CreatedAt.Add(time.Hour)
	})
	list := func(principal string, ended bool) (ids []string) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) error {
			items, err := walk(func(cursor string) (gatehouse.Page[*gatehouse.Session], error) {
				return tx.ListSessions(principal, ended, cursor, 2)
			})
			for _, n := range items {
				ids = append(ids, n.ID)
			}
			return err
		})
		return ids
	}
	s.same("everybody's live ones", list("", false), []string{all[3].ID, all[2].ID, all[1].ID, all[0].ID})
	s.same("one person's live ones", list(ana.ID, false), []string{all[3].ID, all[2].ID, all[0].ID})
	s.same("and the ended ones", list(ana.ID, true), []string{old.ID, all[3].ID, all[2].ID, all[0].ID})
	s.view(func(tx gatehouse.ReadTx) error {
		page, err := tx.ListSessions(ana.ID, false, "", 1)
		if err != nil {
			return err
		}
		if _, err := tx.ListSessions(ben.ID, false, page.NextCursor, 1); gatehouse.CodeOf(
			err,
		) != gatehouse.CodeInvalid {
			s.Errorf("another list's cursor: error %v", err)
		}
		return nil
	})
	revoke := func(credential string) (ids []string) {
		s.update(func(tx gatehouse.Tx) (err error) {
			ids, err = tx.RevokeSessions(ana.ID, credential)
			return err
		})
		return ids
	}
	s.same("those of one credential", revoke("pky_2"), []string{all[2].ID})
	s.same("no more of it", revoke("pky_2"), []string(nil))
	s.same("the rest, with the expired one", len(revoke("")), 3)
	s.same("no more", revoke(""), []string(nil))
	s.same("nobody else's", list("", false), []string{all[1].ID})
	if s.sessionOf(old.ID).RevokedAt == nil {
		s.Error("the expired session was not revoked")
	}
}

func (s *suite) setupLinks() {
	ana, ben := s.insertPrincipal(), s.insertPrincipal()
	now := s.now()
	link := func(p *gatehouse.Principal, hash byte) *gatehouse.SetupLink {
		l := &gatehouse.SetupLink{
			ID: "sul_" + s.next(), Tenant: tenant, PrincipalID: p.ID, Hash: [32]byte{hash}, CreatedAt: now,
			ExpiresAt: now.Add(time.Hour),
		}
		s.update(func(tx gatehouse.Tx) error { return tx.InsertSetupLink(l) })
		return l
	}
	find := func(hash byte) (l *gatehouse.SetupLink) {
		s.Helper()
		s.viewQueues(func(q gatehouse.ReadQueues) (err error) { l, err = q.FindSetupLink([32]byte{hash}); return err })
		return l
	}
	first, other := link(ana, 1), link(ben, 2)
	s.same("found", find(1), first)
	var at time.Time
	s.update(func(tx gatehouse.Tx) error { at = tx.Now(); return tx.UseSetupLink(first.ID) })
	first.UsedAt = &at
	s.same("used", find(1), first)
	s.updateReturns(gatehouse.ErrConflict, "using it again",
		func(tx gatehouse.Tx) error { return tx.UseSetupLink(first.ID) })
	second := link(ana, 3)
	third := link(ana, 4)
	if l := find(3); !l.ExpiresAt.Before(second.ExpiresAt) || l.ExpiresAt.After(s.now()) {
		s.Errorf("an earlier link expires at %v", l.ExpiresAt)
	}
	s.same("a used one stays", find(1), first)
	s.same("the newest one holds", find(4), third)
	s.same("another person's too", find(2), other)
	s.as("acme").update(func(tx gatehouse.Tx) error { return tx.EndSetupLinks(ana.ID) })
	s.same("after another tenant ended them", find(4), third)
	s.update(func(tx gatehouse.Tx) error { third.ExpiresAt = tx.Now(); return tx.EndSetupLinks(ana.ID) })
	s.same("ended", find(4), third)
	s.same("a used one, not ended again", find(1), first)
	s.same("another person's, not ended", find(2), other)
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		if _, err := q.FindSetupLink([32]byte{7}); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("FindSetupLink: error %v", err)
		}
		return nil
	})
}

func (s *suite) credentials() {
	ana, ben := s.insertPrincipal(), s.insertPrincipal()
	now := s.now()
	identity := func(p *gatehouse.Principal, subject string) *gatehouse.ExternalIdentity {
		return &gatehouse.ExternalIdentity{Tenant: tenant, Issuer: "https://id.test", Subject: subject, PrincipalID: p.ID,
			CreatedAt: now}
	}
	key := func(p *gatehouse.Principal, credential byte) *gatehouse.Passkey {
		return &gatehouse.Passkey{
			ID: "pky_" + s.next(), Tenant: tenant, PrincipalID: p.ID, Name: "laptop", CredentialID: []byte{credential, 0, 1},
			Credential: []byte(`{"a":1}`), SignCount: 7, CreatedAt: now,
		}
	}
	i, j := identity(ana, "1"), identity(ana, "2")
	k, l := key(ana, 1), key(ana, 2)
	s.update(func(tx gatehouse.Tx) error {
		return errors.Join(tx.InsertIdentity(i), tx.InsertIdentity(j), tx.InsertPasskey(k), tx.InsertPasskey(l))
	})
	s.view(func(tx gatehouse.ReadTx) error {
		got, err := tx.FindIdentity(i.Issuer, "1")
		s.same("identity", got, i)
		if err != nil {
			return err
		}
		for _, who := range [][2]string{{"https://id.test", "3"}, {"https://other.test", "1"}} {
			if _, err := tx.FindIdentity(who[0], who[1]); !errors.Is(err, gatehouse.ErrNotFound) {
				s.Errorf("FindIdentity %v: error %v", who, err)
			}
		}
		list, err := tx.ListIdentities(ana.ID)
		s.same("identities", list, []*gatehouse.ExternalIdentity{i, j})
		if err != nil {
			return err
		}
		found, err := tx.FindPasskeyByCredential(k.CredentialID)
		s.same("passkey", found, k)
		if err != nil {
			return err
		}
		keys, err := tx.ListPasskeys(ana.ID)
		s.same("passkeys", keys, []*gatehouse.Passkey{k, l})
		if err != nil {
			return err
		}
		keys, err = tx.ListPasskeys(ben.ID)
		s.same("nobody else's", len(keys), 0)
		return err
	})
	s.updateReturns(gatehouse.ErrConflict, "the same identity for another",
		func(tx gatehouse.Tx) error { return tx.InsertIdentity(identity(ben, "1")) })
	s.updateReturns(gatehouse.ErrConflict, "the same credential for another",
		func(tx gatehouse.Tx) error { return tx.InsertPasskey(key(ben, 1)) })
	s.updateReturns(gatehouse.ErrConflict, "a counter that has moved", func(tx gatehouse.Tx) error {
		return tx.UsePasskey(k.ID, k.Credential, 9, 6)
	})
	s.updateReturns(
		gatehouse.ErrNotFound,
		"unlinking nothing",
		func(tx gatehouse.Tx) error { return tx.DeleteIdentity(i.Issuer, "3") },
	)
	s.updateReturns(
		gatehouse.ErrNotFound,
		"removing nothing",
		func(tx gatehouse.Tx) error { return tx.DeletePasskey("pky_none") },
	)
	var at time.Time
	s.update(func(tx gatehouse.Tx) error {
		at = tx.Now()
		return errors.Join(
			tx.UsePasskey(k.ID, []byte(`{"a":2}`), 9, 7),
			tx.DeletePasskey(l.ID),
			tx.DeleteIdentity(i.Issuer, "2"),
		)
	})
	k.Credential, k.SignCount, k.LastUsedAt = []byte(`{"a":2}`), 9, &at
	s.view(func(tx gatehouse.ReadTx) error {
		keys, err := tx.ListPasskeys(ana.ID)
		s.same("used, and the other one gone", keys, []*gatehouse.Passkey{k})
		if err != nil {
			return err
		}
		list, err := tx.ListIdentities(ana.ID)
		s.same("unlinked", list, []*gatehouse.ExternalIdentity{i})
		return err
	})
}

func (s *suite) ceremonies() {
	now := s.now()
	ceremony := func(hash byte, expires time.Time) *gatehouse.Ceremony {
		return &gatehouse.Ceremony{Hash: [32]byte{hash}, Tenant: tenant, SessionID: "ses_1", Data: []byte(`{"n":1}`),
			ExpiresAt: expires}
	}
	insert := func(c *gatehouse.Ceremony) {
		s.Helper()
		s.updateQueues(func(q gatehouse.Queues) error { return q.InsertCeremony(c) })
	}
	insert(ceremony(1, now.Add(time.Hour)))
	insert(ceremony(2, now.Add(-time.Second)))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var taken []*gatehouse.Ceremony
	for range 4 {
		wg.Go(func() {
			var c *gatehouse.Ceremony
			err := s.store.UpdateQueues(
				s.Context(),
				func(q gatehouse.Queues) (err error) { c, err = q.TakeCeremony([32]byte{1}); return err },
			)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				taken = append(taken, c)
			case !errors.Is(err, gatehouse.ErrNotFound):
				s.Errorf("TakeCeremony: %v", err)
			}
		})
	}
	wg.Wait()
	s.same("taken once", taken, []*gatehouse.Ceremony{ceremony(1, now.Add(time.Hour))})
	s.updateReturns(gatehouse.ErrNotFound, "an expired one",
		func(tx gatehouse.Tx) error { _, err := tx.TakeCeremony([32]byte{2}); return err })
	s.updateReturns(gatehouse.ErrNotFound, "an unknown one",
		func(tx gatehouse.Tx) error { _, err := tx.TakeCeremony([32]byte{3}); return err })
	insert(ceremony(4, now.Add(time.Hour)))
	insert(ceremony(2, now.Add(time.Hour))) // the expired one has made room
}

func (s *suite) stepUps() {
	ana := s.insertPrincipal()
	a, b := s.pending(), s.pending()
	n, m := s.insertSession(ana, 1), s.insertSession(ana, 2)
	now := s.now()
	proof := func(session, action string, digest gatehouse.Digest, at time.Time) *gatehouse.StepUp {
		return &gatehouse.StepUp{
			ID: "stu_" + s.next(), Tenant: tenant, SessionID: session, ActionID: action, Digest: digest,
			Method: gatehouse.StepUpPasskey, At: at,
		}
	}
	old, u := proof(n.ID, a.ID, "sha256:1", now.Add(-time.Hour)), proof(n.ID, a.ID, "sha256:1", now)
	s.update(func(tx gatehouse.Tx) error { return errors.Join(tx.InsertStepUp(old), tx.InsertStepUp(u)) })
	find := func(session, action string, digest gatehouse.Digest, since time.Time) (got *gatehouse.StepUp) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) (err error) {
			got, err = tx.FindStepUp(session, action, digest, since)
			if errors.Is(err, gatehouse.ErrNotFound) {
				err = nil
			}
			return err
		})
		return got
	}
	since := now.Add(-time.Minute)
	s.same("the newest", find(n.ID, a.ID, "sha256:1", now.Add(-2*time.Hour)), u)
	for what, got := range map[string]*gatehouse.StepUp{
		"another session's": find(m.ID, a.ID, "sha256:1", since), "another action's": find(n.ID, b.ID, "sha256:1", since),
		"another digest's": find(n.ID, a.ID, "sha256:2", since), "one that is too old": find(n.ID, a.ID, "sha256:1", now),
	} {
		if got != nil {
			s.Errorf("%s was found: %+v", what, got)
		}
	}
	s.update(func(tx gatehouse.Tx) error { return tx.UseStepUp(u.ID) })
	s.updateReturns(gatehouse.ErrConflict, "using it again", func(tx gatehouse.Tx) error { return tx.UseStepUp(u.ID) })
	if got := find(n.ID, a.ID, "sha256:1", since); got != nil {
		s.Errorf("a used one was found: %+v", got)
	}
	s.updateReturns(gatehouse.ErrNotFound, "an unknown action",
		func(tx gatehouse.Tx) error { return tx.InsertStepUp(proof(n.ID, "act_none", "sha256:1", now)) })
	s.updateReturns(gatehouse.ErrNotFound, "an unknown session",
		func(tx gatehouse.Tx) error { return tx.InsertStepUp(proof("ses_none", a.ID, "sha256:1", now)) })
}

// sessionPurge deletes what ended before a time, in all tenants, a few rows at
// a time, and nothing younger.
func (s *suite) sessionPurge() {
	const other = "acme"
	ana := s.insertPrincipal()
	s.as(other).update(
		func(tx gatehouse.Tx) error { return tx.InsertTenant(&gatehouse.Tenant{ID: other, CreatedAt: tx.Now()}) })
	ben := s.insertPrincipal(func(p *gatehouse.Principal) { p.Tenant = other })
	a := s.pending()
	now := s.now()
	cut := now.Add(-24 * time.Hour)
	session := func(p *gatehouse.Principal, hash byte, end time.Time) *gatehouse.Session {
		return s.insertSession(p, hash, func(n *gatehouse.Session) {
			n.CreatedAt = end.Add(-time.Hour)
			n.LastSeenAt, n.ExpiresAt = n.CreatedAt, end
		})
	}
	long, bens := session(ana, 1, cut.Add(-time.Second)), session(ben, 2, cut.Add(-time.Hour))
	revoked := s.insertSession(ana, 3, func(n *gatehouse.Session) {
		at := cut.Add(-time.Minute)
		n.CreatedAt, n.LastSeenAt, n.ExpiresAt, n.RevokedAt = at.Add(-time.Hour), at.Add(-time.Hour), now, &at
	})
	young := session(ana, 4, cut)
	live := s.insertSession(ana, 5)
	ended := s.insertSession(ana, 6, func(n *gatehouse.Session) { n.CreatedAt = cut.Add(-time.Hour); n.RevokedAt = &now })
	proof := func(n *gatehouse.Session, at time.Time) *gatehouse.StepUp {
		u := &gatehouse.StepUp{
			ID: "stu_" + s.next(), Tenant: tenant, SessionID: n.ID, ActionID: a.ID, Digest: "sha256:1",
			Method: gatehouse.StepUpPasskey, At: at,
		}
		s.update(func(tx gatehouse.Tx) error { return tx.InsertStepUp(u) })
		return u
	}
	proof(long, cut.Add(-2*time.Hour))
	proof(revoked, cut.Add(-2*time.Hour))
	kept := proof(live, now)
	link := func(p *gatehouse.Principal, hash byte, end time.Time) {
		s.as(p.Tenant).update(func(tx gatehouse.Tx) error {
			return tx.InsertSetupLink(&gatehouse.SetupLink{
				ID: "sul_" + s.next(), Tenant: p.Tenant, PrincipalID: p.ID, Hash: [32]byte{hash}, CreatedAt: end.Add(-time.Hour),
				ExpiresAt: end,
			})
		})
	}
	link(ana, 1, cut.Add(-time.Hour))
	link(ben, 2, now.Add(time.Hour))

	// Two step-ups, three sessions, one link.
	for _, want := range []int{4, 2, 0} {
		s.updateQueues(func(q gatehouse.Queues) error {
			n, err := q.PurgeSessions(cut, 4)
			s.same("purged", n, want)
			return err
		})
	}
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		for hash, want := range map[byte]*gatehouse.Session{1: nil, 2: nil, 3: nil, 4: young, 5: live, 6: ended} {
			got, _, err := q.FindSession([32]byte{hash})
			if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
				return err
			}
			s.same("session", got, want)
		}
		for hash, gone := range map[byte]bool{1: true, 2: false} {
			if _, err := q.FindSetupLink([32]byte{hash}); errors.Is(err, gatehouse.ErrNotFound) != gone {
				s.Errorf("link %d: error %v", hash, err)
			}
		}
		if _, err := q.In(other).FindSessionByID(bens.ID); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("another tenant's session: error %v", err)
		}
		got, err := q.In(tenant).FindStepUp(live.ID, a.ID, "sha256:1", now.Add(-time.Minute))
		s.same("a step-up of today", got, kept)
		return err
	})
}

// sessionWalls reads and writes one tenant's sign-ins as another tenant.
func (s *suite) sessionWalls() {
	const other = "acme"
	s.as(other).update(
		func(tx gatehouse.Tx) error { return tx.InsertTenant(&gatehouse.Tenant{ID: other, CreatedAt: tx.Now()}) })
	ana, a := s.insertPrincipal(), s.pending()
	n := s.insertSession(ana, 1)
	now := s.now()
	link := &gatehouse.SetupLink{ID: "sul_1", Tenant: tenant, PrincipalID: ana.ID, Hash: [32]byte{1}, CreatedAt: now,
		ExpiresAt: now.Add(time.Hour)}
	identity := &gatehouse.ExternalIdentity{Tenant: tenant, Issuer: "https://id.test", Subject: "1", PrincipalID: ana.ID,
		CreatedAt: now}
	key := &gatehouse.Passkey{ID: "pky_1", Tenant: tenant, PrincipalID: ana.ID, CredentialID: []byte{1},
		Credential: []byte(`{}`), CreatedAt: now}
	proof := &gatehouse.StepUp{ID: "stu_1", Tenant: tenant, SessionID: n.ID, ActionID: a.ID, Digest: "sha256:1",
		Method: gatehouse.StepUpOIDC, At: now}
	s.update(func(tx gatehouse.Tx) error {
		return errors.Join(tx.InsertSetupLink(link), tx.InsertIdentity(identity), tx.InsertPasskey(key),
			tx.InsertStepUp(proof))
	})
	look := func(tenant string) map[string]bool {
		seen := make(map[string]bool)
		s.as(tenant).view(func(tx gatehouse.ReadTx) error {
			found := func(what string, n int, err error) {
				seen[what] = err == nil && n > 0
				if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
					s.Errorf("%s: %v", what, err)
				}
			}
			_, err := tx.FindSessionByID(n.ID)
			found("FindSessionByID", 1, err)
			page, err := tx.ListSessions("", true, "", 0)
			found("ListSessions", len(page.Items), err)
			page, err = tx.ListSessions(ana.ID, false, "", 0)
			found("ListSessions of a person", len(page.Items), err)
			_, err = tx.FindIdentity(identity.Issuer, "1")
			found("FindIdentity", 1, err)
			identities, err := tx.ListIdentities(ana.ID)
			found("ListIdentities", len(identities), err)
			_, err = tx.FindPasskey(key.ID)
			found("FindPasskey", 1, err)
			keys, err := tx.ListPasskeys(ana.ID)
			found("ListPasskeys", len(keys), err)
			_, err = tx.FindStepUp(n.ID, a.ID, "sha256:1", now.Add(-time.Minute))
			found("FindStepUp", 1, err)
			return nil
		})
		return seen
	}
	for what, there := range look(tenant) {
		if !there {
			s.Errorf("%s does not show the tenant its own row: the test proves nothing", what)
		}
	}
	for what, there := range look(other) {
		if there {
			s.Errorf("%s shows another tenant's row", what)
		}
	}
	for what, write := range map[string]func(tx gatehouse.Tx) error{
		"RevokeSession":  func(tx gatehouse.Tx) error { return tx.RevokeSession(n.ID) },
		"UseSetupLink":   func(tx gatehouse.Tx) error { return tx.UseSetupLink(link.ID) },
		"UsePasskey":     func(tx gatehouse.Tx) error { return tx.UsePasskey(key.ID, key.Credential, 1, 0) },
		"DeletePasskey":  func(tx gatehouse.Tx) error { return tx.DeletePasskey(key.ID) },
		"DeleteIdentity": func(tx gatehouse.Tx) error { return tx.DeleteIdentity(identity.Issuer, "1") },
		"UseStepUp":      func(tx gatehouse.Tx) error { return tx.UseStepUp(proof.ID) },
		"InsertSession": func(tx gatehouse.Tx) error {
			m := *n
			m.Tenant, m.ID = other, "ses_x"
			return tx.InsertSession(&m, [32]byte{9})
		},
		"InsertSetupLink": func(tx gatehouse.Tx) error {
			l := *link
			l.Tenant, l.ID, l.Hash = other, "sul_x", [32]byte{9}
			return tx.InsertSetupLink(&l)
		},
		"InsertStepUp": func(tx gatehouse.Tx) error {
			u := *proof
			u.Tenant, u.ID = other, "stu_x"
			return tx.InsertStepUp(&u)
		},
		"InsertIdentity": func(tx gatehouse.Tx) error {
			i := *identity
			i.Tenant = other
			return tx.InsertIdentity(&i)
		},
		"InsertPasskey": func(tx gatehouse.Tx) error {
			k := *key
			k.Tenant, k.CredentialID = other, []byte{9}
			return tx.InsertPasskey(&k)
		},
	} {
		err := s.store.Update(s.Context(), other, write)
		if !errors.Is(err, gatehouse.ErrNotFound) && !errors.Is(err, gatehouse.ErrConflict) {
			s.Errorf("%s on another tenant's row: error %v", what, err)
		}
	}
	s.as(other).update(func(tx gatehouse.Tx) error {
		ids, err := tx.RevokeSessions(ana.ID, "")
		s.same("revoked in another tenant", len(ids), 0)
		return errors.Join(err, tx.TouchSession(n.ID, now.Add(time.Hour), now.Add(2*time.Hour)))
	})
	s.same("after it all", s.sessionOf(n.ID), n)
}
