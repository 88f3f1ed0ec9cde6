package gate_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// said writes a comment and returns the code of its refusal.
func (w *world) said(ctx context.Context, id string, r gatehouse.CommentRequest) gatehouse.Code {
	_, err := w.gate.Comment(ctx, id, r)
	return gatehouse.CodeOf(err)
}

// TestConversation: people who may decide ask, the proposer answers, nobody else takes part, and the
// decision ends the conversation. Comments do not change the action's state.
func TestConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	other := w.principal("other", gatehouse.KindAgent, gatehouse.RoleProposer)
	auditor := w.principal("aud", gatehouse.KindPerson, gatehouse.RoleAuditor)
	a := w.propose(bot, nil)
	question := gatehouse.CommentRequest{Text: "why so much?", Kind: gatehouse.CommentQuestion}
	note := gatehouse.CommentRequest{Text: "looks right"}
	answer := gatehouse.CommentRequest{Text: "the supplier raised it", Answers: 1}

	w.wantCode("a question", w.said(ana, a.ID, question), "")
	w.wantCode("a comment", w.said(ben, a.ID, note), "")
	w.wantCode("a comment of an administrator", w.said(w.admin, a.ID, note), "")
	w.wantCode("another agent", w.said(other, a.ID, note), gatehouse.CodeNotFound)
	w.wantCode("an auditor", w.said(auditor, a.ID, note), gatehouse.CodeRoleRequired)
	w.wantCode("an approver's answer", w.said(ben, a.ID, answer), gatehouse.CodeRoleRequired)
	w.wantCode("the proposer's question", w.said(bot, a.ID, question), gatehouse.CodeRoleRequired)
	for what, r := range map[string]gatehouse.CommentRequest{
		"no text":                {},
		"spaces":                 {Text: " \n"},
		"too long":               {Text: strings.Repeat("x", gatehouse.MaxCommentBytes+1)},
		"no kind":                {Text: "x", Kind: "rant"},
		"an answer to a comment": {Text: "x", Answers: 2},
		"an answer to nothing":   {Text: "x", Answers: 9},
		"a question that answers": {
			Text: "x", Kind: gatehouse.CommentQuestion, Answers: 1,
		},
	} {
		w.wantCode(what, w.said(bot, a.ID, r), gatehouse.CodeInvalid)
	}

	got, err := w.gate.FindAction(bot, a.ID)
	if err != nil || len(got.OpenQuestions()) != 1 || got.Status != gatehouse.StatusPending || got.Digest != a.Digest {
		t.Fatalf("asked: %+v, %v", got, err)
	}
	w.wantCode("an answer", w.said(bot, a.ID, answer), "")
	w.wantCode("a second answer", w.said(bot, a.ID, answer), "")
	got, err = w.gate.FindAction(ana, a.ID)
	if err != nil || len(got.Comments) != 5 || len(got.OpenQuestions()) != 0 ||
		got.Approval.Conversation != (gatehouse.Conversation{Comments: 5, Answered: 1}) {
		t.Errorf("answered: %+v, %v", got.Approval, err)
	}
	if n := w.leaves(gatehouse.EventCommented); n != 5 {
		t.Errorf("%d entries", n)
	}
	if w.code(ben, a, gatehouse.Approve) != "" {
		t.Fatal("the action could not be approved")
	}
	w.wantCode("after the decision", w.said(ana, a.ID, note), gatehouse.CodeAlreadyDecided)
	if got, err = w.gate.FindAction(ana, a.ID); err != nil || len(got.Comments) != 5 {
		t.Errorf("the conversation of a decided action: %d comments, %v", len(got.Comments), err)
	}
	late := w.propose(bot, nil)
	w.clock.Advance(31 * 24 * time.Hour)
	w.wantCode("after the deadline", w.said(ana, late.ID, note), gatehouse.CodeExpired)
	w.targets.floor = gatehouse.L1
	allowed := w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType, p.RiskLevel = "note", 1 })
	if allowed.Status != gatehouse.StatusApproved {
		t.Fatalf("the note is %s", allowed.Status)
	}
	w.wantCode("an allowed action", w.said(w.admin, allowed.ID, note), gatehouse.CodeAlreadyDecided)
}

// TestCommentsAreBounded: an action takes 100 comments.
func TestCommentsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	a := w.propose(w.agent(), nil)
	for range gatehouse.MaxComments {
		w.wantCode("a comment", w.said(w.admin, a.ID, gatehouse.CommentRequest{Text: "x"}), "")
	}
	w.wantCode("one more", w.said(w.admin, a.ID, gatehouse.CommentRequest{Text: "x"}), gatehouse.CodeInvalid)
}

// TestWaitAsked: an open question ends the wait of a proposer that has not seen it, and the action is
// still pending. A caller that did not ask for questions continues to wait.
func TestWaitAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	wait := func(d time.Duration, seen int) (*gatehouse.Action, time.Duration) {
		t.Helper()
		began := time.Now()
		got, err := w.gate.WaitAsked(bot, a.ID, d, gatehouse.UntilDecided, seen)
		must(t, err)
		return got, time.Since(began)
	}
	type result struct {
		a    *gatehouse.Action
		took time.Duration
	}
	asked := make(chan result, 1)
	go func() {
		got, took := wait(time.Minute, 0)
		asked <- result{got, took}
	}()
	question := gatehouse.CommentRequest{Text: "why?", Kind: gatehouse.CommentQuestion}
	w.wantCode("a question", w.said(ana, a.ID, question), "")
	first := <-asked
	if first.took > 30*time.Second || first.a.Status != gatehouse.StatusPending || first.a.LastQuestion(0) != 1 {
		t.Errorf("after %s: %+v", first.took, first.a)
	}
	if got, took := wait(300*time.Millisecond, 1); took < 300*time.Millisecond || got.LastQuestion(1) != 1 {
		t.Errorf("a question that was seen ended the wait after %s", took)
	}
	began := time.Now()
	if _, err := w.gate.WaitAction(bot, a.ID, 300*time.Millisecond, gatehouse.UntilDecided); err != nil ||
		time.Since(began) < 300*time.Millisecond {
		t.Errorf("a wait without questions ended after %s, %v", time.Since(began), err)
	}
	w.wantCode("an answer", w.said(bot, a.ID, gatehouse.CommentRequest{Text: "so", Answers: 1}), "")
	if _, took := wait(300*time.Millisecond, 0); took < 300*time.Millisecond {
		t.Errorf("an answered question ended the wait after %s", took)
	}
}

// TestAssign: only people who may decide an action assign it, and only to such people. The others may
// still decide it.
func TestAssign(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	auditor := w.principal("aud", gatehouse.KindPerson, gatehouse.RoleAuditor)
	a := w.propose(bot, nil)
	assign := func(ctx context.Context, to string) gatehouse.Code {
		_, err := w.gate.Assign(ctx, a.ID, gatehouse.AssignRequest{Assignee: to})
		return gatehouse.CodeOf(err)
	}
	w.wantCode("to an approver", assign(ana, "Ben"), "")
	w.wantCode("again", assign(ana, "ben"), "")
	w.wantCode("to an agent", assign(ana, "bot"), gatehouse.CodeInvalid)
	w.wantCode("to an auditor", assign(ana, "aud"), gatehouse.CodeInvalid)
	w.wantCode("to nobody", assign(ana, "zoe"), gatehouse.CodeInvalid)
	w.wantCode("by the agent", assign(bot, "ben"), gatehouse.CodeSelfApproval)
	w.wantCode("by an auditor", assign(auditor, "ben"), gatehouse.CodeRoleRequired)
	page, err := w.gate.ListActions(ben, gatehouse.ActionFilter{Assignee: "ben"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Approval.Assignee.Name != "ben" {
		t.Errorf("ben's: %+v, %v", page.Items, err)
	}
	if n := w.leaves(gatehouse.EventAssigned); n != 1 {
		t.Errorf("%d entries", n)
	}
	w.wantCode("to nobody any more", assign(w.admin, ""), "")
	w.wantCode("back to ben", assign(w.admin, "ben"), "")
	w.wantCode("decided by another", w.code(ana, a, gatehouse.Approve), "")
	w.wantCode("after the decision", assign(ana, "ana"), gatehouse.CodeAlreadyDecided)
}

// TestSnooze: an item is hidden for one person, until its time, an answer, an assignment, or
// four hours before its deadline.
func TestSnooze(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	a := w.propose(bot, nil)
	snoozed := func(ctx context.Context) []gatehouse.Snooze {
		t.Helper()
		list, err := w.gate.Snoozes(ctx)
		must(t, err)
		return list
	}
	hide := func(d time.Duration) gatehouse.Code {
		return gatehouse.CodeOf(w.gate.SnoozeAction(ana, a.ID, w.clock.Now().Add(d)))
	}
	w.wantCode("in the past", hide(-time.Second), gatehouse.CodeInvalid)
	w.wantCode("too long", hide(gatehouse.MaxSnooze+time.Hour), gatehouse.CodeInvalid)
	w.wantCode("for a month", hide(30*24*time.Hour), "")
	list := snoozed(ana)
	if want := w.find(a.ID).Approval.End().Add(-gatehouse.SnoozeEnds); len(list) != 1 || !list[0].Until.Equal(want) {
		t.Fatalf("snoozed %+v, want until %s", list, want)
	}
	if len(snoozed(ben)) != 0 {
		t.Error("ben's inbox changed too")
	}
	if _, err := w.gate.Assign(ben, a.ID, gatehouse.AssignRequest{Assignee: "ana"}); err != nil || len(snoozed(ana)) != 0 {
		t.Errorf("assigned: %v, still snoozed", err)
	}
	w.wantCode("for an hour", hide(time.Hour), "")
	w.said(ben, a.ID, gatehouse.CommentRequest{Text: "why?", Kind: gatehouse.CommentQuestion})
	if len(snoozed(ana)) != 1 {
		t.Error("a question ended the snooze")
	}
	w.said(bot, a.ID, gatehouse.CommentRequest{Text: "so", Answers: 1})
	if len(snoozed(ana)) != 0 {
		t.Error("an answer did not end the snooze")
	}
	w.wantCode("again", hide(time.Hour), "")
	if err := w.gate.SnoozeAction(ana, a.ID, time.Time{}); err != nil || len(snoozed(ana)) != 0 {
		t.Errorf("taken back: %v", err)
	}
	w.wantCode("once more", hide(time.Hour), "")
	w.clock.Advance(time.Hour + time.Second)
	if len(snoozed(ana)) != 0 {
		t.Error("it did not come back at its time")
	}
	w.clock.Advance(w.find(a.ID).Approval.End().Sub(w.clock.Now()) - 3*time.Hour)
	w.wantCode("close to the deadline", hide(time.Hour), gatehouse.CodeInvalid)
}

// fullOfSnoozes is a store in which everyone has snoozed the maximum number of actions, including the action one.
type fullOfSnoozes struct {
	gatehouse.Store
	one string
}

type fullOfSnoozesTx struct {
	gatehouse.Tx
	one string
}

func (s *fullOfSnoozes) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	return s.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error { return fn(fullOfSnoozesTx{tx, s.one}) })
}

func (t fullOfSnoozesTx) ListSnoozes(string) ([]gatehouse.Snooze, error) {
	list := make([]gatehouse.Snooze, gatehouse.MaxSnoozes)
	list[7].ActionID = t.one
	return list, nil
}

// TestSnoozeIsMovedAtTheMaximum: at the maximum, a snooze gets another time, and no further action is snoozed.
func TestSnoozeIsMovedAtTheMaximum(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	one, other := w.propose(bot, nil), w.propose(bot, nil)
	g := gate.New(&fullOfSnoozes{w.store, one.ID}, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	until := w.clock.Now().Add(time.Hour)
	wantCode(t, g.SnoozeAction(ana, one.ID, until), "")
	wantCode(t, g.SnoozeAction(ana, other.ID, until), gatehouse.CodeInvalid)
}
