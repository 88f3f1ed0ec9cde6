package runs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

const letter = `name: letter
steps:
  - id: draft
    uses: transform
    with: {text: "${{ has(steps.review.rejection) ? steps.review.rejection.notes : 'first' }}", n: "${{ iteration }}"}
  - {id: parts, uses: transform, for_each: "[1, 2]", max_items: 2, with: {of: "${{ iteration }}",
      text: "${{ steps.draft.output.text }}"}}
  - id: review
    uses: approval
    with: {change: {text: "${{ steps.draft.output.text }}", parts: "${{ steps.parts.output }}"}}
    on_rejected: {repeat: draft, max: 2}
  - {id: after, uses: transform, with: "${{ steps.draft.output.n }}"}
output: {text: "${{ steps.draft.output.text }}", asked: "${{ steps.review.output.status }}",
  n: "${{ steps.after.output }}"}
`

// TestRejectionGoesBack: the steps up to the rejected one run again with the
// reviewer's notes, and the run continues with the first approval.
func TestRejectionGoesBack(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("letter", letter)
		run := w.status(w.start("letter", `{}`).ID, gatehouse.RunWaitingApproval)
		first := w.action(run, "review")
		w.must(w.decide(first, "ana", gatehouse.Reject))
		run = w.until(run.ID, "asking again", func(r *gatehouse.Run) bool {
			s := r.StepOf("review#2")
			return s != nil && s.Status == gatehouse.StepWaitingApproval
		})
		if s := run.StepOf("review"); s.Status != gatehouse.StepSucceeded || s.IdempotencyKey != "" ||
			!strings.Contains(string(s.Output), `"rejected"`) {
			t.Errorf("the rejected step is %+v", s)
		}
		second := w.action(run, "review#2")
		if second.ID == first.ID ||
			!second.ProposedChange.Equal(
				`{"parts":[{"of":2,"text":"seen by ana"},{"of":2,"text":"seen by ana"}],"text":"seen by ana"}`) {
			t.Errorf("asked again for %s", second.ProposedChange)
		}
		for name, want := range map[string]gatehouse.JSON{
			"iteration": "2", "previous_action": gatehouse.StringJSON(first.ID), "step": `"review#2"`,
		} {
			if got, _ := second.Context.Get(name); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		if got, _ := first.Context.Get("previous_action"); got != "" {
			t.Errorf("the first has one before: %s", got)
		}
		// The person who rejected the first may approve the second.
		w.must(w.decide(second, "ana", gatehouse.Approve))
		run = w.status(run.ID, gatehouse.RunSucceeded)
		if !run.Output.Equal(`{"asked":"applied","n":2,"text":"seen by ana"}`) {
			t.Errorf("output %s", run.Output)
		}
		if n := len(run.Steps); n != 3+2+3+2+1 {
			t.Errorf("%d steps: %s", n, describe(run))
		}
	})
}

// TestRejectedTooOften: the rejection after the last iteration fails the run,
// and a retry asks the last question again.
func TestRejectedTooOften(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("letter", letter)
		run := w.start("letter", `{}`)
		for _, key := range []string{"review", "review#2", "review#3"} {
			now := w.until(run.ID, "asking "+key, func(r *gatehouse.Run) bool {
				s := r.StepOf(key)
				return s != nil && s.Status == gatehouse.StepWaitingApproval
			})
			w.must(w.decide(w.action(now, key), "ana", gatehouse.Reject))
		}
		run = w.status(run.ID, gatehouse.RunFailed)
		if run.Failure.Code != "rejected" || !strings.Contains(run.Failure.Detail, "does not go back to draft again") ||
			run.StepOf("review#4") != nil {
			t.Errorf("%+v", run.Failure)
		}
		again, err := w.runs.RetryRun(w.as("admin"), run.ID)
		w.must(err)
		now := w.status(again.ID, gatehouse.RunWaitingApproval)
		if s := now.StepOf("draft#3"); s == nil || s.Status != gatehouse.StepSucceeded {
			t.Fatalf("the retry: %s", describe(now))
		}
		w.must(w.decide(w.action(now, "review#3"), "ben", gatehouse.Approve))
		w.status(again.ID, gatehouse.RunSucceeded)
	})
}

// TestRejectionContinues: the run continues with the rejection as its outcome.
// A run that does not continue after a rejection asks again under the same key.
func TestRejectionContinues(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		const source = `name: main
steps:
  - {id: ask, uses: approval, idempotency_key: "the question", on_rejected: ON, on_expired: continue}
  - {id: tell, uses: transform, with: {status: "${{ steps.ask.output.status }}",
      why: "${{ steps.ask.rejection.notes }}"}}
output: "${{ steps.tell.output }}"
`
		w.apply("main", strings.ReplaceAll(source, "ON", "continue"))
		run := w.status(w.start("main", `{}`).ID, gatehouse.RunWaitingApproval)
		w.must(w.decide(w.action(run, "ask"), "ana", gatehouse.Reject))
		run = w.status(run.ID, gatehouse.RunSucceeded)
		if !run.Output.Equal(`{"status":"rejected","why":"seen by ana"}`) {
			t.Errorf("output %s", run.Output)
		}
		// Another run that asks under the same key does not continue: it asks people again.
		w.apply("main",
			strings.ReplaceAll(strings.ReplaceAll(source, "on_rejected: ON, ", ""), "steps.ask.rejection.notes",
				"steps.ask.output.decided_by"))
		again := w.status(w.start("main", `{}`).ID, gatehouse.RunWaitingApproval)
		if a := w.action(again, "ask"); a.ID == w.action(run, "ask").ID || a.Status != gatehouse.StatusPending {
			t.Errorf("the rejected action was taken over: %s", describe(again))
		}
	})
}

// TestSameQuestionOfAnotherRun: an approval step whose question another run asks under the same key waits for the
// answer, and takes it over.
func TestSameQuestionOfAnotherRun(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("main", "name: main\nsteps:\n  - {id: ask, uses: approval, idempotency_key: the question, retry: {max: 0}}\n")
		first := w.status(w.start("main", `{}`).ID, gatehouse.RunWaitingApproval)
		second := w.until(w.start("main", `{}`).ID, "ended, or waiting for the first", func(r *gatehouse.Run) bool {
			return r.Status.Final() || r.StepOf("ask").Status == gatehouse.StepRetrying
		})
		w.must(w.decide(w.action(first, "ask"), "ana", gatehouse.Approve))
		w.status(first.ID, gatehouse.RunSucceeded)
		second = w.status(second.ID, gatehouse.RunSucceeded)
		if s := second.StepOf("ask"); s.ActionID != "" || !s.Output.Equal(w.status(first.ID, gatehouse.RunSucceeded).
			StepOf("ask").Output) {
			t.Errorf("the second run has not taken over the answer: %s", describe(second))
		}
	})
}

// TestRepeatsOnce: if the transaction that repeats the rejected steps is lost,
// nothing of it is stored, and several later wakes repeat them once.
func TestRepeatsOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("letter", letter)
		run := w.status(w.start("letter", `{}`).ID, gatehouse.RunWaitingApproval)
		w.stop()
		w.must(w.decide(w.action(run, "review"), "ana", gatehouse.Reject))
		lost := errors.New("lost before the commit")
		broken := runs.New(gate.New(&losing{w.store, lost}, nil, w.hub, gate.Config{}, nil), runs.Config{})
		if _, err := broken.Wake(w.Context()); !errors.Is(err, lost) {
			t.Fatalf("woken by a store that loses: %v", err)
		}
		if now := w.until(run.ID, "there", func(*gatehouse.Run) bool { return true }); now.StepOf("review#2") != nil ||
			now.StepOf("review").Status != gatehouse.StepWaitingApproval {
			t.Fatalf("half of it is stored: %s", describe(now))
		}
		for range 3 {
			_, err := w.runs.Wake(w.Context())
			w.must(err)
		}
		now := w.until(run.ID, "there", func(*gatehouse.Run) bool { return true })
		if now.StepOf("draft#2") == nil || now.StepOf("draft#3") != nil || len(now.Steps) != 4+2+3 {
			t.Errorf("repeated: %s", describe(now))
		}
	}, func(_ *runs.Config, c *runs.RuntimeConfig) { c.Poll = time.Minute })
}

// losing runs the closure and then drops the transaction, as if the server were
// killed before the commit.
type losing struct {
	gatehouse.Store
	err error
}

func (l *losing) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	return l.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return l.err
	})
}

func (l *losing) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return l.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		if err := fn(q); err != nil {
			return err
		}
		return l.err
	})
}
