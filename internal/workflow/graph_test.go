package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// drawGraph makes a workflow in random file order whose steps need random
// earlier steps.
func drawGraph(t *rapid.T) *workflow.Definition {
	n := rapid.IntRange(1, 12).Draw(t, "steps")
	order := rapid.Permutation(ints(n)).Draw(t, "order")
	lines := make([]string, n)
	for place, i := range order {
		var needs []string
		for _, before := range order[:place] {
			if rapid.IntRange(0, 2).Draw(t, "need") == 0 {
				needs = append(needs, fmt.Sprintf("s%d", before))
			}
		}
		lines[i] = fmt.Sprintf("- {id: s%d, uses: worker.x, needs: [%s]}", i, strings.Join(needs, ", "))
	}
	d, err := workflow.Parse([]byte(steps(lines...)))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return d
}

func ints(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// TestReady: no step is ready before its needs have succeeded. A run whose
// steps all succeed ends as succeeded. After a failed step, everything that
// needs it stays blocked and the run fails.
func TestReady(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawGraph(t)
		var list []*gatehouse.Step
		byID := make(map[string]*gatehouse.Step)
		for _, s := range d.Steps {
			byID[s.ID] = &gatehouse.Step{Key: s.ID, Status: gatehouse.StepBlocked}
			list = append(list, byID[s.ID])
		}
		state := func(id string) gatehouse.StepStatus { return byID[id].Status }
		failing := rapid.SampledFrom(append([]string{""}, keysOf(d)...)).Draw(t, "failing")
		for {
			ready := d.Ready(state)
			for _, id := range ready {
				for _, need := range d.Step(id).Needs {
					if state(need) != gatehouse.StepSucceeded {
						t.Fatalf("%s is ready, and %s is %s", id, need, state(need))
					}
				}
				byID[id].Status = gatehouse.StepReady
			}
			if again := d.Ready(state); len(again) > 0 {
				t.Fatalf("%v are ready twice", again)
			}
			var open []*gatehouse.Step
			for _, s := range list {
				if s.Status == gatehouse.StepReady {
					open = append(open, s)
				}
			}
			if len(open) == 0 {
				break
			}
			one := rapid.SampledFrom(open).Draw(t, "next")
			one.Status = gatehouse.StepSucceeded
			if one.Key == failing {
				one.Status = gatehouse.StepFailed
			}
		}
		got := gatehouse.StatusOfSteps(list, "")
		if want := gatehouse.RunSucceeded; failing == "" && got != want {
			t.Fatalf("%s, not %s", got, want)
		}
		if failing == "" {
			return
		}
		if got != gatehouse.RunFailed {
			t.Fatalf("%s though %s failed", got, failing)
		}
		for _, s := range d.Steps {
			if slices.Contains(s.Needs, failing) && state(s.ID) != gatehouse.StepBlocked {
				t.Fatalf("%s needs the failed %s and is %s", s.ID, failing, state(s.ID))
			}
		}
	})
}

func keysOf(d *workflow.Definition) []string {
	var ids []string
	for _, s := range d.Steps {
		ids = append(ids, s.ID)
	}
	return ids
}

// TestLayers: every step appears once, below all steps that it needs.
func TestLayers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawGraph(t)
		row := make(map[string]int)
		for i, layer := range d.Layers() {
			for _, s := range layer {
				if _, twice := row[s.ID]; twice {
					t.Fatalf("%s appears twice", s.ID)
				}
				row[s.ID] = i
			}
		}
		if len(row) != len(d.Steps) {
			t.Fatalf("%d of %d steps", len(row), len(d.Steps))
		}
		for _, s := range d.Steps {
			for _, need := range s.Needs {
				if row[need] >= row[s.ID] {
					t.Fatalf("%s is in row %d, and needs %s in row %d", s.ID, row[s.ID], need, row[need])
				}
			}
		}
	})
}

// TestCycle: every cycle is refused.
func TestCycle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 10).Draw(t, "steps")
		lines := make([]string, n)
		for i := range lines {
			lines[i] = fmt.Sprintf("- {id: s%d, uses: worker.x, needs: [s%d]}", i, (i+1)%n)
		}
		lines = rapid.Permutation(lines).Draw(t, "order")
		_, err := workflow.Parse([]byte(steps(lines...)))
		if err == nil || !strings.Contains(err.Error(), "in a cycle") {
			t.Fatalf("%v", err)
		}
	})
}

// TestSimulation: whatever the graph, a run succeeds with every step, unless a
// step fails more often than it is retried. Then the run fails.
func TestSimulation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawGraph(t)
		test := &workflow.Test{Name: "x", Now: at, Answers: make(map[string][]workflow.Answer)}
		attempts := make(map[string]int)
		lost := false
		for _, s := range d.Steps {
			times := rapid.IntRange(0, workflow.DefaultRetries+1).Draw(t, "failures")
			a := workflow.Answer{Output: `1`}
			if times > 0 {
				a.Fail, a.Times = &workflow.AnswerFailure{Code: "timeout", Retryable: true}, times
			}
			lost = lost || times > workflow.DefaultRetries
			test.Answers[s.ID], attempts[s.ID] = []workflow.Answer{a}, times+1
		}
		test.Expect = workflow.Expectation{Status: gatehouse.RunFailed, Failure: "timeout"}
		if !lost {
			test.Expect = workflow.Expectation{Status: gatehouse.RunSucceeded, Attempts: attempts,
				Steps: make(map[string]string)}
			for _, s := range d.Steps {
				test.Expect.Steps[s.ID] = "succeeded"
			}
		}
		r := workflow.RunTests(d, []*workflow.Test{test})[0]
		if !r.Passed() {
			t.Fatalf("%v", r.Differences)
		}
		for _, s := range r.Run.Steps {
			if !s.Status.Final() {
				t.Fatalf("%s is %s in a run that has ended", s.Key, s.Status)
			}
		}
	})
}

// TestBackoff: 5 s, 30 s, 2 min, 10 min, then the last repeats; each varies by
// a fifth.
func TestBackoff(t *testing.T) {
	t.Parallel()
	d := mustParse(t, steps("- {id: a, uses: worker.x}", "- {id: b, uses: worker.x, retry: {backoff: [1s, 2s]}}"))
	var got []time.Duration
	for attempt := range 6 {
		got = append(got, d.Backoff(d.Step("a"), attempt, 0.5), d.Backoff(d.Step("b"), attempt, 0.5))
	}
	s, m := time.Second, time.Minute
	if diff := cmp.Diff([]time.Duration{5 * s, s, 5 * s, s, 30 * s, 2 * s, 2 * m, 2 * s, 10 * m, 2 * s, 10 * m, 2 * s},
		got); diff != "" {
		t.Error(diff)
	}
	for _, random := range []float64{0, 0.25, 0.999} {
		if w := d.Backoff(d.Step("a"), 1, random); w < 4*s || w > 6*s {
			t.Errorf("%s at %v", w, random)
		}
	}
	if d.Backoff(d.Step("a"), 1, 0) == d.Backoff(d.Step("a"), 1, 0.9) {
		t.Error("there is no jitter")
	}
}
