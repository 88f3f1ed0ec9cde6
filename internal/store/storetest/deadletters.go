package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// deadIn brings a push to failed or unknown, and marks it as a dead letter with the given effect. The action stays
// approved.
func (s *suite) deadIn(status gatehouse.PushStatus, effect gatehouse.Hash) *gatehouse.Push {
	s.Helper()
	p := s.pushIn(status)
	p.ErrorCode = "http_503"
	ended := s.now()
	p.FinishedAt, p.LeaseUntil = &ended, nil
	s.update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, status, p.Generation) })
	p.TargetSays = "closed for stocktaking"
	s.update(func(tx gatehouse.Tx) error { return tx.MarkDeadLetter(p, effect) })
	return p
}

func (s *suite) deadLetters() {
	effect, other := gatehouse.Hash{1}, gatehouse.Hash{2}
	failed := s.deadIn(gatehouse.PushFailed, effect)
	unknown := s.deadIn(gatehouse.PushUnknown, other)
	for _, status := range []gatehouse.PushStatus{gatehouse.PushQueued, gatehouse.PushSent, gatehouse.PushApplied,
		gatehouse.PushCanceled} {
		p := s.pushIn(status)
		s.updateReturns(
			gatehouse.ErrConflict,
			"marked as a dead letter: "+string(status),
			func(tx gatehouse.Tx) error { return tx.MarkDeadLetter(p, effect) },
		)
		s.updateReturns(
			gatehouse.ErrConflict,
			"closed: "+string(status),
			func(tx gatehouse.Tx) error { return tx.ClosePush(p.ID, "oz", "over") },
		)
	}
	s.updateReturns(gatehouse.ErrConflict, "an old generation is marked", func(tx gatehouse.Tx) error {
		q := *failed
		q.Generation--
		return tx.MarkDeadLetter(&q, effect)
	})
	s.updateReturns(
		gatehouse.ErrConflict,
		"an unknown outcome is closed",
		func(tx gatehouse.Tx) error { return tx.ClosePush(unknown.ID, "oz", "over") },
	)
	s.as("acme").
		updateReturns(gatehouse.ErrConflict, "closed by another tenant",
			func(tx gatehouse.Tx) error { return tx.ClosePush(failed.ID, "oz", "over") })
	s.same("marked", s.findPush(failed.ID), failed)

	list := func(f gatehouse.PushFilter) (got []string) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) error {
			got = nil
			for {
				page, err := tx.ListPushes(f)
				if err != nil {
					return err
				}
				for _, p := range page.Items {
					got = append(got, p.ID)
				}
				if f.Cursor = page.NextCursor; f.Cursor == "" {
					return nil
				}
			}
		})
		slices.Sort(got)
		return got
	}
	both := []string{failed.ID, unknown.ID}
	slices.Sort(both)
	later := failed.FinishedAt.Add(time.Hour)
	for _, c := range []struct {
		name string
		f    gatehouse.PushFilter
		want []string
	}{
		{"all", gatehouse.PushFilter{DeadLetters: true}, both},
		{"a page each", gatehouse.PushFilter{DeadLetters: true, Limit: 1}, both},
		{"of the connector", gatehouse.PushFilter{DeadLetters: true, Connector: failed.Connector}, both},
		{"of another connector", gatehouse.PushFilter{DeadLetters: true, Connector: "none"}, nil},
		{"of the code", gatehouse.PushFilter{DeadLetters: true, Code: "http_503", Limit: 1}, both},
		{"of another code", gatehouse.PushFilter{DeadLetters: true, Code: "http_404"}, nil},
		{"since then", gatehouse.PushFilter{DeadLetters: true, Since: *failed.FinishedAt, Status: gatehouse.PushFailed},
			[]string{failed.ID}},
		{"since later", gatehouse.PushFilter{DeadLetters: true, Since: later}, nil},
	} {
		s.same(c.name, list(c.f), c.want)
	}
	s.view(func(tx gatehouse.ReadTx) error {
		page, err := tx.ListPushes(gatehouse.PushFilter{DeadLetters: true, Limit: 1})
		if err != nil {
			return err
		}
		if _, err := tx.ListPushes(gatehouse.PushFilter{Cursor: page.NextCursor}); gatehouse.CodeOf(
			err,
		) != gatehouse.CodeInvalid {
			s.Errorf("a cursor of another filter: error %v", err)
		}
		return nil
	})
	check := func(when string, want int, found, lost string) {
		s.Helper()
		s.viewQueues(func(q gatehouse.ReadQueues) error {
			n, err := q.CountAllDeadLetters()
			s.same(when+": count of all tenants", n, want)
			return err
		})
		s.same(when+": another tenant's action with the effect", s.as("acme").deadLetterOf(effect), "")
		s.same(when+": the action with the effect", s.deadLetterOf(effect), found)
		s.same(when+": the action with the other effect", s.deadLetterOf(other), lost)
	}
	check("open", 2, failed.ActionID, unknown.ActionID)

	s.update(func(tx gatehouse.Tx) error { return tx.ClosePush(failed.ID, "oz", "not needed any more") })
	got := s.findPush(failed.ID)
	if got.ClosedAt == nil || got.ClosedBy != "oz" || got.ClosedReason != "not needed any more" ||
		got.Status != gatehouse.PushFailed || got.DeadLetter() {
		s.Errorf("closed: %+v", got)
	}
	check("closed", 1, "", unknown.ActionID)
	s.same("the list without it", list(gatehouse.PushFilter{DeadLetters: true}), []string{unknown.ID})
	s.same("it is still failed", list(gatehouse.PushFilter{Status: gatehouse.PushFailed}), []string{failed.ID})
	s.updateReturns(
		gatehouse.ErrConflict,
		"closed again",
		func(tx gatehouse.Tx) error { return tx.ClosePush(failed.ID, "oz", "once more") },
	)
	q := *got
	q.Status = gatehouse.PushQueued
	if err := s.store.Update(context.Background(), q.Tenant,
		func(tx gatehouse.Tx) error { return tx.UpdatePush(&q, gatehouse.PushFailed, q.Generation) }); err == nil {
		s.Error("a closed push went back to the queue")
	}
	s.same("after refusals", s.findPush(failed.ID), got)

	// A replayed push is not a dead letter, and its TargetSays is cleared.
	unknown.Status, unknown.FinishedAt = gatehouse.PushQueued, nil
	s.update(func(tx gatehouse.Tx) error { return tx.UpdatePush(unknown, gatehouse.PushUnknown, unknown.Generation) })
	check("replayed", 0, "", "")
	if p := s.findPush(unknown.ID); p.TargetSays != "" {
		s.Errorf("a queued push has TargetSays %q", p.TargetSays)
	}
}

// replayFromUnknown: the action is approved again and has no finish time.
func (s *suite) replayFromUnknown() {
	a := s.in(gatehouse.StatusPushing)
	for _, m := range []gatehouse.ActionMove{
		{From: gatehouse.StatusPushing, To: gatehouse.StatusUnknown, Finished: true},
		{From: gatehouse.StatusUnknown, To: gatehouse.StatusApproved},
	} {
		m.ID = a.ID
		s.update(func(tx gatehouse.Tx) error { return tx.MoveAction(m) })
	}
	if got := s.find(a.ID); got.Status != gatehouse.StatusApproved || got.FinishedAt != nil {
		s.Errorf("replayed: %s, finished at %v", got.Status, got.FinishedAt)
	}
}

func (s *suite) deadLetterOf(effect gatehouse.Hash) (action string) {
	s.Helper()
	s.update(func(tx gatehouse.Tx) error {
		o, err := tx.OpenProposal(gatehouse.ProposalQuery{Effect: effect})
		if err == nil {
			action = o.DeadLetter
		}
		return err
	})
	return action
}
