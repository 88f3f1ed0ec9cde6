package storetest

import (
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// talk inserts comments on a pending action. Each insert also stores the counts of comments, open questions and
// answered questions.
func talk(tx gatehouse.Tx, a *gatehouse.Action, list ...gatehouse.Comment) error {
	var after gatehouse.Conversation
	for _, c := range list {
		after.Comments++
		switch c.Kind {
		case gatehouse.CommentQuestion:
			after.Asked++
		case gatehouse.CommentAnswer:
			after.Asked--
			after.Answered++
		}
		if err := tx.InsertComment(a.Approval.ID, &c, after); err != nil {
			return err
		}
	}
	return nil
}

// someTalk is a question with its answer, and another question.
func (s *suite) someTalk() []gatehouse.Comment {
	now := s.now()
	return []gatehouse.Comment{
		{Number: 1, Kind: gatehouse.CommentQuestion, Text: "why \u202e?", Author: "ana", AuthorID: "prn_ana", At: now},
		{Number: 2, Kind: gatehouse.CommentAnswer, Answers: 1, Text: "é\n", Author: "bot", AuthorID: "prn_bot", At: now},
		{Number: 3, Kind: gatehouse.CommentQuestion, Text: "and now?", Author: "ana", AuthorID: "prn_ana", At: now},
	}
}

func (s *suite) comments(a *gatehouse.Action) (list []gatehouse.Comment) {
	s.Helper()
	s.as(a.Tenant).view(func(tx gatehouse.ReadTx) (err error) { list, err = tx.ListComments(a.ID); return err })
	return list
}

// conversations: comments keep their order and bytes, belong to pending actions, never
// change, and go into the archive with their action.
func (s *suite) conversations() {
	a, p := s.queued()
	open := s.pending()
	list := s.someTalk()
	s.update(func(tx gatehouse.Tx) error { return talk(tx, open, list...) })
	s.same("comments", s.comments(open), list)
	counts := gatehouse.Conversation{Comments: 3, Asked: 1, Answered: 1}
	s.same("counts", s.find(open.ID).Approval.Conversation, counts)
	s.same("comments of another action", len(s.comments(a)), 0)
	for what, write := range map[string]func(tx gatehouse.Tx) error{
		"a number again": func(tx gatehouse.Tx) error { return tx.InsertComment(open.Approval.ID, &list[2], counts) },
		"a comment on a decided action": func(tx gatehouse.Tx) error {
			return tx.InsertComment(a.Approval.ID, &list[0], gatehouse.Conversation{Comments: 1, Asked: 1})
		},
		"an assignment of a decided action": func(tx gatehouse.Tx) error {
			return tx.SetAssignee(a.Approval.ID, &gatehouse.Assignee{ID: "prn_ana", Name: "ana"})
		},
		"a snooze of a decided action": func(tx gatehouse.Tx) error {
			return tx.PutSnooze("prn_ana", a.Approval.ID, tx.Now().Add(time.Hour))
		},
	} {
		if err := s.store.Update(s.Context(), tenant, write); !errors.Is(err, gatehouse.ErrConflict) {
			s.Errorf("%s: %v", what, err)
		}
	}
	s.same("comments after it all", s.comments(open), list)

	s.update(func(tx gatehouse.Tx) error {
		return tx.SetAssignee(open.Approval.ID, &gatehouse.Assignee{ID: "prn_ana", Name: "ana"})
	})
	s.same("assignee", s.find(open.ID).Approval.Assignee, &gatehouse.Assignee{ID: "prn_ana", Name: "ana"})
	for who, want := range map[string]int{"ana": 1, "prn_ana": 1, "bo": 0} {
		for _, sort := range []gatehouse.Sort{gatehouse.SortNewest, gatehouse.SortUrgency} {
			s.view(func(tx gatehouse.ReadTx) error {
				page, err := tx.ListActions(gatehouse.ActionFilter{Assignee: who, Sort: sort})
				s.same("assigned to "+who, len(page.Items), want)
				return err
			})
		}
	}
	s.update(func(tx gatehouse.Tx) error { return tx.SetAssignee(open.Approval.ID, nil) })
	s.same("no assignee", s.find(open.ID).Approval.Assignee, (*gatehouse.Assignee)(nil))

	s.archiveTalk(a, p)
}

// archiveTalk archives an action with comments, which were written while it was pending.
func (s *suite) archiveTalk(decided *gatehouse.Action, p *gatehouse.Push) {
	s.Helper()
	s.settle(decided, p)
	said, list := s.pending(), s.someTalk()
	s.update(func(tx gatehouse.Tx) error {
		m := move(said, gatehouse.StatusPending, gatehouse.StatusRejected)
		return errors.Join(
			talk(tx, said, list...),
			tx.PutSnooze("prn_ana", said.Approval.ID, tx.Now().Add(time.Hour)),
			tx.MoveApproval(said.Approval.ID, gatehouse.ApprovalRejected), tx.MoveAction(m),
		)
	})
	s.same("archived", len(s.archive(s.later())), 2)
	s.same("comments of the archived action", s.find(said.ID).Comments, list)
	s.same("comments in the table", len(s.comments(said)), 0)
}

// snoozes belong to one person, and end at their time, with the action, or on request.
func (s *suite) snoozes() {
	a, b := s.pending(), s.pending()
	now := s.now()
	put := func(who string, a *gatehouse.Action, until time.Time) {
		s.Helper()
		s.update(func(tx gatehouse.Tx) error { return tx.PutSnooze(who, a.Approval.ID, until) })
	}
	of := func(in, who string) (list []gatehouse.Snooze) {
		s.Helper()
		s.as(in).view(func(tx gatehouse.ReadTx) (err error) { list, err = tx.ListSnoozes(who); return err })
		return list
	}
	hour, day := now.Add(time.Hour), now.Add(24*time.Hour)
	put("ana", a, day)
	put("ana", a, hour)
	put("ana", b, day)
	put("bo", a, day)
	s.same("ana's", of(tenant, "ana"), []gatehouse.Snooze{{ActionID: a.ID, Until: hour}, {ActionID: b.ID, Until: day}})
	s.same("bo's", of(tenant, "bo"), []gatehouse.Snooze{{ActionID: a.ID, Until: day}})
	s.same("in another tenant", len(of("acme", "ana")), 0)
	put("bo", b, now.Add(-time.Second))
	s.same("over", len(of(tenant, "bo")), 1)
	s.update(func(tx gatehouse.Tx) error { return tx.EndSnoozes("ana", a.Approval.ID) })
	s.same("ended", of(tenant, "ana"), []gatehouse.Snooze{{ActionID: b.ID, Until: day}})
	s.same("still bo's", len(of(tenant, "bo")), 1)
	s.update(func(tx gatehouse.Tx) error { return tx.EndSnoozes("", a.Approval.ID) })
	s.same("ended for all", len(of(tenant, "bo")), 0)
	s.update(func(tx gatehouse.Tx) error {
		return errors.Join(tx.MoveApproval(b.Approval.ID, gatehouse.ApprovalCanceled),
			tx.MoveAction(move(b, gatehouse.StatusPending, gatehouse.StatusCanceled)))
	})
	s.same("of a canceled action", len(of(tenant, "ana")), 0)
}

// conversationWalls: another tenant sees no part of a conversation.
func (s *suite) conversationWalls() {
	const other = "acme"
	s.as(other).update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: other, CreatedAt: tx.Now()})
	})
	a := s.pending()
	list := s.someTalk()
	s.update(func(tx gatehouse.Tx) error {
		return errors.Join(talk(tx, a, list...), tx.PutSnooze("ana", a.Approval.ID, tx.Now().Add(time.Hour)))
	})
	before := s.find(a.ID)
	next := &gatehouse.Comment{
		Number: 4, Kind: gatehouse.CommentNote, Text: "x", Author: "eve", AuthorID: "eve", At: s.now(),
	}
	for what, write := range map[string]func(tx gatehouse.Tx) error{
		"InsertComment": func(tx gatehouse.Tx) error {
			return tx.InsertComment(a.Approval.ID, next, gatehouse.Conversation{Comments: 4, Asked: 1, Answered: 1})
		},
		"SetAssignee": func(tx gatehouse.Tx) error {
			return tx.SetAssignee(a.Approval.ID, &gatehouse.Assignee{ID: "eve", Name: "eve"})
		},
		"PutSnooze": func(tx gatehouse.Tx) error {
			return tx.PutSnooze("ana", a.Approval.ID, tx.Now().Add(2*time.Hour))
		},
	} {
		err := s.store.Update(s.Context(), other, write)
		if !errors.Is(err, gatehouse.ErrNotFound) && !errors.Is(err, gatehouse.ErrConflict) {
			s.Errorf("%s on another tenant's row: %v", what, err)
		}
	}
	s.as(other).update(func(tx gatehouse.Tx) error { return tx.EndSnoozes("", a.Approval.ID) })
	s.as(other).view(func(tx gatehouse.ReadTx) error {
		said, err := tx.ListComments(a.ID)
		s.same("comments of another tenant", len(said), 0)
		hidden, e := tx.ListSnoozes("ana")
		s.same("snoozes of another tenant", len(hidden), 0)
		return errors.Join(err, e)
	})
	s.same("after it all", s.find(a.ID), before)
	s.same("comments after it all", s.comments(a), list)
	s.view(func(tx gatehouse.ReadTx) error {
		hidden, err := tx.ListSnoozes("ana")
		s.same("snoozes after it all", len(hidden), 1)
		return err
	})
}
