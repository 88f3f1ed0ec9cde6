package runs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (w *world) disable(names ...string) {
	w.Helper()
	off := true
	for _, name := range names {
		_, err := w.gate.UpdatePrincipal(w.as("admin"), name, gatehouse.PrincipalChange{Disabled: &off})
		w.must(err)
	}
}

// TestNobodyMayAnswerAStep: a step with a question that nobody may answer fails
// at once with the reason, and does not wait for the expiry.
func TestNobodyMayAnswerAStep(t *testing.T) { onBoth(t, testNobodyMayAnswerAStep) }

func testNobodyMayAnswerAStep(t *testing.T, w *world) {
	w.person("hand", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer, gatehouse.RoleWorker)
	w.apply("asking", `name: asking
steps:
  - {id: word, uses: worker.page}
  - {id: ask, uses: approval, with: {rationale: "shall we?"}}
`)
	w.apply("pair", `name: pair
steps:
  - {id: ask, uses: approval, two_person: true, with: {rationale: "shall we?"}}
`)
	w.apply("change", "name: change\nsteps:"+shopStep+"\n")
	refused := func(run *gatehouse.Run, step, want string) {
		t.Helper()
		run = w.status(run.ID, gatehouse.RunFailed)
		a := w.action(run, step)
		if a.Status != gatehouse.StatusDenied || a.Approval != nil || a.Policy.Reasons[0] != want {
			t.Errorf("the action is %s: %q, want %q", a.Status, a.Policy.Reasons, want)
		}
		s := run.StepOf(step)
		if s.Status != gatehouse.StepFailed || s.Failure == nil || s.Failure.Code != "denied" ||
			!strings.Contains(s.Failure.Detail, want) {
			t.Errorf("the step is %s: %+v", s.Status, s.Failure)
		}
	}
	run := w.start("asking", `{}`)
	w.complete("hand")
	w.must(w.decide(w.action(w.status(run.ID, gatehouse.RunWaitingApproval), "ask"), "ana", gatehouse.Approve))
	w.status(run.ID, gatehouse.RunSucceeded)

	w.disable("ana", "ben")
	run = w.start("asking", `{}`)
	w.complete("hand")
	refused(run, "ask",
		"nobody may answer: the policy asks 1 person (approver), and 0 may answer; admin is excluded as the sponsor; "+
			"1 is excluded for contributing to the content; 2 are disabled")
	refused(w.start("pair", `{}`), "ask",
		"too few people may answer: the step of the run asks 2 people (approver), and 1 may answer; "+
			"admin is excluded as the sponsor; 2 are disabled")
	w.disable("hand")
	refused(w.start("change", `{}`), "word", "nobody may answer: the policy asks 1 person (approver), and 0 may answer; "+
		"admin is excluded as the sponsor; 3 are disabled")
	if n := w.ledger.effects("X"); n != 0 {
		t.Errorf("%d effects", n)
	}
}

// TestNobodyMayAnswerAnAction proposes and revises an action that nobody may
// decide.
func TestNobodyMayAnswerAnAction(t *testing.T) { onBoth(t, testNobodyMayAnswerAnAction) }

func testNobodyMayAnswerAnAction(t *testing.T, w *world) {
	propose := func(key string) *gatehouse.Action {
		t.Helper()
		p := shopChange
		p.IdempotencyKey, p.OnBehalfOf = key, "admin"
		a, _, err := w.gate.Propose(w.as("bot"), &p)
		w.must(err)
		return a
	}
	first, second := propose("first"), propose("second")
	w.must(w.decide(first, "ana", gatehouse.Approve))
	w.disable("ana", "ben")
	const want = "nobody may answer: the policy asks 1 person (approver), and 0 may answer; " +
		"admin is excluded as the person on whose behalf it is proposed; 2 are disabled"
	denied := func(a *gatehouse.Action, want string) {
		t.Helper()
		a, err := w.gate.FindAction(w.as("admin"), a.ID)
		w.must(err)
		if a.Status != gatehouse.StatusDenied || a.Approval != nil || a.Policy.Reasons[0] != want {
			t.Errorf("it is %s: %q, want %q", a.Status, a.Policy.Reasons, want)
		}
	}
	third := propose("third")
	denied(third, want)
	if again := propose("third"); again.ID != third.ID {
		t.Errorf("the same key gives %s, then %s", third.ID, again.ID)
	}
	p := shopChange
	p.ProposedChange, p.OnBehalfOf = `{"price":"5"}`, "admin"
	revised, err := w.gate.Revise(w.as("bot"), second.ID, &p)
	w.must(err)
	denied(revised, want)
}

// TestLastAnswererLeaves disables and enables the last approver repeatedly;
// meanwhile each proposal either becomes a question or is denied.
func TestLastAnswererLeaves(t *testing.T) { onBoth(t, testLastAnswererLeaves) }

func testLastAnswererLeaves(t *testing.T, w *world) {
	w.disable("ben")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		for off := true; ; off = !off {
			if _, err := w.gate.UpdatePrincipal(w.as("admin"), "ana",
				gatehouse.PrincipalChange{Disabled: &off}); err != nil || ctx.Err() != nil {
				done <- err
				return
			}
		}
	}()
	seen := map[gatehouse.Status]int{}
	n := 0
	for end := time.Now().Add(30 * time.Second); n < 50 || len(seen) < 2 && time.Now().Before(end); n++ {
		p := shopChange
		p.OnBehalfOf = "admin"
		a, _, err := w.gate.Propose(w.as("bot"), &p)
		if err != nil {
			t.Error(err)
			break
		}
		seen[a.Status]++
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if seen[gatehouse.StatusPending]+seen[gatehouse.StatusDenied] != n || len(seen) != 2 {
		t.Errorf("they are %v", seen)
	}
}
