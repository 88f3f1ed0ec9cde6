package gate_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const held = 10 * time.Second

// newHoldingWorld returns a world where decisions are held.
func newHoldingWorld(t *testing.T, source string) *world {
	t.Helper()
	return newWorldWith(t, source, func(c *appConfig) {
		hold := held
		c.Hold = &hold
	})
}

func holdRejection(a *gatehouse.Action) gatehouse.Decision {
	return gatehouse.Decision{Decision: gatehouse.Reject, Notes: "too high", Digest: a.Digest, Hold: true}
}

func (w *world) mustDecide(who context.Context, a *gatehouse.Action, d gatehouse.Decision) *gatehouse.Answer {
	w.t.Helper()
	got, err := w.gate.Decide(who, a.ID, d)
	must(w.t, err)
	return got
}

// wantUndone checks the old action and its revision after an undo, and returns the
// revision.
func (w *world) wantUndone(old *gatehouse.Action, got *gatehouse.UndoAnswer, err error) *gatehouse.Action {
	w.t.Helper()
	if err != nil || got.Code != gatehouse.Undone {
		w.t.Fatalf("%+v, %v", got, err)
	}
	was, now := w.find(old.ID), w.find(got.Action.ID)
	if was.Status != gatehouse.StatusSuperseded || was.Superseded != now.ID {
		w.t.Errorf("the old action is %s, superseded by %q", was.Status, was.Superseded)
	}
	if now.Status != gatehouse.StatusPending || now.Revision != old.Revision+1 || now.Supersedes != old.ID ||
		now.ProposedBy != old.ProposedBy || now.ProposedChange != old.ProposedChange || now.RebasedBy != "" ||
		now.Approval.Required != old.Approval.Required || len(now.Approval.Votes) != 0 {
		w.t.Errorf("the revision is %+v, with %+v", now, now.Approval)
	}
	return now
}

// data returns the data of an action's log entry of a type; "" for none.
func (w *world) data(id, event string) gatehouse.JSON {
	for _, l := range w.entries() {
		if l.ActionID == id && l.Type == event {
			return l.Data
		}
	}
	return ""
}

func TestUndoOfAnApproval(t *testing.T) {
	t.Parallel()
	w := newHoldingWorld(t, "")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	a := w.propose(bot, nil)
	w.mustDecide(ana, a, approve(a))

	got, err := w.gate.Undo(ben, a.ID)
	next := w.wantUndone(a, got, err)
	if next.UndoneBy != "ben" {
		t.Errorf("undone by %q", next.UndoneBy)
	}
	was := w.find(a.ID)
	if was.Push.Status != gatehouse.PushCanceled || was.Approval.Status != gatehouse.ApprovalApproved {
		t.Errorf("the push is %s, the approval %s", was.Push.Status, was.Approval.Status)
	}
	if d := w.data(a.ID, "hitl.superseded"); !strings.Contains(string(d), `"decided_by":"ana"`) {
		t.Errorf("the log says %s", d)
	}
	again, err := w.gate.Undo(ana, a.ID)
	if err != nil || again.Code != gatehouse.AlreadyUndone || again.Action.ID != next.ID {
		t.Errorf("a second undo: %+v, %v", again, err)
	}
	// The old revision cannot be decided again. The new one can be approved, and that approval cannot
	// be undone after its hold.
	if _, err := w.gate.Decide(ana, a.ID, approve(a)); gatehouse.CodeOf(err) != gatehouse.CodeAlreadyDecided {
		t.Errorf("the old revision: %v", err)
	}
	w.mustDecide(ana, next, approve(next))
	w.clock.Advance(held)
	if _, err := w.gate.Undo(ana, next.ID); gatehouse.CodeOf(err) != gatehouse.CodeTooLate {
		t.Errorf("after the hold: %v", err)
	}
	w.wantStatus("after the hold", w.find(next.ID), gatehouse.StatusApproved)
}

func TestUndoOfARejection(t *testing.T) {
	t.Parallel()
	w := newHoldingWorld(t, "")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	a := w.propose(bot, nil)
	got := w.mustDecide(ana, a, holdRejection(a))
	if got.Code != gatehouse.Decided || got.Action.Approval.RejectsAt == nil {
		t.Fatalf("%+v of %+v", got, got.Action.Approval)
	}
	w.sweep()
	w.wantStatus("within the hold", w.find(a.ID), gatehouse.StatusPending)
	if d := w.data(a.ID, "hitl.rejected"); d != "" {
		t.Errorf("the log has the rejection already: %s", d)
	}

	// To everybody else the action is decided.
	for what, err := range map[string]error{
		"an approval": errorOf(w.gate.Decide(ben, a.ID, approve(a))),
		"a revision":  errorOf(w.gate.Revise(bot, a.ID, proposal(nil))),
	} {
		if gatehouse.CodeOf(err) != gatehouse.CodeAlreadyDecided || !strings.Contains(err.Error(), "ana has rejected it") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if again := w.mustDecide(ana, a, holdRejection(a)); again.Code != gatehouse.AlreadyRejected || !again.Replayed {
		t.Errorf("the same rejection again: %+v", again)
	}

	undo, err := w.gate.Undo(ana, a.ID)
	next := w.wantUndone(a, undo, err)
	w.clock.Advance(held)
	w.sweep()
	w.wantStatus("the old revision", w.find(a.ID), gatehouse.StatusSuperseded)
	w.wantStatus("the revision", w.find(next.ID), gatehouse.StatusPending)
}

func errorOf[T any](_ T, err error) error { return err }

func TestAHeldRejectionTakesEffect(t *testing.T) {
	t.Parallel()
	w := newHoldingWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	at := w.clock.Now()
	w.mustDecide(ana, a, holdRejection(a))
	w.clock.Advance(held)

	// Reads show the rejection before the sweeper has stored it.
	shown := w.find(a.ID)
	w.wantStatus("after the hold", shown, gatehouse.StatusRejected)
	if shown.DecidedBy != "ana" || !shown.DecidedAt.Equal(at) || shown.Approval.RejectsAt != nil {
		t.Errorf("shown: by %s at %s", shown.DecidedBy, shown.DecidedAt)
	}
	if _, err := w.gate.Undo(ana, a.ID); gatehouse.CodeOf(err) != gatehouse.CodeTooLate {
		t.Errorf("an undo: %v", err)
	}
	w.sweep()
	stored := w.find(a.ID)
	if stored.Status != gatehouse.StatusRejected || stored.DecidedBy != "ana" || !stored.DecidedAt.Equal(at) ||
		stored.Approval.Status != gatehouse.ApprovalRejected || stored.FinishedAt == nil {
		t.Errorf("stored: %+v", stored)
	}
	if d := w.data(a.ID, "hitl.rejected"); !strings.Contains(string(d), `"notes":"too high"`) {
		t.Errorf("the log says %s", d)
	}
	w.sweep()
}

// TestAHeldRejectionEndsWithItsQuestion: the hold ends with the question at the
// latest, and the action is then rejected, not expired.
func TestAHeldRejectionEndsWithItsQuestion(t *testing.T) {
	t.Parallel()
	w := newHoldingWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	w.clock.Advance(a.Approval.End().Sub(w.clock.Now()) - time.Second)
	got := w.mustDecide(ana, a, holdRejection(a))
	if !got.Action.Approval.RejectsAt.Equal(a.Approval.End()) {
		t.Errorf("the hold ends at %s, and the question at %s", got.Action.Approval.RejectsAt, a.Approval.End())
	}
	w.clock.Advance(time.Second)
	w.wantStatus("shown", w.find(a.ID), gatehouse.StatusRejected)
	if _, err := w.gate.SweepExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantStatus("stored", w.find(a.ID), gatehouse.StatusRejected)
}

func TestARejectionWithoutHoldTakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*world{"not asked for": newHoldingWorld(t, ""), "not configured": newWorld(t, "")} {
		a, ana := w.propose(w.agent(), nil), w.person("ana")
		d := holdRejection(a)
		d.Hold = name == "not configured"
		w.mustDecide(ana, a, d)
		w.wantStatus(name, w.find(a.ID), gatehouse.StatusRejected)
		if _, err := w.gate.Undo(ana, a.ID); gatehouse.CodeOf(err) != gatehouse.CodeTooLate {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhoMayUndo(t *testing.T) {
	t.Parallel()
	w := newHoldingWorld(t, asksInStages)
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	w.group("finance", "ana")
	w.group("managers", "ben")
	ana, ben = w.again(ana), w.again(ben)
	a := w.propose(bot, nil)
	if _, err := w.gate.Undo(ana, a.ID); gatehouse.CodeOf(err) != gatehouse.CodeTooLate {
		t.Errorf("before a decision: %v", err)
	}
	w.mustDecide(ana, a, approve(a))
	for name, who := range map[string]context.Context{"the agent": bot, "a person who is not asked": ben} {
		if _, err := w.gate.Undo(who, a.ID); gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.wantStatus("after refusals", w.find(a.ID), gatehouse.StatusApproved)
	got, err := w.gate.Undo(ana, a.ID)
	w.wantUndone(a, got, err)
}

func TestUndoReleasesCeilingClaims(t *testing.T) {
	t.Parallel()
	w := newHoldingWorld(t, `version: 1
risk: {price_change: 3}
ceilings:
  - {name: daily, when: 'action.type == "price_change"', per: tenant, window: 24h, count: 1}
`)
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	w.mustDecide(ana, a, approve(a))
	got, err := w.gate.Undo(ana, a.ID)
	next := w.wantUndone(a, got, err)
	w.mustDecide(ana, next, approve(next))
}

// TestUndoUnderAnotherPolicy: the active policy judges the revision, and can deny it.
func TestUndoUnderAnotherPolicy(t *testing.T) {
	t.Parallel()
	w := newHoldingWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	w.mustDecide(ana, a, approve(a))
	_, err := w.gate.ApplyPolicy(w.admin,
		"version: 1\nrules:\n  - {id: stop, when: \"true\", then: deny, reason: frozen}\n")
	must(t, err)
	got, err := w.gate.Undo(ana, a.ID)
	if err != nil || got.Action.Status != gatehouse.StatusDenied || got.Action.UndoneBy != "ana" {
		t.Fatalf("%+v, %v", got, err)
	}
	w.wantStatus("the old action", w.find(a.ID), gatehouse.StatusSuperseded)
}

// TestUndosAtOnce: of concurrent undos, one makes the revision, and all return it.
func TestUndosAtOnce(t *testing.T) {
	t.Parallel()
	for _, decision := range []func(*gatehouse.Action) gatehouse.Decision{approve, holdRejection} {
		w := newHoldingWorld(t, "")
		bot, ana := w.agent(), w.person("ana")
		a := w.propose(bot, nil)
		w.mustDecide(ana, a, decision(a))
		var wg sync.WaitGroup
		var codes [4]string
		var next [4]string
		for i := range codes {
			wg.Go(func() {
				got, err := w.gate.Undo(ana, a.ID)
				if err != nil {
					t.Error(err)
					return
				}
				codes[i], next[i] = got.Code, got.Action.ID
			})
		}
		wg.Wait()
		made := 0
		for i := range codes {
			if codes[i] == gatehouse.Undone {
				made++
			}
			if next[i] != next[0] {
				t.Errorf("%v, %v", codes, next)
			}
		}
		if made != 1 {
			t.Errorf("%v", codes)
		}
	}
}
