package storetest

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *suite) approvalMoves() {
	all := []gatehouse.ApprovalStatus{
		gatehouse.ApprovalRequested, gatehouse.ApprovalApproved, gatehouse.ApprovalRejected, gatehouse.ApprovalExpired, gatehouse.ApprovalCanceled,
	}
	for _, from := range all {
		for _, to := range append(all, "nonsense", "") {
			a := s.pending()
			if from != gatehouse.ApprovalRequested {
				s.update(func(tx gatehouse.Tx) error { return tx.MoveApproval(tenant, a.Approval.ID, from) })
			}
			want, err := from, gatehouse.ErrConflict
			if from.CanMove(to) {
				want, err = to, nil
			}
			s.refused(err, string(from+" to "+to), func(tx gatehouse.Tx) error { return tx.MoveApproval(tenant, a.Approval.ID, to) })
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
		if err := tx.PutVote(tenant, a.Approval.ID, second); err != nil {
			return err
		}
		return tx.PutVote(tenant, a.Approval.ID, first)
	})
	s.same("the oldest first", s.find(a.ID).Approval.Votes, []gatehouse.Vote{first, second})
	changed := vote("zoe", gatehouse.Reject, at.Add(2*time.Second))
	changed.Notes, changed.PrincipalID = "changed my mind", "prn_zoe2"
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.PutVote(tenant, a.Approval.ID, changed); err != nil {
			return err
		}
		locked, err := tx.LockAction(tenant, a.ID)
		if err == nil {
			s.same("own writes are seen", locked.Approval.Votes, []gatehouse.Vote{second, changed})
		}
		return err
	})
	s.same("one vote a person", s.find(a.ID).Approval.Votes, []gatehouse.Vote{second, changed})
	s.refused(gatehouse.ErrNotFound, "a vote on nothing", func(tx gatehouse.Tx) error { return tx.PutVote(tenant, "apr_none", first) })
	s.update(func(tx gatehouse.Tx) error { return tx.MoveApproval(tenant, a.Approval.ID, gatehouse.ApprovalRejected) })
	s.refused(gatehouse.ErrConflict, "a vote on a decided question", func(tx gatehouse.Tx) error {
		return tx.PutVote(tenant, a.Approval.ID, vote("eve", gatehouse.Approve, tx.Now()))
	})
}

// expiry checks that the predicate is the truth, swept or not.
func (s *suite) expiry() {
	past := s.pending(func(a *gatehouse.Action) { a.Approval.ExpiresAt = a.ProposedAt })
	earlier := s.pending(func(a *gatehouse.Action) { a.Approval.ExpiresAt = a.ProposedAt.Add(-time.Hour) })
	live := s.pending()
	s.view(func(tx gatehouse.ReadTx) error {
		for _, id := range []string{past.ID, past.Approval.ID} {
			a, err := tx.FindAction(tenant, id)
			if err != nil {
				return err
			}
			if a.Status != gatehouse.StatusExpired || a.Approval.Status != gatehouse.ApprovalExpired {
				s.Errorf("FindAction shows %s, %s", a.Status, a.Approval.Status)
			}
		}
		a, err := tx.FindActionByKey(tenant, past.IdempotencyKey)
		if err != nil {
			return err
		}
		s.same("by key", a.Status, gatehouse.StatusExpired)
		refs, err := tx.ExpiredActions(10)
		s.same("to sweep, the earliest first", refs, []gatehouse.ActionRef{{Tenant: tenant, ID: earlier.ID}, {Tenant: tenant, ID: past.ID}})
		if err != nil {
			return err
		}
		refs, err = tx.ExpiredActions(1)
		s.same("to sweep, one", refs, []gatehouse.ActionRef{{Tenant: tenant, ID: earlier.ID}})
		return err
	})
	check := func(when string) {
		s.Helper()
		s.same(when+": expired", s.list(gatehouse.ActionFilter{Status: gatehouse.StatusExpired}), []string{earlier.ID, past.ID})
		s.same(when+": pending", s.list(gatehouse.ActionFilter{Status: gatehouse.StatusPending}), []string{live.ID})
		s.same(when+": inbox", s.list(gatehouse.ActionFilter{Sort: gatehouse.SortUrgency}), []string{live.ID})
		s.same(when+": all", s.list(gatehouse.ActionFilter{}), []string{live.ID, earlier.ID, past.ID})
	}
	check("before the sweep")
	s.update(func(tx gatehouse.Tx) error {
		a, err := tx.LockAction(tenant, past.ID)
		if err != nil {
			return err
		}
		s.same("LockAction returns what is stored", a.Status, gatehouse.StatusPending)
		if err := tx.MoveApproval(tenant, a.Approval.ID, gatehouse.ApprovalExpired); err != nil {
			return err
		}
		return tx.MoveAction(move(a, gatehouse.StatusPending, gatehouse.StatusExpired))
	})
	check("after the sweep of one")
}

// lessons are what a decision and an application leave.
func (s *suite) lessons() {
	a, b := s.pending(), s.pending()
	at := s.now()
	var corpus []*gatehouse.CorpusEntry
	var mirror []*gatehouse.AppliedMirror
	for _, x := range []*gatehouse.Action{a, b} {
		corpus = append([]*gatehouse.CorpusEntry{{
			ID: "cor_" + s.next(), Tenant: tenant, ActionID: x.ID, ActionType: x.ActionType, Features: `{"risk":3}`,
			Outcome: gatehouse.Reject, DecidedBy: "ana", Notes: "no", At: at,
		}}, corpus...)
		mirror = append([]*gatehouse.AppliedMirror{{
			Tenant: tenant, ActionID: x.ID, ActionType: x.ActionType, Connector: x.Connector, Operation: x.Operation,
			Target: gatehouse.Target{EntityType: "item", EntityRefs: []string{"a", "b"}}, Before: `{"n":1.0}`, After: `{"n":2.0}`,
			Digest: x.Digest, ExternalID: "e", ReceiptID: "rcp_1", AppliedAt: at,
		}}, mirror...)
		s.update(func(tx gatehouse.Tx) error {
			if err := tx.InsertCorpus(corpus[0]); err != nil {
				return err
			}
			return tx.InsertMirror(mirror[0])
		})
	}
	s.refused(gatehouse.ErrConflict, "one application an action", func(tx gatehouse.Tx) error { return tx.InsertMirror(mirror[0]) })
	s.refused(gatehouse.ErrNotFound, "a lesson from nothing", func(tx gatehouse.Tx) error {
		return tx.InsertCorpus(&gatehouse.CorpusEntry{ID: "cor_x", Tenant: tenant, ActionID: "act_none", Outcome: gatehouse.Approve, At: at})
	})
	s.view(func(tx gatehouse.ReadTx) error {
		c, err := walk(func(cursor string) (gatehouse.Page[*gatehouse.CorpusEntry], error) {
			return tx.ListCorpus(tenant, cursor, 1)
		})
		s.same("corpus", c, corpus)
		if err != nil {
			return err
		}
		m, err := walk(func(cursor string) (gatehouse.Page[*gatehouse.AppliedMirror], error) {
			return tx.ListMirror(tenant, cursor, 1)
		})
		s.same("mirror", m, mirror)
		return err
	})
}
