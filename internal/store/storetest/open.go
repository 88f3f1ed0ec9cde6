package storetest

import (
	"errors"

	"github.com/gatehouse-dev/gatehouse"
)

// opens compares the results of the Open methods with those of the methods that read one thing each.
func (s *suite) opens() {
	boss := s.insertPrincipal()
	bot := s.insertPrincipal(func(p *gatehouse.Principal) { p.Kind, p.Sponsor = gatehouse.KindAgent, boss.ID })
	ana, zoe := s.insertPrincipal(), s.insertPrincipal()
	hash, token := [32]byte{7}, [32]byte{8}
	by := &gatehouse.Caller{
		Principal: ana, Cached: &gatehouse.CachedCredential{Key: hash},
		Idempotency: &gatehouse.IdempotencyRequest{Route: "r", Key: "k"},
	}
	answer := &gatehouse.IdempotencyRecord{
		Tenant: tenant, PrincipalID: ana.ID, Route: "r", Key: "k", Body: []byte("b"), CreatedAt: s.now(),
	}
	s.update(func(tx gatehouse.Tx) error {
		key := &gatehouse.Key{ID: "key_" + s.next(), Tenant: tenant, PrincipalID: ana.ID, Hash: hash,
			CreatedAt: tx.Now()}
		_, err := tx.InsertPolicy(&gatehouse.PolicyVersion{Tenant: tenant, Source: "p", AppliedAt: tx.Now()})
		view := &gatehouse.SavedView{Tenant: tenant, PrincipalID: ana.ID, Name: "mine", Query: "q", CreatedAt: tx.Now()}
		return errors.Join(err, tx.InsertKey(key), tx.PutEditToken(ana.ID, token), tx.InsertIdempotency(answer),
			tx.PutView(view))
	})
	a := s.pending(func(a *gatehouse.Action) { a.ProposerID, a.Approval.Required = bot.ID, 2 })
	known := gatehouse.CallerFacts{Principal: ana, EditToken: token, Answer: answer}
	rights := func(what string, got gatehouse.Rights, voters ...string) {
		s.Helper()
		s.same(what+": version", got.PolicyVersion, 1)
		s.same(what+": proposer", got.Proposer, bot)
		s.same(what+": sponsor", got.Sponsor, boss)
		if got.Locked(voters) == nil {
			s.Errorf("%s: %d voters, want %v", what, len(got.Voters), voters)
		}
	}
	s.update(func(tx gatehouse.Tx) error {
		v := vote("zoe", gatehouse.Approve, tx.Now())
		v.PrincipalID = zoe.ID
		return tx.PutVote(a.Approval.ID, v)
	})
	locked := s.find(a.ID)
	for _, id := range []string{a.ID, a.Approval.ID} {
		for _, how := range []*gatehouse.Caller{by, {Principal: ana}} {
			s.update(func(tx gatehouse.Tx) error {
				o, err := tx.OpenDecision(gatehouse.DecisionQuery{By: how, ActionID: id, Approve: true})
				if err != nil {
					return err
				}
				s.same("the locked action", o.Action, locked)
				rights("a decision", o.Rights, ana.ID)
				voters, err := tx.LockPrincipals([]string{zoe.ID, ana.ID})
				s.same("the voters", len(voters), 2)
				if how == by {
					s.same("the caller", o.CallerFacts, known)
				} else {
					s.same("a caller without a cached key", o.CallerFacts, gatehouse.CallerFacts{})
				}
				return err
			})
		}
	}
	s.update(func(tx gatehouse.Tx) error {
		o, err := tx.OpenDecision(gatehouse.DecisionQuery{By: by, ActionID: "act_none", Approve: true})
		if err == nil && (o.Action != nil || o.Principal == nil) {
			s.Errorf("a decision of a missing action: %+v", o)
		}
		return err
	})
	s.view(func(tx gatehouse.ReadTx) error {
		o, err := tx.FindDecision(gatehouse.DecisionQuery{By: by, ActionID: a.ID})
		if err != nil {
			return err
		}
		s.same("the action as it is shown", o.Action, locked)
		s.same("before a decision: version", o.PolicyVersion, 1)
		s.same("before a decision: proposer", o.Proposer, bot)
		s.same("before a decision: caller", o.CallerFacts, known)
		return nil
	})
	s.update(func(tx gatehouse.Tx) error {
		q := gatehouse.ProposalQuery{By: by, Key: a.IdempotencyKey, Supersedes: a.ID}
		o, err := tx.OpenProposal(q)
		if err != nil {
			return err
		}
		s.same("the action with the key", o.Same, locked)
		s.same("a proposal: caller", o.CallerFacts, known)
		return nil
	})
	s.update(func(tx gatehouse.Tx) error {
		o, err := tx.OpenProposal(gatehouse.ProposalQuery{Key: "other", Names: []string{boss.Name, bot.ID, "nobody"}})
		if err != nil {
			return err
		}
		s.same("named", o.Named, map[string]*gatehouse.Principal{boss.Name: boss, bot.ID: bot, "nobody": nil})
		if o.Same != nil || o.PolicyVersion != 1 {
			s.Errorf("a new proposal: %+v", o)
		}
		return nil
	})
	s.updateReturns(gatehouse.ErrNotFound, "a revision of a missing action", func(tx gatehouse.Tx) error {
		_, err := tx.OpenProposal(gatehouse.ProposalQuery{Supersedes: "act_none"})
		return err
	})
	s.openedPage(by, known)

	s.update(func(tx gatehouse.Tx) error { return tx.RevokeKey(s.keyOf(tx, ana)) })
	s.update(func(tx gatehouse.Tx) error {
		got, err := tx.OpenCaller(by)
		s.same("a revoked key", got, gatehouse.CallerFacts{Answer: answer})
		return err
	})

	var p *gatehouse.Push
	s.update(func(tx gatehouse.Tx) (err error) { p, err = approve(tx, a, tx.Now()); return err })
	locked = s.find(a.ID)
	s.update(func(tx gatehouse.Tx) error {
		o, err := tx.OpenPush(gatehouse.PushQuery{ActionID: a.ID, PushID: p.ID, Rights: true,
			ReceiptKey: p.IdempotencyKey})
		if err != nil {
			return err
		}
		s.same("the push's action", o.Action, locked)
		s.same("the push", o.Push, p)
		rights("a push", o.Rights, zoe.ID)
		if o.Receipt != nil {
			s.Errorf("a receipt before the push was sent: %+v", o.Receipt)
		}
		return nil
	})
	for _, q := range []gatehouse.PushQuery{{ActionID: a.ID, PushID: "psh_none"},
		{ActionID: "act_none", PushID: p.ID}} {
		s.updateReturns(gatehouse.ErrNotFound, "a push that is missing", func(tx gatehouse.Tx) error {
			_, err := tx.OpenPush(q)
			return err
		})
	}
	s.updateReturns(gatehouse.ErrNotFound, "a step of a missing run", func(tx gatehouse.Tx) error {
		_, err := tx.OpenStep("run_none", "")
		return err
	})
}

func (s *suite) keyOf(tx gatehouse.ReadTx, p *gatehouse.Principal) string {
	keys, err := tx.ListKeys(p.ID)
	if err != nil || len(keys) != 1 {
		s.Fatalf("%d keys, %v", len(keys), err)
	}
	return keys[0].ID
}

// openedPage compares OpenPage with ListActions. OpenPage also returns the caller's facts if the filter is invalid, or
// if the page is empty without a query.
func (s *suite) openedPage(by *gatehouse.Caller, known gatehouse.CallerFacts) {
	for _, f := range []gatehouse.ActionFilter{
		{}, {Query: "x"}, {Archived: true}, {Cursor: "x"},
		{Sort: gatehouse.SortUrgency, Status: gatehouse.StatusDenied},
	} {
		var want gatehouse.Page[*gatehouse.Action]
		var wantErr error
		s.view(func(tx gatehouse.ReadTx) error { want, wantErr = tx.ListActions(f); return nil })
		err := s.store.Read(s.Context(), tenant, func(tx gatehouse.ReadTx) error {
			o, err := tx.OpenPage(by, f, true)
			if gatehouse.CodeOf(err) != gatehouse.CodeOf(wantErr) || o == nil {
				s.Errorf("%+v: error %v, want %v", f, err, wantErr)
				return err
			}
			s.same("a page: caller", o.CallerFacts, known)
			s.same("a page: views", len(o.Views), 1)
			if err == nil {
				s.same("a page", o.Page, want)
			}
			return nil
		})
		if err != nil {
			s.Errorf("%+v: %v", f, err)
		}
	}
}
