package storetest

import (
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *suite) approvalMoves() {
	all := []gatehouse.ApprovalStatus{
		gatehouse.ApprovalRequested, gatehouse.ApprovalApproved, gatehouse.ApprovalRejected, gatehouse.ApprovalExpired,
		gatehouse.ApprovalCanceled,
	}
	for _, from := range all {
		for _, to := range append(all, "nonsense", "") {
			a := s.pending()
			if from != gatehouse.ApprovalRequested {
				s.update(func(tx gatehouse.Tx) error { return tx.MoveApproval(a.Approval.ID, from) })
			}
			want, err := from, gatehouse.ErrConflict
			if from.CanMove(to) {
				want, err = to, nil
			}
			s.updateReturns(err, string(from+" to "+to),
				func(tx gatehouse.Tx) error { return tx.MoveApproval(a.Approval.ID, to) })
			if got := s.find(a.ID).Approval.Status; got != want {
				s.Fatalf("%s to %s: is %s", from, to, got)
			}
		}
	}
}

func (s *suite) votes() {
	a := s.pending(func(a *gatehouse.Action) { a.Approval.Required = 3 })
	at := s.now()
	first := vote("zoe", gatehouse.Approve, at)
	second := vote("ben", gatehouse.Approve, at.Add(time.Second))
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.PutVote(a.Approval.ID, second); err != nil {
			return err
		}
		return tx.PutVote(a.Approval.ID, first)
	})
	s.same("the oldest first", s.find(a.ID).Approval.Votes, []gatehouse.Vote{first, second})
	changed := vote("zoe", gatehouse.Reject, at.Add(2*time.Second))
	changed.Notes, changed.PrincipalID = "changed my mind", "prn_zoe2"
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.PutVote(a.Approval.ID, changed); err != nil {
			return err
		}
		locked, err := tx.LockAction(a.ID)
		if err == nil {
			s.same("own writes are seen", locked.Approval.Votes, []gatehouse.Vote{second, changed})
		}
		return err
	})
	s.same("one vote per person", s.find(a.ID).Approval.Votes, []gatehouse.Vote{second, changed})
	s.updateReturns(
		gatehouse.ErrNotFound,
		"a vote on nothing",
		func(tx gatehouse.Tx) error { return tx.PutVote("apr_none", first) },
	)
	s.update(func(tx gatehouse.Tx) error { return tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalRejected) })
	s.updateReturns(gatehouse.ErrConflict, "a vote on a decided question", func(tx gatehouse.Tx) error {
		return tx.PutVote(a.Approval.ID, vote("eve", gatehouse.Approve, tx.Now()))
	})
}

// expiry checks that an overdue approval counts as expired, before and after the sweep that stores the status.
func (s *suite) expiry() {
	past := s.pending(func(a *gatehouse.Action) { a.Approval.ExpiresAt = a.ProposedAt })
	earlier := s.pending(func(a *gatehouse.Action) { a.Approval.ExpiresAt = a.ProposedAt.Add(-time.Hour) })
	live := s.pending()
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		tx := q.In(tenant)
		for _, id := range []string{past.ID, past.Approval.ID} {
			a, err := tx.FindAction(id)
			if err != nil {
				return err
			}
			if a.Status != gatehouse.StatusExpired || a.Approval.Status != gatehouse.ApprovalExpired {
				s.Errorf("FindAction shows %s, %s", a.Status, a.Approval.Status)
			}
		}
		a, err := tx.FindActionByKey(past.IdempotencyKey)
		if err != nil {
			return err
		}
		s.same("by key", a.Status, gatehouse.StatusExpired)
		refs, err := q.ExpiredActions(10)
		s.same("to sweep, the earliest first", refs,
			[]gatehouse.ActionRef{{Tenant: tenant, ID: earlier.ID}, {Tenant: tenant, ID: past.ID}})
		if err != nil {
			return err
		}
		refs, err = q.ExpiredActions(1)
		s.same("to sweep, one", refs, []gatehouse.ActionRef{{Tenant: tenant, ID: earlier.ID}})
		return err
	})
	check := func(when string) {
		s.Helper()
		s.same(when+": expired", s.list(gatehouse.ActionFilter{Status: gatehouse.StatusExpired}),
			[]string{earlier.ID, past.ID})
		s.same(when+": pending", s.list(gatehouse.ActionFilter{Status: gatehouse.StatusPending}), []string{live.ID})
		s.same(when+": inbox", s.list(gatehouse.ActionFilter{Sort: gatehouse.SortUrgency}), []string{live.ID})
		s.same(when+": all", s.list(gatehouse.ActionFilter{}), []string{live.ID, earlier.ID, past.ID})
	}
	check("before the sweep")
	s.update(func(tx gatehouse.Tx) error {
		a, err := tx.LockAction(past.ID)
		if err != nil {
			return err
		}
		s.same("LockAction returns what is stored", a.Status, gatehouse.StatusPending)
		if err := tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalExpired); err != nil {
			return err
		}
		return tx.MoveAction(move(a, gatehouse.StatusPending, gatehouse.StatusExpired))
	})
	check("after the sweep of one")
}

// writeAfterLock writes to the action that the transaction has locked, and to
// others.
func (s *suite) writeAfterLock() {
	a, b := s.pending(), s.pending()
	s.update(func(tx gatehouse.Tx) error {
		if _, err := tx.LockAction(a.ID); err != nil {
			return err
		}
		// b is not the action that the transaction has locked.
		if err := tx.PutVote(b.Approval.ID, vote("ben", gatehouse.Reject, tx.Now())); err != nil {
			return err
		}
		if err := tx.MoveApproval(b.Approval.ID, gatehouse.ApprovalRejected); err != nil {
			return err
		}
		return tx.MoveAction(move(b, gatehouse.StatusPending, gatehouse.StatusRejected))
	})
	s.same("the one that was read", s.find(a.ID).Status, gatehouse.StatusPending)
	s.updateReturns(gatehouse.ErrConflict, "a push of an action that is not approved", func(tx gatehouse.Tx) error {
		if _, err := tx.LockAction(a.ID); err != nil {
			return err
		}
		return tx.InsertPush(push(a, tx.Now()))
	})
	s.same("the other", s.find(b.ID).Status, gatehouse.StatusRejected)
	for what, again := range map[string]func(tx gatehouse.Tx) error{
		"a second decision": func(tx gatehouse.Tx) error {
			return tx.MoveAction(move(a, gatehouse.StatusPending, gatehouse.StatusRejected))
		},
		"a vote on what the transaction has closed": func(tx gatehouse.Tx) error {
			return tx.PutVote(a.Approval.ID, vote("eve", gatehouse.Approve, tx.Now()))
		},
		"a second answer": func(tx gatehouse.Tx) error { return tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalRejected) },
		"a push twice": func(
			tx gatehouse.Tx) error {
			p := push(a, tx.Now())
			p.ID = "psh_again"
			return tx.InsertPush(p)
		},
		"a push of an action that moved on": func(tx gatehouse.Tx) error {
			m := move(a, gatehouse.StatusApproved, gatehouse.StatusCanceled)
			if err := tx.MoveAction(m); err != nil {
				return err
			}
			p := push(a, tx.Now())
			p.ID = "psh_late"
			return tx.InsertPush(p)
		},
	} {
		err := s.store.Update(s.Context(), a.Tenant, func(tx gatehouse.Tx) error {
			if _, err := approve(tx, a, tx.Now()); err != nil {
				s.Errorf("%s: %v", what, err)
				return nil
			}
			return again(tx)
		})
		if !errors.Is(err, gatehouse.ErrConflict) && !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("%s: error %v", what, err)
		}
	}
	s.same("after it all", s.find(a.ID).Status, gatehouse.StatusPending)
}

// corpusAndMirror checks that the corpus has an entry for each action that people decided, and that the mirror has a
// row for each applied change.
func (s *suite) corpusAndMirror() {
	a, b := s.pending(func(a *gatehouse.Action) {
		a.Magnitude, a.Policy.Rules = &gatehouse.Magnitude{Amount: "2.50", Currency: "USD"}, nil
	}), s.pending()
	s.pending() // a pending action has no corpus entry
	s.in(gatehouse.StatusDenied)
	expired := s.pending()
	at := s.now()
	var mirror []*gatehouse.AppliedMirror
	s.update(func(tx gatehouse.Tx) error {
		at = tx.Now()
		if err := tx.MoveApproval(expired.Approval.ID, gatehouse.ApprovalExpired); err != nil {
			return err
		}
		if err := tx.MoveAction(move(expired, gatehouse.StatusPending, gatehouse.StatusExpired)); err != nil {
			return err
		}
		for _, v := range []gatehouse.Vote{
			{Person: "zoe", PrincipalID: "prn_zoe", Name: "zoe", Decision: gatehouse.Approve, Notes: "fine",
				Via: gatehouse.ViaAPI, At: at},
			{Person: "ana", PrincipalID: "prn_ana", Name: "ana", Decision: gatehouse.Reject, Notes: "no", Via: gatehouse.ViaAPI,
				At: at},
		} {
			if err := tx.PutVote(a.Approval.ID, v); err != nil {
				return err
			}
		}
		if err := tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalRejected); err != nil {
			return err
		}
		m := move(a, gatehouse.StatusPending, gatehouse.StatusRejected)
		m.DecidedBy, m.DecidedVia = "ana", gatehouse.ViaAPI
		if err := tx.MoveAction(m); err != nil {
			return err
		}
		_, err := approve(tx, b, at)
		return err
	})
	features := func(a *gatehouse.Action, rest string) gatehouse.JSON {
		return gatehouse.JSON(`{"connector":"shop","entity_ref":"` + a.Target.EntityRef +
			`","entity_type":"item","fields":["price"],` + rest)
	}
	corpus := []*gatehouse.CorpusEntry{
		{
			ID: "cor_" + b.ID[4:], Tenant: tenant, ActionID: b.ID, ActionType: b.ActionType, Outcome: gatehouse.Approve,
			DecidedBy: "ana", Notes: "n", At: at,
			Features: features(b, `"operation":"update","proposed_by":"bot","risk_level":3,"rules":["r"]}`),
		}, {
			ID: "cor_" + a.ID[4:], Tenant: tenant, ActionID: a.ID, ActionType: a.ActionType, Outcome: gatehouse.Reject,
			DecidedBy: "ana", Notes: "no", At: at,
			Features: features(a,
				`"magnitude":{"amount":"2.50","currency":"USD"},"operation":"update","proposed_by":"bot",`+
					`"risk_level":3,"rules":null}`),
		},
	}
	for _, x := range []*gatehouse.Action{a, b} {
		mirror = append([]*gatehouse.AppliedMirror{{
			Tenant: tenant, ActionID: x.ID, ActionType: x.ActionType, Connector: x.Connector, Operation: x.Operation,
			Target: gatehouse.Target{EntityType: "item", EntityRefs: []string{"a", "b"}}, Before: `{"n":1.0}`,
			After:  `{"n":2.0}`,
			Digest: x.Digest, ExternalID: "e", ReceiptID: "rcp_1", AppliedAt: at,
		}}, mirror...)
		s.update(func(tx gatehouse.Tx) error { return tx.InsertMirror(mirror[0]) })
	}
	s.updateReturns(gatehouse.ErrConflict, "a second mirror of an action",
		func(tx gatehouse.Tx) error { return tx.InsertMirror(mirror[0]) })
	s.view(func(tx gatehouse.ReadTx) error {
		c, err := walk(func(cursor string) (gatehouse.Page[*gatehouse.CorpusEntry], error) {
			return tx.ListCorpus("", cursor, 1)
		})
		s.same("corpus", c, corpus)
		if err != nil {
			return err
		}
		m, err := walk(func(cursor string) (gatehouse.Page[*gatehouse.AppliedMirror], error) {
			return tx.ListMirror("", cursor, 1)
		})
		s.same("mirror", m, mirror)
		return err
	})
}
