package workflow_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

func parseTests(tb testing.TB, d *workflow.Definition, source string) []*workflow.Test {
	tb.Helper()
	tests, err := workflow.ParseTests(d, []byte(source))
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return tests
}

// TestRunTests runs the recorded tests of a real workflow.
func TestRunTests(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("testdata/triage_tests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := triage(t)
	results := workflow.RunTests(d, parseTests(t, d, string(source)))
	if len(results) != 5 {
		t.Errorf("%d results", len(results))
	}
	for _, r := range results {
		if !r.Passed() || r.Run == nil || r.Line == 0 {
			t.Errorf("%s: %s", r.Name, strings.Join(r.Differences, "\n"))
		}
	}
}

// waiting waits for everything that a step can wait for.
const waiting = `name: w
limits: {max_writes_per_run: 1}
steps:
  - {id: reply, uses: wait, with: {event: reply, timeout: 1h}}
  - {id: ask, uses: approval, with: {rationale: "${{ steps.reply.output.data.text }}"}}
  - {id: until, uses: wait, with: {until: "2026-01-05T12:00:00Z"}}
  - id: note
    uses: connector.shop.insert
    action_type: note
    needs: [ask]
    if: input.note
    with: {target: {entity_type: note, entity_ref: n}, change: {text: x}}
`

// TestRunTestsSays checks the message of a failed test, for each kind of
// expectation.
func TestRunTestsSays(t *testing.T) {
	t.Parallel()
	d := mustParse(t, waiting)
	const answers = "steps: {reply: {signal: {text: go on}, after: 30m}, ask: {applied: true}, note: {applied: true}}"
	for _, c := range []struct{ name, test, want string }{
		{"all as expected", "{input: {note: false}, " + answers +
			", expect: {status: succeeded, steps: {note: skipped}, took: 3h, outputs: {until: {at: '2026-01-05T12:00:00Z'}}, " +
			"proposed: {ask: {connector: workflow, operation: approve, rationale: go on, change: {}}, note: null}}}", ""},
		{"the wrong state", "{input: {note: false}, " + answers + ", expect: {status: failed_terminal}}",
			"status: expected failed_terminal, got succeeded"},
		{"one write too many", "{input: {note: true}, " + answers + ", expect: {status: succeeded}}",
			"status: expected succeeded, got failed_terminal (too_many_writes: note: the run has reached its limit of changes)"},
		{"the event comes too late",
			"{input: {note: false}, steps: {reply: {signal: 1, after: 61m}}, expect: {status: failed_terminal, failure: " +
				"timeout, took: 1h}}", ""},
		{"the event comes just in time",
			"{input: {note: false}, steps: {reply: {signal: {text: a}, after: 59m}}, expect: {status: waiting_approval}}", ""},
		{"no event at all",
			"{input: {note: false}, expect: {failure: timeout, steps: {reply: failed_terminal, ask: canceled}}}", ""},
		{"the wrong step", "{input: {note: false}, " + answers + ", expect: {steps: {ask: canceled, 'ask[3]': ready}}}",
			"step ask: expected canceled, got succeeded|step ask[3]: expected ready, got no such step"},
		{"the wrong change",
			"{input: {note: false}, " + answers + ", expect: {proposed: {ask: {rationale: stop, target: {}}}}}",
			`rationale of ask: expected "stop", got "go on"|target of ask`},
		{"nothing proposed", "{input: {note: false}, " + answers + ", expect: {proposed: {note: {action_type: note}}}}",
			"step note proposed nothing"},
		{"something proposed", "{input: {note: false}, " + answers + ", expect: {proposed: {ask: null}}}",
			"step ask proposed an action, and must not"},
		{"the wrong output", "{input: {note: false}, " + answers + ", expect: {outputs: {ask: {}}, output: 1}}",
			`output of ask: expected {}, got {"action_id":"act_ask"|output: expected 1, got `},
		{"the wrong time", "{input: {note: false}, " + answers + ", expect: {took: 2h}}", "took: expected 2h, got 3h"},
		{"the wrong attempts", "{input: {note: false}, " + answers + ", expect: {attempts: {ask: 2}}}",
			"attempts of ask: expected 2, got 1"},
		{"an expression fails", "{" + answers + ", expect: {status: succeeded}}",
			`expression: note: if: invalid: input.note: there is no "note"`},
	} {
		tests := parseTests(t, d, "tests:\n- {name: "+c.name+", "+strings.TrimPrefix(c.test, "{")+"\n")
		got := strings.Join(workflow.RunTests(d, tests)[0].Differences, "\n")
		if c.want == "" && got != "" {
			t.Errorf("%s: %s", c.name, got)
		}
		for want := range strings.SplitSeq(c.want, "|") {
			if !strings.Contains(got, want) {
				t.Errorf("%s:\n%s\nwant %s", c.name, got, want)
			}
		}
	}
}

// TestRunTestsNoAnswer: a step without a recorded answer is an error of the
// test, not a failure that it can expect.
func TestRunTestsNoAnswer(t *testing.T) {
	t.Parallel()
	d := mustParse(t, "name: w\ninput: {type: object, required: [x]}\nsteps:\n- {id: a, uses: worker.x}\n")
	for input, want := range map[string]string{
		"{x: 1}": "step a ran, but the test records no answer for it",
		"{}":     "missing property 'x'",
	} {
		tests := parseTests(t, d, "tests:\n- {name: n, input: "+input+", expect: {status: failed_terminal}}\n")
		if got := workflow.RunTests(d, tests)[0].Differences; len(got) == 0 || !strings.HasSuffix(got[0], want) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// TestSameKey: a step whose key already has a receipt does not run again.
func TestSameKey(t *testing.T) {
	t.Parallel()
	d := mustParse(t, steps(
		"- {id: a, uses: worker.x, idempotency_key: k}", "- {id: b, uses: worker.x, idempotency_key: 'k'}",
		"- {id: c, uses: worker.x}"))
	tests := parseTests(t, d,
		"tests:\n- {name: n, steps: {a: {output: 1}, c: {output: 3}}, expect: {status: succeeded, outputs: {b: 1, c: 3}}}\n")
	if r := workflow.RunTests(d, tests)[0]; !r.Passed() {
		t.Error(r.Differences)
	}
}

// TestAppliedOutput: the output of an applied action has the members that it has in a real run, and if they are too
// large only the first of them.
func TestAppliedOutput(t *testing.T) {
	t.Parallel()
	d := mustParse(t, steps("- {id: ask, uses: approval, with: {title: Ship?}}",
		"- {id: a, uses: transform, with: '${{ [steps.ask.output.decided_by, steps.ask.output.digest, "+
			"steps.ask.output.receipt_id, steps.ask.output.response, steps.ask.output.reversible] }}'}"))
	tests := parseTests(t, d, "tests:\n- {name: n, steps: {ask: {applied: {response: {n: 1}}}}, expect: {status: "+
		"succeeded, outputs: {a: [test, '', rcp_ask, {n: 1}, false]}}}\n")
	if r := workflow.RunTests(d, tests)[0]; !r.Passed() {
		t.Error(r.Differences)
	}

	const few = `{"action_id":"act_ask","decided_by":"test","digest":"","status":"applied"}`
	large := strings.Repeat("x", workflow.MaxOutput)
	d = mustParse(t, steps("- {id: ask, uses: approval, with: {title: Ship?}}"))
	tests = parseTests(t, d, "tests:\n- {name: n, steps: {ask: {applied: {response: "+large+"}}}, expect: {status: "+
		"succeeded, outputs: {ask: "+few+"}}}\n")
	if r := workflow.RunTests(d, tests)[0]; !r.Passed() {
		t.Error(r.Differences)
	}
	a := &gatehouse.Action{ID: "act_ask", Status: gatehouse.StatusApplied, DecidedBy: "test",
		Receipt: &gatehouse.Receipt{ID: "rcp_ask", ResponseMetadata: gatehouse.StringJSON(large)}}
	if got := workflow.AppliedOutput(a); got != few {
		t.Errorf("a run has %.200s", got)
	}
}

// TestRunBounds: the bounds of a real run hold in a test.
func TestRunBounds(t *testing.T) {
	t.Parallel()
	ones := func(n int) string { return "[" + strings.Repeat("1, ", n-1) + "1]" }
	many := []string{"- {id: first, uses: transform, with: 1}"}
	for _, id := range []string{"a", "b", "c", "d"} {
		many = append(many, "- {id: "+id+", uses: transform, needs: [], for_each: input.l, max_items: 1000, with: 1}")
	}
	many = append(many, "- {id: e, uses: transform, needs: [], for_each: input.m, max_items: 1000, with: 1}",
		"- {id: ask, uses: approval, needs: [first], with: {title: Ship?}, on_rejected: {repeat: first}}")
	keyed := []string{"- {id: a, uses: worker.x, idempotency_key: '${{ input.k }}'}"}
	for name, c := range map[string]struct {
		steps                  []string
		input, answers, failed string
	}{
		"too many items": {many, "{l: " + ones(1000) + ", m: " + ones(994) + "}", "{}", "too_many_items"},
		"too many steps to repeat": {many, "{l: " + ones(1000) + ", m: " + ones(993) + "}",
			"{ask: [{rejected: true}, {applied: true}]}", "rejected"},
		"a large output": {[]string{"- {id: a, uses: worker.x, for_each: input.l}"}, "{l: " + ones(17) + "}",
			"{a: {output: " + strings.Repeat("x", 256<<10-2) + "}}", "output_too_large"},
		"a large output of one step": {[]string{"- {id: a, uses: worker.x}"}, "{}",
			"{a: {output: " + strings.Repeat("x", 256<<10-1) + "}}", "output_too_large"},
		"an empty key": {keyed, "{k: ''}", "{a: {output: 1}}", "expression"},
		"a long key":   {keyed, "{k: " + strings.Repeat("k", 256) + "}", "{a: {output: 1}}", "expression"},
	} {
		d := mustParse(t, steps(c.steps...))
		tests := parseTests(t, d, "tests:\n- {name: n, input: "+c.input+", steps: "+c.answers+
			", expect: {status: failed_terminal, failure: "+c.failed+"}}\n")
		if r := workflow.RunTests(d, tests)[0]; !r.Passed() {
			t.Errorf("%s: %v", name, r.Differences)
		}
	}
}

// TestParseTestsRefuses checks what a file of tests must not contain.
func TestParseTestsRefuses(t *testing.T) {
	t.Parallel()
	d := mustParse(t, waiting+"  - {id: list, uses: worker.x, for_each: '[1]'}\n  - {id: t, uses: transform, with: 1}\n")
	for source, want := range map[string]string{
		"":                                       "no documents",
		"tests: []":                              "has 1 to 1000 tests",
		"tests: [{name: x}]":                     "1:9: a test needs expect",
		"tests: [{expect: {}}]":                  "1:9: a test needs name",
		"test: []":                               `1:1: a file of tests has no key "test"`,
		"tests: [{name: x, expect: {state: y}}]": `expect has no key "state"`,
		"tests: [{name: x, expect: {status: done}}]":                 `"done" is not a state of a run`,
		"tests: [{name: x, expect: {steps: {ask: done}}}]":           `"done" is not a state of a step`,
		"tests: [{name: x, expect: {steps: {nope: ready}}}]":         `the workflow has no step "nope"`,
		"tests: [{name: x, expect: {steps: {'ask[x]': ready}}}]":     `the workflow has no step "ask[x]"`,
		"tests: [{name: x, expect: {proposed: {ask: 1}}}]":           "proposed must be a mapping",
		"tests: [{name: x, steps: {nope: {output: 1}}, expect: {}}]": `the workflow has no step "nope"`,
		"tests: [{name: x, steps: {t: {output: 1}}, expect: {}}]":    "a transform needs no answer",
		"tests: [{name: x, steps: {ask: {}}, expect: {}}]":           "an answer is empty",
		"tests: [{name: x, steps: {ask: {applied: true, rejected: true}}, " +
			"expect: {}}]": "an answer must have only one of",
		"tests: [{name: x, steps: {ask: {applied: 1}}, expect: {}}]":                "applied must be true",
		"tests: [{name: x, steps: {list: {applied: true}}, expect: {}}]":            "has no action that could be applied",
		"tests: [{name: x, steps: {ask: {signal: 1}}, expect: {}}]":                 "waits for no event",
		"tests: [{name: x, steps: {reply: {output: 1}}, expect: {}}]":               "answered by a signal",
		"tests: [{name: x, steps: {ask: [{applied: true}]}, expect: {}}]":           "only a step with for_each",
		"tests: [{name: x, steps: {list: {fail: {times: 0}}}, expect: {}}]":         "times must be a whole number from 1",
		"tests: [{name: x, steps: {list: {fail: {retryable: maybe}}}, expect: {}}]": "retryable must be true or false",
		"tests: [{name: x, steps: {ask: {applied: true, after: 1m}}, expect: {}}]":  "after is allowed only with a signal",
		"tests: [{name: x, steps: {ask: {applied: {status: done}}}, expect: {}}]":   "applied cannot set status",
		"tests: [{name: x, now: today, expect: {}}]":                                "now must be a time",
	} {
		_, err := workflow.ParseTests(d, []byte(source))
		var p workflow.Problems
		if !errors.As(err, &p) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v\nwant  %s", source, err, want)
		}
	}
}

// TestSkippedHasNoOutput: a skipped step has no output to read, and has(…) of it is false.
func TestSkippedHasNoOutput(t *testing.T) {
	t.Parallel()
	d := mustParse(t, steps(
		"- {id: a, uses: worker.x, if: input.do}",
		"- {id: b, uses: transform, if: has(steps.a.output), with: '${{ steps.a.output }}'}",
		"- {id: c, uses: transform, with: '${{ steps.a.output }}'}"))
	tests := parseTests(t, d, "tests:\n"+
		"- {name: done, input: {do: true}, steps: {a: {output: 1}}, expect: {status: succeeded, outputs: {b: 1, c: 1}}}\n"+
		"- {name: skipped, input: {do: false}, expect: {failure: expression, steps: {a: skipped, b: skipped, c: "+
		"failed_terminal}}}\n")
	for _, r := range workflow.RunTests(d, tests) {
		if !r.Passed() {
			t.Errorf("%s: %v", r.Name, r.Differences)
		}
	}
}

// TestNoAttemptPastDeadline: a retry that would come too late is moved to half
// of the time left.
func TestNoAttemptPastDeadline(t *testing.T) {
	t.Parallel()
	d := mustParse(t, "name: w\nlimits: {deadline: 20s}\nsteps:\n- {id: a, uses: worker.x}\n")
	tests := parseTests(t, d,
		"tests:\n- {name: n, steps: {a: {fail: {code: timeout, retryable: true}}}, expect: {failure: timeout, attempts: "+
			"{a: 5}, took: 18.125s}}\n")
	if r := workflow.RunTests(d, tests)[0]; !r.Passed() {
		t.Error(r.Differences)
	}
}
