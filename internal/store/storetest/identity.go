package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *suite) principal(change ...func(*gatehouse.Principal)) *gatehouse.Principal {
	n := s.next()
	p := &gatehouse.Principal{
		ID: "prn_" + n, Tenant: tenant, Name: "ana" + n, Kind: gatehouse.KindPerson,
		Roles: []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleAuditor}, Person: "prn_" + n, CreatedAt: s.now(),
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func (s *suite) insertPrincipal(change ...func(*gatehouse.Principal)) *gatehouse.Principal {
	s.Helper()
	p := s.principal(change...)
	s.as(p.Tenant).update(func(tx gatehouse.Tx) error { return tx.InsertPrincipal(p) })
	return p
}

func (s *suite) principals() {
	ana := s.insertPrincipal()
	bot := s.insertPrincipal(func(p *gatehouse.Principal) {
		p.Kind, p.Sponsor, p.Roles = gatehouse.KindAgent, ana.ID, []gatehouse.Role{gatehouse.RoleProposer}
	})
	s.view(func(tx gatehouse.ReadTx) error {
		for _, key := range []string{bot.ID, bot.Name, strings.ToUpper(bot.Name)} {
			got, err := tx.FindPrincipal(key)
			if err != nil {
				return err
			}
			s.same("found by "+key, got, bot)
		}
		if _, err := tx.FindPrincipal("none"); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("FindPrincipal: error %v", err)
		}
		return nil
	})
	s.updateReturns(gatehouse.ErrConflict, "the same name", func(tx gatehouse.Tx) error {
		return tx.InsertPrincipal(
			&gatehouse.Principal{ID: "prn_z", Tenant: tenant, Name: ana.Name, Kind: gatehouse.KindPerson, Person: "prn_z",
				CreatedAt: tx.Now()})
	})
	s.updateReturns(gatehouse.ErrConflict, "the same name in another case", func(tx gatehouse.Tx) error {
		return tx.InsertPrincipal(
			&gatehouse.Principal{ID: "prn_z", Tenant: tenant, Name: strings.ToUpper(ana.Name), Kind: gatehouse.KindPerson,
				Person: "prn_z", CreatedAt: tx.Now()})
	})
	s.updateReturns(gatehouse.ErrConflict, "the same id", func(tx gatehouse.Tx) error {
		return tx.InsertPrincipal(
			&gatehouse.Principal{ID: ana.ID, Tenant: tenant, Name: "z", Kind: gatehouse.KindPerson, Person: "prn_z",
				CreatedAt: tx.Now()})
	})
	s.as("nobody").updateReturns(gatehouse.ErrNotFound, "an unknown tenant", func(tx gatehouse.Tx) error {
		return tx.InsertPrincipal(
			&gatehouse.Principal{ID: "prn_y", Tenant: "nobody", Name: "y", Kind: gatehouse.KindPerson, Person: "prn_y",
				CreatedAt: tx.Now()})
	})
	ana.Roles, ana.Disabled, ana.Person = []gatehouse.Role{gatehouse.RoleViewer}, true, "somebody"
	ana.Groups = []gatehouse.Membership{{Group: "finance", From: gatehouse.ByHand},
		{Group: "finance", From: `https://id.example/"x"`}}
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.UpdatePrincipal(ana); err != nil {
			return err
		}
		got, err := tx.LockPrincipals([]string{bot.ID, "prn_none", ana.ID})
		slices.SortFunc(got, func(a, b *gatehouse.Principal) int { return strings.Compare(a.ID, b.ID) })
		s.same("for share", got, []*gatehouse.Principal{ana, bot})
		return err
	})
	s.updateReturns(gatehouse.ErrNotFound, "an unknown principal", func(tx gatehouse.Tx) error {
		return tx.UpdatePrincipal(&gatehouse.Principal{ID: "prn_none", Tenant: tenant, Name: "n", Person: "p"})
	})
	third := s.insertPrincipal()
	s.view(func(tx gatehouse.ReadTx) error {
		list, err := walk(func(cursor string) (gatehouse.Page[*gatehouse.Principal], error) {
			return tx.ListPrincipals(cursor, 1)
		})
		s.same("listed", list, []*gatehouse.Principal{ana, bot, third})
		return err
	})
}

func (s *suite) groups() {
	ana := s.insertPrincipal(func(p *gatehouse.Principal) {
		p.Groups = []gatehouse.Membership{{Group: "finance", From: gatehouse.ByHand}}
	})
	ben := s.insertPrincipal(func(p *gatehouse.Principal) { p.Disabled = true })
	s.insertPrincipal(func(p *gatehouse.Principal) { p.Kind = gatehouse.KindService })
	at := s.now()
	finance, board := &gatehouse.Group{Tenant: tenant, Name: "finance", CreatedAt: at},
		&gatehouse.Group{Tenant: tenant, Name: "board", CreatedAt: at}
	s.update(func(tx gatehouse.Tx) error { return errors.Join(tx.InsertGroup(finance), tx.InsertGroup(board)) })
	s.updateReturns(gatehouse.ErrConflict, "the same name", func(tx gatehouse.Tx) error { return tx.InsertGroup(finance) })
	s.as("nobody").updateReturns(gatehouse.ErrNotFound, "an unknown tenant", func(tx gatehouse.Tx) error {
		return tx.InsertGroup(&gatehouse.Group{Tenant: "nobody", Name: "finance", CreatedAt: at})
	})
	s.updateReturns(gatehouse.ErrNotFound, "deleting nothing",
		func(tx gatehouse.Tx) error { return tx.DeleteGroup("none") })
	s.view(func(tx gatehouse.ReadTx) error {
		list, err := tx.ListGroups()
		s.same("listed", list, []*gatehouse.Group{board, finance})
		if err != nil {
			return err
		}
		found, err := tx.FindGroup("finance")
		s.same("found", found, finance)
		if err != nil {
			return err
		}
		people, err := tx.ListPeople()
		people = slices.DeleteFunc(people, func(p *gatehouse.Principal) bool {
			return p.ID != ana.ID && p.ID != ben.ID && p.Kind == gatehouse.KindPerson
		})
		s.same("people", people, []*gatehouse.Principal{ana, ben})
		if err != nil {
			return err
		}
		_, err = tx.FindGroup("Finance")
		if !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("a name in another case: error %v", err)
		}
		return nil
	})
	s.as("nobody").view(func(tx gatehouse.ReadTx) error {
		others, err := tx.ListGroups()
		s.same("groups of another tenant", len(others), 0)
		return err
	})
	s.update(func(tx gatehouse.Tx) error { return tx.DeleteGroup("board") })
	s.view(func(tx gatehouse.ReadTx) error {
		list, err := tx.ListGroups()
		s.same("after deleting one", list, []*gatehouse.Group{finance})
		return err
	})
}

func (s *suite) firstAnswerers(asked gatehouse.Audience) (list []*gatehouse.Principal) {
	s.update(func(tx gatehouse.Tx) error {
		o, err := tx.OpenProposal(gatehouse.ProposalQuery{Asked: &asked})
		if err == nil {
			list = o.Answerers
		}
		return err
	})
	return list
}

// answerers: all answerers that OpenProposal returns may decide. They include everybody whom the question asks; if
// there are more than MaxFirstAnswerers, OpenProposal returns the first by id.
func (s *suite) answerers() {
	some := func(change func(p *gatehouse.Principal)) *gatehouse.Principal { return s.insertPrincipal(change) }
	in := func(group string) func(*gatehouse.Principal) {
		return func(p *gatehouse.Principal) {
			p.Groups = []gatehouse.Membership{{Group: group, From: gatehouse.ByHand}}
		}
	}
	roles := func(roles ...gatehouse.Role) func(*gatehouse.Principal) {
		return func(p *gatehouse.Principal) { p.Roles = roles }
	}
	some(func(p *gatehouse.Principal) { p.Disabled = true })
	some(func(p *gatehouse.Principal) { p.Kind = gatehouse.KindService })
	named, finance := some(roles(gatehouse.RoleApprover)), some(in("finance"))
	some(in("financ"))
	some(roles(gatehouse.RoleApprover, gatehouse.RoleOperator))
	some(roles(gatehouse.RoleOperator))
	some(roles(gatehouse.RoleAdmin))
	for name, c := range map[string]struct {
		asked gatehouse.Audience
		want  int
	}{
		"everybody":       {gatehouse.Audience{}, 5},
		"approvers":       {gatehouse.Audience{Roles: []gatehouse.Role{gatehouse.RoleApprover}}, 5},
		"operators":       {gatehouse.Audience{Roles: []gatehouse.Role{gatehouse.RoleOperator}}, 2},
		"administrators":  {gatehouse.Audience{Roles: []gatehouse.Role{gatehouse.RoleAdmin}}, 1},
		"a group":         {gatehouse.Audience{Groups: []string{"legal", "finance"}}, 1},
		"people":          {gatehouse.Audience{People: []string{named.Name, finance.ID, "nobody"}}, 2},
		"a group, people": {gatehouse.Audience{People: []string{named.Name}, Groups: []string{"finance"}}, 2},
		"nobody": {gatehouse.Audience{Groups: []string{`"`, `fin"ance`}, People: []string{"\u0000", `a","b`}},
			0},
		"another case": {gatehouse.Audience{People: []string{strings.ToUpper(named.Name)}}, 0},
		"a role, a group": {gatehouse.Audience{Roles: []gatehouse.Role{gatehouse.RoleAuditor},
			Groups: []string{"finance"}}, 3},
	} {
		var people []*gatehouse.Principal
		s.view(func(tx gatehouse.ReadTx) (err error) { people, err = tx.ListPeople(); return err })
		first := s.firstAnswerers(c.asked)
		ap := gatehouse.Approval{Roles: c.asked.Roles, People: c.asked.People, Groups: c.asked.Groups}
		if got := ap.CountAnswerers(first); got != c.want || ap.CountAnswerers(people) != c.want {
			s.Errorf("%s: %d answerers, %d of all people, want %d", name, got, ap.CountAnswerers(people), c.want)
		}
		for _, p := range first {
			if !p.MayDecide() {
				s.Errorf("%s: %s may not decide", name, p.ID)
			}
		}
	}
	var all []string
	for range gatehouse.MaxFirstAnswerers + 1 {
		all = append(all, some(in("many")).ID)
	}
	ids := []string{}
	for _, p := range s.firstAnswerers(gatehouse.Audience{Groups: []string{"many"}}) {
		ids = append(ids, p.ID)
	}
	s.same("the first of many", ids, all[:gatehouse.MaxFirstAnswerers])
}

func (s *suite) keys() {
	ana := s.insertPrincipal()
	key := func(b byte) *gatehouse.Key {
		return &gatehouse.Key{ID: "key_" + s.next(), Tenant: tenant, PrincipalID: ana.ID, Hash: [32]byte{b},
			CreatedAt: ana.CreatedAt}
	}
	first, second := key(1), key(2)
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.InsertKey(first); err != nil {
			return err
		}
		return tx.InsertKey(second)
	})
	found := func(k *gatehouse.Key) bool {
		var ok bool
		s.viewQueues(func(q gatehouse.ReadQueues) error {
			got, p, err := q.FindKey(k.Hash)
			if errors.Is(err, gatehouse.ErrNotFound) {
				return nil
			}
			ok = true
			s.same("key", got, k)
			s.same("its principal", p, ana)
			return err
		})
		return ok
	}
	if !found(first) || !found(second) || found(key(3)) {
		s.Fatal("FindKey found the wrong keys")
	}
	s.updateReturns(gatehouse.ErrConflict, "the same hash", func(tx gatehouse.Tx) error { return tx.InsertKey(key(1)) })
	s.updateReturns(gatehouse.ErrNotFound, "an unknown principal", func(tx gatehouse.Tx) error {
		k := key(4)
		k.PrincipalID = "prn_none"
		return tx.InsertKey(k)
	})
	s.updateReturns(
		gatehouse.ErrNotFound,
		"revoking nothing",
		func(tx gatehouse.Tx) error { return tx.RevokeKey("key_none") },
	)
	var at time.Time
	s.update(func(tx gatehouse.Tx) error { at = tx.Now(); return tx.RevokeKey(first.ID) })
	s.update(func(tx gatehouse.Tx) error { return tx.RevokeKey(first.ID) })
	first.RevokedAt = &at
	if found(first) || !found(second) {
		s.Fatal("a revoked key was found, or another one was not")
	}
	s.view(func(tx gatehouse.ReadTx) error {
		list, err := tx.ListKeys(ana.ID)
		s.same("listed, with the first time of revocation", list, []*gatehouse.Key{first, second})
		if err != nil {
			return err
		}
		for _, k := range list {
			got, err := tx.FindKeyByID(k.ID)
			s.same("by id", got, k)
			if err != nil {
				return err
			}
		}
		if _, err := tx.FindKeyByID("key_none"); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("FindKeyByID: error %v", err)
		}
		return nil
	})
	token := func() (hash [32]byte, err error) {
		s.view(func(tx gatehouse.ReadTx) error { hash, err = tx.FindEditToken(ana.ID); return nil })
		return hash, err
	}
	if _, err := token(); !errors.Is(err, gatehouse.ErrNotFound) {
		s.Fatalf("FindEditToken: error %v", err)
	}
	for _, h := range [][32]byte{{7}, {8}} {
		s.update(func(tx gatehouse.Tx) error { return tx.PutEditToken(ana.ID, h) })
		if got, err := token(); got != h || err != nil {
			s.Fatalf("edit token %x, error %v, want %x", got, err, h)
		}
	}
	s.updateReturns(
		gatehouse.ErrNotFound,
		"a token of nobody",
		func(tx gatehouse.Tx) error { return tx.PutEditToken("prn_none", [32]byte{1}) },
	)
}

func (s *suite) tenants() {
	at := s.now()
	acme := &gatehouse.Tenant{ID: "acme", CreatedAt: at}
	s.as("acme").update(func(tx gatehouse.Tx) error { return tx.InsertTenant(acme) })
	s.as("acme").
		updateReturns(gatehouse.ErrConflict, "the same id", func(tx gatehouse.Tx) error { return tx.InsertTenant(acme) })
	s.updateReturns(gatehouse.ErrConflict, "the default tenant is there", func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: gatehouse.DefaultTenant, CreatedAt: at})
	})
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		got, err := q.In("acme").FindTenant()
		s.same("found", got, acme)
		if err != nil {
			return err
		}
		if _, err := q.In("none").FindTenant(); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("FindTenant: error %v", err)
		}
		list, err := q.ListTenants()
		var ids []string
		for _, n := range list {
			ids = append(ids, n.ID)
		}
		s.same("listed", ids, []string{"acme", gatehouse.DefaultTenant})
		return err
	})
}

// callerOf is a caller that sends an Idempotency-Key.
func callerOf(r *gatehouse.IdempotencyRecord) *gatehouse.Caller {
	return &gatehouse.Caller{
		Principal:   &gatehouse.Principal{Tenant: r.Tenant, ID: r.PrincipalID},
		Idempotency: &gatehouse.IdempotencyRequest{Route: r.Route, Key: r.Key, BodyHash: r.BodyHash},
	}
}

func (s *suite) idempotency() {
	record := func(at time.Time, change ...func(*gatehouse.IdempotencyRecord)) *gatehouse.IdempotencyRecord {
		r := &gatehouse.IdempotencyRecord{
			Tenant: tenant, PrincipalID: "prn_1", Route: "POST /x", Key: "k", BodyHash: gatehouse.Hash{1},
			Body: []byte("{\"a\":1}\n"), CreatedAt: at,
		}
		for _, c := range change {
			c(r)
		}
		return r
	}
	find := func(r *gatehouse.IdempotencyRecord) (got *gatehouse.IdempotencyRecord) {
		s.as(r.Tenant).view(func(tx gatehouse.ReadTx) (err error) {
			known, err := tx.OpenCaller(callerOf(r))
			got = known.Answer
			return err
		})
		return got
	}
	now := s.now()
	r := record(now)
	others := []*gatehouse.IdempotencyRecord{
		record(now, func(r *gatehouse.IdempotencyRecord) { r.PrincipalID = "prn_2" }),
		record(now, func(r *gatehouse.IdempotencyRecord) { r.Route = "POST /y" }),
		record(now, func(r *gatehouse.IdempotencyRecord) { r.Key = "K" }),
	}
	s.update(func(tx gatehouse.Tx) error { return tx.InsertIdempotency(r) })
	s.same("found", find(r), r)
	for _, o := range others {
		if find(o) != nil {
			s.Errorf("the record was found as %+v", o)
		}
		s.update(func(tx gatehouse.Tx) error { return tx.InsertIdempotency(o) })
	}
	s.updateReturns(gatehouse.ErrConflict, "the same again", func(tx gatehouse.Tx) error {
		return tx.InsertIdempotency(record(now, func(r *gatehouse.IdempotencyRecord) { r.Body = []byte("other") }))
	})
	s.same("after the refusal", find(r), r)

	old := record(now.Add(-gatehouse.IdempotencyWindow-time.Second),
		func(r *gatehouse.IdempotencyRecord) { r.Key = "old" })
	s.update(func(tx gatehouse.Tx) error { return tx.InsertIdempotency(old) })
	if find(old) != nil {
		s.Error("a record past its window was found")
	}
	fresh := record(now, func(r *gatehouse.IdempotencyRecord) { r.Key = "old" })
	s.update(func(tx gatehouse.Tx) error { return tx.InsertIdempotency(fresh) })
	s.same("in the place of an old one", find(fresh), fresh)

	for i := range 3 {
		s.update(func(tx gatehouse.Tx) error {
			return tx.InsertIdempotency(
				record(now.Add(-48*time.Hour+time.Duration(i)), func(r *gatehouse.IdempotencyRecord) { r.Key = s.next() }))
		})
	}
	for _, want := range []int{2, 1, 0} {
		s.updateQueues(func(q gatehouse.Queues) error {
			n, err := q.PurgeIdempotency(now.Add(-gatehouse.IdempotencyWindow), 2)
			s.same("purged", n, want)
			return err
		})
	}
	s.same("what is younger stays", find(r), r)
}

func (s *suite) policies() {
	s.view(func(tx gatehouse.ReadTx) error {
		if _, err := tx.ActivePolicy(); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("ActivePolicy: error %v", err)
		}
		n, err := tx.ActivePolicyVersion()
		s.same("no version", n, 0)
		return err
	})
	at := s.now()
	var stored []*gatehouse.PolicyVersion
	for _, source := range []string{"a: 1\n", "b: 2\n", "c: 3\n"} {
		p := &gatehouse.PolicyVersion{Tenant: tenant, Source: source, SHA256: "s" + source, AppliedBy: "ana", AppliedAt: at}
		s.update(func(tx gatehouse.Tx) error {
			n, err := tx.InsertPolicy(p)
			s.same("number", n, len(stored)+1)
			return err
		})
		p.Version = len(stored) + 1
		stored = append(stored, p)
	}
	check := func(active int) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) error {
			n, err := tx.ActivePolicyVersion()
			s.same("active number", n, active)
			if err != nil {
				return err
			}
			var short []*gatehouse.PolicyVersion
			for _, p := range stored {
				p.Active = p.Version == active
				got, err := tx.FindPolicy(p.Version)
				if err != nil {
					return err
				}
				s.same("found", got, p)
				q := *p
				q.Source = ""
				short = append([]*gatehouse.PolicyVersion{&q}, short...)
			}
			got, err := tx.ActivePolicy()
			s.same("active", got, stored[active-1])
			if err != nil {
				return err
			}
			list, err := tx.ListPolicies()
			s.same("listed", list, short)
			return err
		})
	}
	check(3)
	s.update(func(tx gatehouse.Tx) error { return tx.ActivatePolicy(1) })
	check(1)
	s.updateReturns(gatehouse.ErrNotFound, "an unknown version",
		func(tx gatehouse.Tx) error { return tx.ActivatePolicy(4) })
	s.view(func(tx gatehouse.ReadTx) error {
		if _, err := tx.FindPolicy(4); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("FindPolicy: error %v", err)
		}
		return nil
	})
}

// firstPrincipal lets many callers create a tenant's first principal at once. The first caller that lists the
// principals waits for the others to list them; LockFirstPrincipal must prevent that until the first caller commits.
func (s *suite) firstPrincipal() {
	const callers = 24
	s.as("new").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "new", CreatedAt: tx.Now()})
	})
	taken := errors.New("taken")
	var made, refused, looks atomic.Int64
	all := make(chan struct{})
	var wg sync.WaitGroup
	for i := range callers {
		p := s.principal(func(p *gatehouse.Principal) { p.Tenant, p.Name = "new", fmt.Sprintf("first%d", i) })
		wg.Go(func() {
			err := s.store.Update(s.Context(), "new", func(tx gatehouse.Tx) error {
				if err := tx.LockFirstPrincipal(); err != nil {
					return err
				}
				known, err := tx.ListPrincipals("", 1)
				if err != nil {
					return err
				}
				switch looks.Add(1) {
				case 1:
					select {
					case <-all:
					case <-time.After(200 * time.Millisecond):
					}
				case callers:
					close(all)
				}
				if len(known.Items) > 0 {
					return taken
				}
				return tx.InsertPrincipal(p)
			})
			switch {
			case err == nil:
				made.Add(1)
			case errors.Is(err, taken):
				refused.Add(1)
			default:
				s.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 || refused.Load() != callers-1 {
		s.Errorf("%d were made and %d refused, want 1 and %d", made.Load(), refused.Load(), callers-1)
	}
}
