package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// TestResult is the result of one test.
type TestResult struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	// Differences lists what differs from the expectation; empty when the test
	// passed.
	Differences []string `json:"differences,omitempty"`
	// Run is the final state of the run, for [Definition.Text]; nil when an error
	// stopped the simulation.
	Run *gatehouse.Run `json:"-"`
}

// Passed reports whether everything was as expected.
func (r TestResult) Passed() bool { return len(r.Differences) == 0 }

// RunTests runs tests of a workflow in order.
func RunTests(d *Definition, tests []*Test) []TestResult {
	results := make([]TestResult, 0, len(tests))
	for _, t := range tests {
		r := TestResult{Name: t.Name, Line: t.Line}
		m, err := simulate(d, t)
		if err != nil {
			r.Differences = []string{err.Error()}
		} else {
			r.Run, r.Differences = m.run, t.Expect.differences(m)
		}
		results = append(results, r)
	}
	return results
}

func (e *Expectation) differences(m *simulation) (out []string) {
	differ := func(what string, want, got any) {
		if w, g := fmt.Sprint(want), fmt.Sprint(got); w != g {
			out = append(out, fmt.Sprintf("%s: expected %s, got %s", what, w, g))
		}
	}
	if e.Failure != "no_answer" {
		for _, key := range m.missing {
			out = append(out, fmt.Sprintf("step %s ran, but the test records no answer for it", key))
		}
	}
	if e.Status != "" && e.Status != m.run.Status {
		differ("status", e.Status, m.run.Status)
		if f := m.run.Failure; f != nil {
			out[len(out)-1] += fmt.Sprintf(" (%s: %s)", f.Code, f.Detail)
		}
	}
	if e.Failure != "" {
		code := ""
		if m.run.Failure != nil {
			code = m.run.Failure.Code
		}
		differ("failure", e.Failure, code)
	}
	for _, key := range slices.Sorted(maps.Keys(e.Steps)) {
		differ("step "+key, e.Steps[key], m.state(key))
	}
	for _, key := range slices.Sorted(maps.Keys(e.Attempts)) {
		n := 0
		if s := m.run.StepOf(key); s != nil {
			n = s.Attempts
		}
		differ("attempts of "+key, e.Attempts[key], n)
	}
	for _, key := range slices.Sorted(maps.Keys(e.Outputs)) {
		got := gatehouse.JSON("none")
		if s := m.run.StepOf(key); s != nil && s.Status == gatehouse.StepSucceeded {
			got = s.Output
		}
		if !same(e.Outputs[key], got) {
			differ("output of "+key, e.Outputs[key], got)
		}
	}
	if e.Output != "" && !same(e.Output, m.run.Output) {
		differ("output", e.Output, m.run.Output)
	}
	if e.Took != nil {
		differ("took", gatehouse.Duration(*e.Took), gatehouse.Duration(m.took()))
	}
	return append(out, e.proposals(m)...)
}

func same(want, got gatehouse.JSON) bool {
	if want == "" || got == "" {
		return want == got
	}
	return want.Equal(got)
}

func (m *simulation) state(key string) string {
	s := m.run.StepOf(key)
	switch {
	case s == nil:
		return "no such step"
	case s.Skipped:
		return "skipped"
	}
	return string(s.Status)
}

// proposals compares the expected fields of each action.
func (e *Expectation) proposals(m *simulation) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(e.Proposed)) {
		want, p := e.Proposed[key], m.proposed[key]
		switch {
		case want == "null" && p != nil:
			out = append(out, "step "+key+" proposed an action, and must not")
		case want == "null":
		case p == nil:
			out = append(out, "step "+key+" proposed nothing")
		default:
			out = append(out, compareProposal(key, want, p)...)
		}
	}
	return out
}

func compareProposal(key string, want gatehouse.JSON, p *gatehouse.Proposal) (out []string) {
	b, err := json.Marshal(p)
	if err != nil {
		return []string{err.Error()}
	}
	got, err := gatehouse.Canonicalize(b)
	if err != nil {
		return []string{err.Error()}
	}
	fields, _ := want.Fields()
	for _, f := range fields {
		name := f.Name
		if name == "change" {
			name = "proposed_change"
		}
		value, ok := got.Get(name)
		switch {
		case !ok && f.Value != "null":
			out = append(out, fmt.Sprintf("%s proposed no %s", key, f.Name))
		case ok && !f.Value.Equal(value):
			out = append(out, fmt.Sprintf("%s of %s: expected %s, got %s", f.Name, key, f.Value, value))
		}
	}
	return out
}
