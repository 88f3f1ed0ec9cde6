package workflow

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// The bounds of a file of tests.
const (
	maxTestBytes = 1 << 20
	maxTestLines = 20_000
	maxTests     = 1000
	maxTimes     = 100
)

// Test is a run of a workflow against recorded answers, and its expected
// result.
type Test struct {
	Name  string
	Line  int
	Input gatehouse.JSON
	// Now is the time at which the run begins.
	Now time.Time
	// Answers holds the answers of each step that needs any: one answer for all
	// items and iterations, or one for each item of a for_each, or else for each
	// iteration.
	Answers map[string][]Answer
	Expect  Expectation
}

// Answer is the recorded result of a step: from its tool, from people or from
// outside.
type Answer struct {
	// Status is the status of the step's action: applied, rejected, denied, expired, failed or canceled; "" for a
	// step without an action, and applied by default for any other.
	Status gatehouse.Status
	// Output is the output of the step; "" for none. For an action, it has the
	// values from the receipt.
	Output gatehouse.JSON
	// Signal says that Output is the data of an event. After is the time from
	// the start of the step's wait to the event.
	Signal bool
	After  time.Duration
	// By is the sender of the event, written like an entry of from; "" means an
	// accepted sender.
	By string
	// Notes are the reviewer's notes on a rejected action.
	Notes string
	// Fail makes attempts fail: the first Times, or all when Times is 0.
	Fail  *AnswerFailure
	Times int
}

// AnswerFailure is a failed attempt.
type AnswerFailure struct {
	Code      string
	Retryable bool
}

// Expectation is what a test expects of the run. Fields that are not set are
// not checked.
type Expectation struct {
	Status gatehouse.RunStatus
	// Failure is the code of the run's failure.
	Failure string
	// Steps maps keys to states; skipped counts as a state here.
	Steps map[string]string
	// Proposed holds, by step, the fields of its action to compare; null for a step
	// that must propose nothing.
	Proposed map[string]gatehouse.JSON
	Outputs  map[string]gatehouse.JSON
	Attempts map[string]int
	Output   gatehouse.JSON
	// Took is the run's duration by the simulated clock.
	Took *time.Duration
}

// testParser parses tests.
type testParser struct {
	form.Reader
	def *Definition
}

// testKeys are the permitted keys in a file of tests, by mapping.
var testKeys = map[string][]string{
	"a file of tests": {"tests"},
	"a test":          {"name", "input", "now", "steps", "expect"},
	"an answer": {"output", "applied", "rejected", "denied", "expired", "failed", "canceled", "signal", "after",
		"by", "notes", "fail"},
	"fail":   {"code", "retryable", "times"},
	"expect": {"status", "failure", "steps", "proposed", "outputs", "attempts", "output", "took"},
}

// ParseTests parses a file of tests of a workflow, strictly. The error is
// [Problems].
func ParseTests(d *Definition, source []byte) ([]*Test, error) {
	p := &testParser{Reader: form.Reader{What: "file of tests", MaxBytes: maxTestBytes, MaxLines: maxTestLines}, def: d}
	var tests []*Test
	if doc := p.Load(source); doc != nil {
		f := p.fields(doc, "a file of tests")
		items := p.List(f.Values["tests"], "tests")
		if f.Node != nil && len(items) == 0 || len(items) > maxTests {
			p.Fail(doc, "a file of tests has 1 to %d tests", maxTests)
			items = nil
		}
		for _, item := range items {
			if t := p.test(item); t != nil {
				tests = append(tests, t)
			}
		}
	}
	if len(p.Problems) > 0 {
		return nil, problems(p.Problems)
	}
	return tests, nil
}

func (p *testParser) fields(n *yaml.Node, what string) form.Fields {
	if n == nil {
		return form.Fields{}
	}
	return p.Mapping(n, what, testKeys[what]...)
}

func (p *testParser) value(n *yaml.Node) gatehouse.JSON {
	if n == nil {
		return ""
	}
	before := len(p.Problems)
	j := p.JSON(n)
	if len(p.Problems) > before {
		return ""
	}
	if err := gatehouse.CheckJSON([]byte(j)); err != nil {
		p.Fail(n, "%v", err)
	}
	return j
}

func (p *testParser) test(n *yaml.Node) *Test {
	f := p.fields(n, "a test")
	if f.Node == nil {
		return nil
	}
	t := &Test{
		Name: p.Text(f.Values["name"], "name"), Line: n.Line, Input: p.value(f.Values["input"]),
		Now: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), Answers: make(map[string][]Answer),
	}
	for _, key := range []string{"name", "expect"} {
		if f.Values[key] == nil {
			p.Fail(n, "a test needs %s", key)
		}
	}
	if v := f.Values["now"]; v != nil {
		at, err := parseTime(v.Value)
		if err != nil {
			p.Fail(v, "now must be a time such as 2026-11-21T08:00:00Z")
		}
		t.Now = at.UTC()
	}
	if v := f.Values["steps"]; v != nil {
		steps := p.Mapping(v, "steps")
		for _, key := range steps.Keys {
			t.Answers[key.Value] = p.answers(key, steps.Values[key.Value])
		}
	}
	if v := f.Values["expect"]; v != nil {
		t.Expect = p.expect(v)
	}
	return t
}

// answers reads the answers of one step.
func (p *testParser) answers(key, n *yaml.Node) []Answer {
	s := p.def.Step(key.Value)
	switch {
	case s == nil:
		p.Fail(key, "the workflow has no step %s", gatehouse.Quote(key.Value))
		return nil
	case s.Kind == KindTransform:
		p.Fail(key, "a transform needs no answer")
		return nil
	case n.Kind == yaml.SequenceNode && s.ForEach == nil && !p.def.Repeated(s.ID):
		p.Fail(n, "only a step with for_each, or one that is repeated, has a list of answers, one for each item or iteration")
		return nil
	case n.Kind != yaml.SequenceNode:
		return []Answer{p.answer(s, n)}
	}
	out := []Answer{}
	for _, item := range n.Content {
		out = append(out, p.answer(s, item))
	}
	return out
}

func (p *testParser) answer(s *Step, n *yaml.Node) (a Answer) {
	f := p.fields(n, "an answer")
	if f.Node == nil {
		return a
	}
	said := 0
	if v := f.Values["output"]; v != nil {
		a.Output = p.value(v)
		said++
	}
	for _, status := range []gatehouse.Status{
		gatehouse.StatusApplied, gatehouse.StatusRejected, gatehouse.StatusDenied, gatehouse.StatusExpired,
		gatehouse.StatusFailed, gatehouse.StatusCanceled,
	} {
		v := f.Values[string(status)]
		if v == nil {
			continue
		}
		said++
		if a.Status = status; !s.Kind.Proposes() {
			p.Fail(v, "a step that uses %s has no action that could be %s", s.Kind, status)
		}
		if v.Kind == yaml.MappingNode {
			a.Output = p.value(v)
			if _, ok := a.Output.Get("status"); ok {
				p.Fail(v, "%s cannot set status", status)
			}
		} else if v.Value != "true" {
			p.Fail(v, "%s must be true, or a mapping with what the receipt adds", status)
		}
	}
	if v := f.Values["signal"]; v != nil {
		said++
		if a.Signal, a.Output = true, p.value(v); s.Kind != KindWait {
			p.Fail(v, "a step that uses %s waits for no event", s.Kind)
		}
	}
	if v := f.Values["after"]; v != nil {
		if a.After = p.Duration(v, "after", 0, maxWait).D(); !a.Signal {
			p.Fail(v, "after is allowed only with a signal")
		}
	}
	if v := f.Values["by"]; v != nil {
		one, ok := parseSender(p.Text(v, "by"))
		if !ok || !a.Signal {
			p.Fail(v, "by must be starter, kind:<person, agent or service>, role:<role> or the name of the sender of the signal")
		}
		a.By = one.String()
	}
	if v := f.Values["notes"]; v != nil {
		if a.Notes = p.Text(v, "notes"); a.Status != gatehouse.StatusRejected {
			p.Fail(v, "notes are allowed only with a rejection")
		}
	}
	if v := f.Values["fail"]; v != nil {
		a.Fail, a.Times = p.failure(v)
		if a.Times == 0 && said > 0 {
			a.Times = 1
		}
	} else if said == 0 {
		p.Fail(n, "an answer is empty")
	}
	if s.Kind == KindWait && (a.Fail != nil || f.Values["output"] != nil) {
		p.Fail(n, "a wait is answered by a signal, or by time")
	}
	if said > 1 {
		p.Fail(n, "an answer must have only one of output, signal and a status such as applied")
	}
	return a
}

func (p *testParser) failure(n *yaml.Node) (*AnswerFailure, int) {
	f := p.fields(n, "fail")
	out := &AnswerFailure{Code: "failed"}
	if v := f.Values["code"]; v != nil {
		out.Code = p.Name(v, "code")
	}
	if v := f.Values["retryable"]; v != nil {
		if out.Retryable = v.Value == "true"; v.Value != "true" && v.Value != "false" {
			p.Fail(v, "retryable must be true or false")
		}
	}
	return out, p.Whole(f.Values["times"], "times", maxTimes)
}

func (p *testParser) expect(n *yaml.Node) (e Expectation) {
	f := p.fields(n, "expect")
	if f.Node == nil {
		return e
	}
	if v := f.Values["status"]; v != nil {
		e.Status = gatehouse.RunStatus(p.Text(v, "status"))
		known := false
		for _, s := range gatehouse.RunStatuses() {
			known = known || s == e.Status
		}
		if !known {
			p.Fail(v, "%s is not a state of a run", gatehouse.Quote(string(e.Status)))
		}
	}
	e.Failure = p.Text(f.Values["failure"], "failure")
	p.each(f.Values["steps"], "steps", func(key string, v *yaml.Node) {
		if e.Steps == nil {
			e.Steps = make(map[string]string)
		}
		state := p.Text(v, "a state")
		known := state == "skipped"
		for _, s := range gatehouse.StepStatuses() {
			known = known || string(s) == state
		}
		if !known {
			p.Fail(v, "%s is not a state of a step", gatehouse.Quote(state))
		}
		e.Steps[key] = state
	})
	p.each(f.Values["proposed"], "proposed", func(key string, v *yaml.Node) {
		if e.Proposed == nil {
			e.Proposed = make(map[string]gatehouse.JSON)
		}
		if e.Proposed[key] = p.value(v); v.Kind != yaml.MappingNode && e.Proposed[key] != "null" {
			p.Fail(v, "proposed must be a mapping with members of the action, or null")
		}
	})
	p.each(f.Values["outputs"], "outputs", func(key string, v *yaml.Node) {
		if e.Outputs == nil {
			e.Outputs = make(map[string]gatehouse.JSON)
		}
		e.Outputs[key] = p.value(v)
	})
	p.each(f.Values["attempts"], "attempts", func(key string, v *yaml.Node) {
		if e.Attempts == nil {
			e.Attempts = make(map[string]int)
		}
		e.Attempts[key] = p.Whole(v, "attempts", maxTimes)
	})
	e.Output = p.value(f.Values["output"])
	if v := f.Values["took"]; v != nil {
		took := p.Duration(v, "took", 0, maxWait).D()
		e.Took = &took
	}
	return e
}

// each iterates over a mapping keyed by steps or by their items, such as
// notify[3].
func (p *testParser) each(n *yaml.Node, what string, fn func(key string, v *yaml.Node)) {
	if n == nil {
		return
	}
	f := p.Mapping(n, what)
	for _, key := range f.Keys {
		id, item, isItem := strings.Cut(key.Value, "[")
		if isItem {
			if _, err := strconv.Atoi(strings.TrimSuffix(item, "]")); err != nil || !strings.HasSuffix(item, "]") {
				id = ""
			}
		}
		if id, _ = (&gatehouse.Step{Key: id}).Iteration(); p.def.Step(id) == nil {
			p.Fail(key, "the workflow has no step %s", gatehouse.Quote(key.Value))
			continue
		}
		fn(key.Value, f.Values[key.Value])
	}
}
