package storetest

import (
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// settlement is a decision on a pending action; to is approved or rejected.
func settlement(tx gatehouse.Tx, a *gatehouse.Action, to gatehouse.Status) *gatehouse.Settlement {
	d := &gatehouse.Settlement{
		ActionID: a.ID, ApprovalID: a.Approval.ID, To: to,
		Vote: vote("ana", gatehouse.Reject, tx.Now()),
		Leaf: &gatehouse.Leaf{Tenant: a.Tenant, Type: "hitl.decided", Subject: a.ID, ActionID: a.ID, Actor: "prn_ana"},
	}
	if to == gatehouse.StatusApproved {
		d.Vote.Decision, d.Push = gatehouse.Approve, push(a, tx.Now())
		due := d.Push.NotBefore
		d.Push.NextAttempt = &due
	}
	return d
}

// settles checks what SettleDecision stores, and that a settlement whose parts contradict each other stores nothing.
func (s *suite) settles() {
	for to, want := range map[gatehouse.Status]gatehouse.ApprovalStatus{
		gatehouse.StatusApproved: gatehouse.ApprovalApproved, gatehouse.StatusRejected: gatehouse.ApprovalRejected,
	} {
		a := s.pending()
		s.update(func(tx gatehouse.Tx) error {
			a, err := tx.LockAction(a.ID)
			if err != nil {
				return err
			}
			return tx.SettleDecision(settlement(tx, a, to))
		})
		got := s.find(a.ID)
		if got.Status != to || got.Approval.Status != want || got.DecidedBy != "ana" || got.DecidedAt == nil ||
			len(got.Approval.Votes) != 1 || (got.FinishedAt != nil) != to.Finished() ||
			(got.Push != nil) != (to == gatehouse.StatusApproved) {
			s.Errorf("%s: stored is %+v", to, got)
		}
	}
	a, other, tooLate := s.pending(), s.pending(), s.now().Add(time.Hour)
	for name, change := range map[string]func(d *gatehouse.Settlement){
		"another approval": func(d *gatehouse.Settlement) { d.ApprovalID = other.Approval.ID },
		"another action": func(d *gatehouse.Settlement) {
			d.ActionID, d.Push.ActionID = other.ID, other.ID
		},
		"another action's push":   func(d *gatehouse.Settlement) { d.Push.ActionID = other.ID },
		"a push under way":        func(d *gatehouse.Settlement) { d.Push.Status = gatehouse.PushPicking },
		"a push due later":        func(d *gatehouse.Settlement) { d.Push.NotBefore = tooLate },
		"another action's leaf":   func(d *gatehouse.Settlement) { d.Leaf.ActionID = other.ID },
		"no push":                 func(d *gatehouse.Settlement) { d.Push = nil },
		"a rejection with a push": func(d *gatehouse.Settlement) { d.To = gatehouse.StatusRejected },
		"another tenant's push":   func(d *gatehouse.Settlement) { d.Push.Tenant = "acme" },
		"another tenant's leaf":   func(d *gatehouse.Settlement) { d.Leaf.Tenant = "acme" },
		"another status":          func(d *gatehouse.Settlement) { d.To = gatehouse.StatusCanceled },
	} {
		err := s.store.Update(s.Context(), tenant, func(tx gatehouse.Tx) error {
			a, err := tx.LockAction(a.ID)
			if err != nil {
				return err
			}
			d := settlement(tx, a, gatehouse.StatusApproved)
			change(d)
			return tx.SettleDecision(d)
		})
		if !errors.Is(err, gatehouse.ErrConflict) && !errors.Is(err, gatehouse.ErrOtherTenant) {
			s.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []string{a.ID, other.ID} {
		got := s.find(id)
		if got.Status != gatehouse.StatusPending || len(got.Approval.Votes) > 0 || got.Push != nil {
			s.Errorf("a refused decision has stored %+v", got)
		}
	}
}
