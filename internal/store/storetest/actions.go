package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *suite) actionRoundTrip() {
	at := s.now()
	for _, a := range []*gatehouse.Action{
		s.action(at),
		s.full(at),
		s.action(at, func(a *gatehouse.Action) {
			a.Status, a.Approval = gatehouse.StatusApproved, nil
			a.DecidedBy, a.DecidedVia, a.DecidedAt = "policy:r", gatehouse.ViaPolicy, &at
			a.Policy.Outcome, a.Policy.Rules = gatehouse.OutcomeAllow, []string{}
			a.IdempotencyKey = "the proposer's own"
		}),
	} {
		s.update(func(tx gatehouse.Tx) error { return tx.InsertAction(a) })
		s.same("by id", s.find(a.ID), a)
		if a.Approval != nil {
			s.same("by approval", s.find(a.Approval.ID), a)
		}
		s.view(func(tx gatehouse.ReadTx) error {
			got, err := tx.FindActionByKey(a.IdempotencyKey)
			s.same("by key", got, a)
			return err
		})
		s.update(func(tx gatehouse.Tx) error {
			got, err := tx.LockAction(a.ID)
			s.same("locked", got, a)
			return err
		})
	}
	s.view(func(tx gatehouse.ReadTx) error {
		for _, id := range []string{"", "act_none", "apr_none", "%"} {
			if _, err := tx.FindAction(id); !errors.Is(err, gatehouse.ErrNotFound) {
				s.Errorf("FindAction(%q): error %v", id, err)
			}
		}
		if _, err := tx.FindActionByKey("none"); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("FindActionByKey: error %v", err)
		}
		return nil
	})
}

// actionsByID checks that FindActions returns the same actions as FindAction: live, expired and archived ones, by the
// id of the action or of its approval, and none of another tenant.
func (s *suite) actionsByID() {
	archived := s.in(gatehouse.StatusRejected)
	s.same("archived", s.archive(s.later()), []string{archived.ID})
	overdue := s.action(s.now())
	overdue.Approval.ExpiresAt = overdue.ProposedAt.Add(time.Microsecond)
	s.update(func(tx gatehouse.Tx) error { return tx.InsertAction(overdue) })
	voted := s.pending()
	s.update(func(tx gatehouse.Tx) error {
		return tx.PutVote(voted.Approval.ID, vote("zoe", gatehouse.Approve, tx.Now()))
	})
	pushed := s.pushIn(gatehouse.PushSent).ActionID
	ids := []string{archived.ID, overdue.ID, pushed, voted.ID, voted.Approval.ID, voted.ID}
	want := make(map[string]*gatehouse.Action)
	for _, id := range ids {
		want[id] = s.find(id)
	}
	asked := append([]string{"", "act_none", "apr_none"}, ids...)
	var got map[string]*gatehouse.Action
	read := func(tx gatehouse.ReadTx) (err error) { got, err = tx.FindActions(asked); return err }
	s.view(read)
	s.same("View", got, want)
	s.update(func(tx gatehouse.Tx) error { return read(tx) })
	s.same("Update", got, want)
	if err := s.store.Read(context.Background(), tenant, read); err != nil {
		s.Fatal(err)
	}
	s.same("Read", got, want)
	s.newTenants("acme")
	s.as("acme").view(read)
	s.same("another tenant", got, map[string]*gatehouse.Action{})
	asked = nil
	s.view(read)
	s.same("no ids", got, map[string]*gatehouse.Action{})
}

func (s *suite) actionKeys() {
	a := s.pending()
	s.updateReturns(gatehouse.ErrConflict, "the same id", func(tx gatehouse.Tx) error {
		return tx.InsertAction(s.action(tx.Now(), func(b *gatehouse.Action) { b.ID = a.ID }))
	})
	s.updateReturns(gatehouse.ErrConflict, "the same key", func(tx gatehouse.Tx) error {
		return tx.InsertAction(s.action(tx.Now(), func(b *gatehouse.Action) { b.IdempotencyKey = a.IdempotencyKey }))
	})
	s.updateReturns(gatehouse.ErrConflict, "the same approval id", func(tx gatehouse.Tx) error {
		return tx.InsertAction(s.action(tx.Now(), func(b *gatehouse.Action) { b.Approval.ID = a.Approval.ID }))
	})
	s.as("nobody").updateReturns(gatehouse.ErrNotFound, "an unknown tenant", func(tx gatehouse.Tx) error {
		return tx.InsertAction(s.action(tx.Now(), func(b *gatehouse.Action) { b.Tenant = "nobody" }))
	})
	s.same("the first", s.find(a.ID), a)
}

// actionMoves tries every move from every state: moves in the transition table
// happen, all others conflict and change nothing.
func (s *suite) actionMoves() {
	for _, from := range gatehouse.Statuses() {
		for _, to := range append(gatehouse.Statuses(), "nonsense", "") {
			a := s.in(from)
			before := s.find(a.ID)
			if from.CanMove(to) {
				s.update(func(tx gatehouse.Tx) error { return tx.MoveAction(move(a, from, to)) })
				if got := s.find(a.ID).Status; got != to {
					s.Fatalf("%s to %s: is %s", from, to, got)
				}
				// The same move again finds another state.
				s.updateReturns(gatehouse.ErrConflict, "twice",
					func(tx gatehouse.Tx) error { return tx.MoveAction(move(a, from, to)) })
				continue
			}
			s.updateReturns(gatehouse.ErrConflict, string(from+" to "+to),
				func(tx gatehouse.Tx) error { return tx.MoveAction(move(a, from, to)) })
			// The transition table has the move from other, but the action is not in that state.
			for _, other := range gatehouse.Statuses() {
				if other != from && other.CanMove(to) {
					s.updateReturns(gatehouse.ErrConflict, "claimed to be "+string(other), func(tx gatehouse.Tx) error {
						return tx.MoveAction(move(a, other, to))
					})
				}
			}
			s.same("after refusals", s.find(a.ID), before)
		}
	}
	s.updateReturns(gatehouse.ErrConflict, "a move of nothing", func(tx gatehouse.Tx) error {
		return tx.MoveAction(
			gatehouse.ActionMove{ID: "act_none", From: gatehouse.StatusPending, To: gatehouse.StatusRejected, Decided: true})
	})
}

func (s *suite) actionMoveColumns() {
	a := s.pending()
	var decided, failed time.Time
	step := func(m gatehouse.ActionMove) (at time.Time) {
		s.Helper()
		m.ID = a.ID
		s.update(func(tx gatehouse.Tx) error { at = tx.Now(); return tx.MoveAction(m) })
		return at
	}
	decided = step(
		gatehouse.ActionMove{From: gatehouse.StatusPending, To: gatehouse.StatusApproved, DecidedBy: "ana",
			DecidedVia: gatehouse.ViaCLI, Decided: true})
	step(gatehouse.ActionMove{From: gatehouse.StatusApproved, To: gatehouse.StatusPushing})
	failed = step(
		gatehouse.ActionMove{From: gatehouse.StatusPushing, To: gatehouse.StatusFailed, Finished: true,
			Failure: &gatehouse.Failure{Code: "c"}})
	got := s.find(a.ID)
	a.Status, a.DecidedBy, a.DecidedVia, a.DecidedAt, a.FinishedAt = gatehouse.StatusFailed, "ana", gatehouse.ViaCLI,
		&decided, &failed
	a.Failure = &gatehouse.Failure{Code: "c"}
	s.same("failed", got, a)
	step(gatehouse.ActionMove{From: gatehouse.StatusFailed, To: gatehouse.StatusApproved})
	a.Status, a.Failure, a.FinishedAt = gatehouse.StatusApproved, nil, nil
	s.same("replayed: who decided stays, the failure and the end do not", s.find(a.ID), a)
	step(gatehouse.ActionMove{From: gatehouse.StatusApproved, To: gatehouse.StatusPushing})
	applied := step(gatehouse.ActionMove{From: gatehouse.StatusPushing, To: gatehouse.StatusApplied, Finished: true})
	step(gatehouse.ActionMove{From: gatehouse.StatusApplied, To: gatehouse.StatusReversed, ReversedBy: a.ID})
	a.Status, a.FinishedAt, a.ReversedBy = gatehouse.StatusReversed, &applied, a.ID
	s.same("reversed", s.find(a.ID), a)
}

func (s *suite) actionFirstStatus() {
	for _, status := range gatehouse.Statuses() {
		err := gatehouse.ErrConflict
		if gatehouse.Status("").CanMove(status) {
			err = nil
		}
		s.updateReturns(err, "insert as "+string(status), func(tx gatehouse.Tx) error {
			now := tx.Now()
			return tx.InsertAction(s.action(now, func(a *gatehouse.Action) {
				if a.Status = status; status.Decided() {
					a.DecidedAt = &now
				}
			}))
		})
	}
}

func (s *suite) actionLinks() {
	old := s.in(gatehouse.StatusSuperseded)
	s.update(func(tx gatehouse.Tx) error {
		// As in the use case, one transaction stores first the link to the revision, then the revision.
		revised := s.action(tx.Now(), func(a *gatehouse.Action) { a.Revision, a.Supersedes = 2, old.ID })
		if err := tx.LinkSuperseded(old.ID, revised.ID); err != nil {
			return err
		}
		old.Superseded = revised.ID
		return tx.InsertAction(revised)
	})
	if got := s.find(old.ID).Superseded; got != old.Superseded {
		s.Fatalf("superseded_by is %q, want %q", got, old.Superseded)
	}
	if got := s.find(old.Superseded).Supersedes; got != old.ID {
		s.Fatalf("supersedes is %q, want %q", got, old.ID)
	}
	s.updateReturns(
		gatehouse.ErrNotFound,
		"a link from nothing",
		func(tx gatehouse.Tx) error { return tx.LinkSuperseded("act_none", old.ID) },
	)
	s.updateReturns(
		gatehouse.ErrNotFound,
		"a link to nothing",
		func(tx gatehouse.Tx) error { return tx.LinkSuperseded(old.ID, "act_none") },
	)
}

func (s *suite) openReversal() {
	a := s.in(gatehouse.StatusApplied)
	open := func() (id string) {
		s.view(func(tx gatehouse.ReadTx) (err error) { id, err = tx.OpenReversal(a.ID); return err })
		return id
	}
	if id := open(); id != "" {
		s.Fatalf("reversal %q of an action without one", id)
	}
	for _, status := range gatehouse.Statuses() {
		if status == gatehouse.StatusDenied {
			continue
		}
		r := s.pending(func(r *gatehouse.Action) { r.Reverses = a.ID })
		from := gatehouse.StatusPending
		for _, to := range path(status) {
			s.update(func(tx gatehouse.Tx) error { return tx.MoveAction(move(r, from, to)) })
			from = to
		}
		want := r.ID
		switch status {
		case gatehouse.StatusRejected, gatehouse.StatusExpired, gatehouse.StatusCanceled, gatehouse.StatusSuperseded,
			gatehouse.StatusFailed:
			// r is no longer open: the open reversal is the newest open one of those made before r.
			if want = open(); want >= r.ID {
				s.Fatalf("%s: reversal %q is open", status, want)
			}
		}
		if got := open(); got != want {
			s.Fatalf("%s: reversal %q, want %q", status, got, want)
		}
	}
	b := s.in(gatehouse.StatusApplied)
	s.pending(func(r *gatehouse.Action) { r.Reverses, r.Approval.ExpiresAt = b.ID, r.ProposedAt })
	s.view(func(tx gatehouse.ReadTx) error {
		id, err := tx.OpenReversal(b.ID)
		s.same("an expired reversal is not open", id, "")
		return err
	})
}
