package storetest

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// timing makes an approval ask finance for the first hour, and legal and ana as well for the second. It reminds after
// 30 minutes, and is extended by a third hour.
func timing(a *gatehouse.Action) {
	hour := gatehouse.Duration(time.Hour)
	ap := a.Approval
	ap.Roles, ap.Groups = nil, []string{"finance"}
	ap.Timing = gatehouse.Timing{
		Stages: []gatehouse.Stage{
			{Who: gatehouse.Audience{Groups: []string{"finance"}}, For: hour},
			{
				Who:    gatehouse.Audience{Groups: []string{"legal"}, People: []string{"ana"}},
				For:    hour,
				Notify: []string{"pager"},
			},
		},
		Reminders: []gatehouse.Duration{hour / 2}, OnTimeout: gatehouse.TimeoutExtend, ExtendBy: hour,
	}
	ap.ExpiresAt = ap.CreatedAt.Add(2 * time.Hour)
}

// born moves all times of an action into the past.
func born(ago time.Duration) func(*gatehouse.Action) {
	return func(a *gatehouse.Action) {
		a.ProposedAt = a.ProposedAt.Add(-ago)
		a.Approval.CreatedAt, a.Approval.ExpiresAt = a.Approval.CreatedAt.Add(-ago), a.Approval.ExpiresAt.Add(-ago)
	}
}

// stages checks how the stage, the extension, the expiry and the status of a question follow from the clock, and that
// its frozen parts do not change.
func (s *suite) stages() {
	for _, c := range []struct {
		ago      time.Duration
		stage    int
		extended bool
		status   gatehouse.Status
	}{
		{0, 1, false, gatehouse.StatusPending},
		{time.Hour, 2, false, gatehouse.StatusPending},
		{2 * time.Hour, 2, true, gatehouse.StatusPending},
		{3 * time.Hour, 2, true, gatehouse.StatusExpired},
	} {
		a := s.pending(timing, born(c.ago))
		first := a.Approval.CreatedAt.Add(2 * time.Hour)
		check := func(how string, got *gatehouse.Action, status gatehouse.Status) {
			s.Helper()
			ap := got.Approval
			s.same(how+": stage", ap.Stage, c.stage)
			s.same(how+": extended", ap.Extended, c.extended)
			s.same(how+": status", got.Status, status)
			s.same(how+": end", ap.End(), first.Add(time.Hour))
			s.same(how+": frozen", ap.Frozen(), a.Approval.Frozen())
			s.same(how+": question", ap.Question(), a.Approval.Question())
			want := first
			if c.extended {
				want = first.Add(time.Hour)
			}
			s.same(how+": expires", ap.ExpiresAt, want)
			s.same(how+": until", ap.Stages[1].Until, want)
			s.same(how+": from", ap.Stages[1].From, ap.CreatedAt.Add(time.Hour))
		}
		check("found", s.find(a.ID), c.status)
		s.update(func(tx gatehouse.Tx) error {
			locked, err := tx.LockAction(a.ID)
			if err != nil {
				return err
			}
			check("locked", locked, gatehouse.StatusPending)
			return nil
		})
		page := s.list(gatehouse.ActionFilter{Status: c.status})
		if len(page) == 0 || page[0] != a.ID {
			s.Errorf("%s ago: the list of %s has %v first, want %s", c.ago, c.status, page, a.ID)
		}
	}
	rejects := s.pending(timing, born(3*time.Hour), func(a *gatehouse.Action) {
		a.Approval.OnTimeout, a.Approval.ExtendBy = gatehouse.TimeoutReject, 0
	})
	got := s.find(rejects.ID)
	s.same(
		"rejected by time",
		[]string{string(got.Status), string(got.DecidedVia), string(got.Approval.Status)},
		[]string{"rejected", "policy", "expired"},
	)
	listed := s.list(gatehouse.ActionFilter{Status: gatehouse.StatusExpired})
	s.same("rejected by time, in the list of expired", slices.Contains(listed, rejects.ID), false)
	expired := s.pending(timing, born(3*time.Hour))
	listed = s.list(gatehouse.ActionFilter{Status: gatehouse.StatusRejected})
	s.same("rejected by time, in the list of rejected", listed, []string{rejects.ID})
	listed = s.list(gatehouse.ActionFilter{Status: gatehouse.StatusExpired})
	s.same("expired, in the list of expired", slices.Contains(listed, expired.ID), true)
}

// moments checks which actions ActionsWithDueMoments lists: those with a due Moment, such as a reminder or the next
// stage, that the log does not have yet.
func (s *suite) moments() {
	fresh := s.pending(timing)
	half := s.pending(timing, born(40*time.Minute))
	s.pending() // has no moment to record
	answered := s.pending(timing, born(90*time.Minute))
	s.update(func(tx gatehouse.Tx) error {
		return tx.MoveApproval(answered.Approval.ID, gatehouse.ApprovalCanceled)
	})
	old := s.pending(timing, born(90*time.Minute))
	dueMoments := func(want ...string) {
		s.Helper()
		check := func(refs []gatehouse.ActionRef, err error) error {
			var got []string
			for _, r := range refs {
				got = append(got, r.ID)
			}
			s.same("due, the earliest first", got, want)
			return err
		}
		s.viewQueues(func(q gatehouse.ReadQueues) error { return check(q.ActionsWithDueMoments(10)) })
		s.updateQueues(func(q gatehouse.Queues) error { return check(q.ActionsWithDueMoments(10)) })
	}
	dueMoments(old.ID, half.ID)
	next := old.Approval.NextMoment(2)
	s.update(func(tx gatehouse.Tx) error { return tx.SetMomentsDone(old.Approval.ID, 0, 2, next) })
	dueMoments(half.ID)
	s.same("moments done", s.find(old.ID).Approval.MomentsDone, 2)
	s.updateReturns(gatehouse.ErrConflict, "told by another", func(tx gatehouse.Tx) error {
		return tx.SetMomentsDone(old.Approval.ID, 0, 2, next)
	})
	s.updateReturns(gatehouse.ErrConflict, "a question that has its answer", func(tx gatehouse.Tx) error {
		return tx.SetMomentsDone(answered.Approval.ID, 0, 1, nil)
	})
	s.update(func(tx gatehouse.Tx) error { return tx.SetMomentsDone(half.Approval.ID, 0, 3, nil) })
	dueMoments()
	s.same("no moments done", s.find(fresh.ID).Approval.MomentsDone, 0)
}

// heldRejections checks rejections that take effect later.
func (s *suite) heldRejections() {
	hold := func(a *gatehouse.Action) { a.HoldFor = gatehouse.Duration(time.Hour) }
	a, over, undone := s.pending(timing, hold, born(40*time.Minute)), s.pending(hold), s.pending(hold)
	reject := func(a *gatehouse.Action, at time.Time) {
		s.update(func(tx gatehouse.Tx) error {
			if err := tx.PutVote(a.Approval.ID, vote("ana", gatehouse.Reject, at)); err != nil {
				return err
			}
			return tx.HoldRejection(a.Approval.ID, at.Add(time.Hour))
		})
	}
	now := s.now()
	reject(a, now)
	reject(over, now.Add(-time.Hour))
	reject(undone, now.Add(-time.Hour))
	s.update(func(tx gatehouse.Tx) error {
		return tx.MoveApproval(undone.Approval.ID, gatehouse.ApprovalCanceled)
	})
	check := func(refs []gatehouse.ActionRef, err error) error {
		s.same("take effect", refs, []gatehouse.ActionRef{{Tenant: tenant, ID: over.ID}})
		return err
	}
	s.viewQueues(func(q gatehouse.ReadQueues) error { return check(q.HeldRejections(10)) })
	s.updateQueues(func(q gatehouse.Queues) error { return check(q.HeldRejections(10)) })
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		due, err := q.ActionsWithDueMoments(10)
		s.same("a rejected question has no moments", len(due), 0)
		return err
	})

	shown := s.find(a.ID)
	s.same("within the hold", shown.Status, gatehouse.StatusPending)
	s.same("until", shown.Approval.RejectsAt.Equal(now.Add(time.Hour)), true)
	shown = s.find(over.ID)
	s.same("after the hold", shown.Status, gatehouse.StatusRejected)
	s.same("by", shown.DecidedBy, "ana")
	for _, f := range []gatehouse.ActionFilter{
		{Status: gatehouse.StatusPending}, {Sort: gatehouse.SortUrgency},
		{Status: gatehouse.StatusPending, Query: "price_change"},
	} {
		listed := s.list(f)
		s.same("within the hold, in the list of pending", slices.Contains(listed, a.ID), true)
		s.same("after the hold, in the list of pending", slices.Contains(listed, over.ID), false)
	}
	// A rejection whose hold and question have both ended is listed once.
	late := s.pending(timing, born(3*time.Hour), func(a *gatehouse.Action) {
		a.HoldFor, a.Approval.OnTimeout, a.Approval.ExtendBy = gatehouse.Duration(time.Hour), gatehouse.TimeoutReject, 0
	})
	reject(late, now.Add(-2*time.Hour))
	rejected := gatehouse.ActionFilter{Status: gatehouse.StatusRejected}
	s.same("in the list of rejected, before the sweep", s.list(rejected), []string{late.ID, over.ID})
	rejected.Limit = 1
	s.same("in the list of rejected, in pages of one", s.list(rejected), []string{late.ID, over.ID})
	s.update(func(tx gatehouse.Tx) error {
		locked, err := tx.LockAction(over.ID)
		s.same("as stored", locked.Status, gatehouse.StatusPending)
		return err
	})

	at := now.Add(-time.Hour)
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.MoveApproval(over.Approval.ID, gatehouse.ApprovalRejected); err != nil {
			return err
		}
		return tx.MoveAction(gatehouse.ActionMove{
			ID: over.ID, From: gatehouse.StatusPending, To: gatehouse.StatusRejected, DecidedBy: "ana",
			DecidedVia: gatehouse.ViaAPI, Decided: true, Finished: true, DecidedAt: at,
		})
	})
	s.same("decided when the vote came", s.find(over.ID).DecidedAt.Equal(at.Truncate(time.Microsecond)), true)
	s.updateReturns(gatehouse.ErrConflict, "a question that has its answer", func(tx gatehouse.Tx) error {
		return tx.HoldRejection(over.Approval.ID, now)
	})
}
