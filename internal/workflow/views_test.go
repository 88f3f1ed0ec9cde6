package workflow_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// threeKinds is a workflow with a connector step, an approval step and a wait step.
func threeKinds(tb testing.TB) *workflow.Definition {
	tb.Helper()
	return mustParse(tb, steps(
		"- {id: put, uses: connector.shop.update, action_type: price_change, risk: high, with: {target: {entity_type: x, "+
			"entity_ref: y}, change: {}}}",
		"- {id: ask, uses: approval, with: {}}",
		"- {id: wait, uses: wait, with: {for: 1s}}",
	))
}

// TestProposal checks what a connector step proposes.
func TestProposal(t *testing.T) {
	t.Parallel()
	d := threeKinds(t)
	got, err := d.Step("put").Proposal(
		`{"artifact_diff":{"text":"-a","type":"unified_diff"},"change":{"price":12.50},"context":{"a":1},` +
			`"current_state":{"price":10.10},` +
			`"evaluations":[{"confidence":0.90,"kind":"probabilistic","name":"e","result":"pass"}],"expires_in":"4h",` +
			`"magnitude":{"amount":2.40,"currency":"USD"},` +
			`"metadata":{"m":true},"rationale":"r","target":{"entity_ref":"SKU","entity_type":"item","version":"7"}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update", RiskLevel: gatehouse.L4,
		Target:         gatehouse.Target{EntityType: "item", EntityRef: "SKU", Version: "7"},
		ProposedChange: `{"price":12.50}`, CurrentState: `{"price":10.10}`, Rationale: "r",
		Magnitude:    &gatehouse.Magnitude{Amount: "2.40", Currency: "USD"},
		Evaluations:  []gatehouse.Evaluation{{Name: "e", Kind: "probabilistic", Result: "pass", Confidence: "0.90"}},
		ArtifactDiff: &gatehouse.ArtifactDiff{Type: "unified_diff", Text: "-a"},
		Context:      `{"a":1}`, Metadata: `{"m":true}`, ExpiresIn: gatehouse.Span(4 * time.Hour),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	ask, err := d.Step("ask").Proposal("")
	if err != nil || ask.Connector != "workflow" || ask.Operation != "approve" || ask.ActionType != "workflow_approval" ||
		ask.ProposedChange != "{}" {
		t.Errorf("the approval step proposes %+v, %v", ask, err)
	}
	for with, want := range map[gatehouse.JSON]string{
		`{"change":{}}`: "entity_type",
		`{"change":[1],"target":{"entity_ref":"y","entity_type":"x"}}`:                               "/proposed_change",
		`{"change":{},"target":{"entity_ref":7,"entity_type":"x"}}`:                                  "entity_ref",
		`{"change":{},"chnage":{},"target":{"entity_ref":"y","entity_type":"x"}}`:                    "chnage",
		`{"change":{},"expires_in":"soon","target":{"entity_ref":"y","entity_type":"x"}}`:            "soon",
		`{"change":{},"magnitude":{"amount":"a lot"},"target":{"entity_ref":"y","entity_type":"x"}}`: "a lot",
		`{"change":{},"target":{"entity_ref":"y","entity_refs":["z"],"entity_type":"x"}}`:            "entity_refs",
		`[]`: "array",
	} {
		p, err := d.Step("put").Proposal(with)
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %+v, %v; want an error with %s", with, p, err, want)
		}
	}
	if _, err := d.Step("wait").Proposal(`{}`); err == nil {
		t.Error("a wait step makes a proposal")
	}
}

// TestWaitFor checks until which time and for which event a step waits.
func TestWaitFor(t *testing.T) {
	t.Parallel()
	s := threeKinds(t).Step("wait")
	for _, c := range []struct {
		with  gatehouse.JSON
		until string
		event string
	}{
		{`{"for":"90m"}`, "2026-11-21T10:00:00Z", ""},
		{`{"for":"0s"}`, "2026-11-21T08:30:00Z", ""},
		{`{"until":"2026-11-22T00:00:00+01:00"}`, "2026-11-21T23:00:00Z", ""},
		{`{"until":"2020-01-01T00:00:00Z"}`, "2026-11-21T08:30:00Z", ""},
		{`{"until":"0001-01-01T00:00:00Z"}`, "2026-11-21T08:30:00Z", ""},
		{`{"event":"reply"}`, "0001-01-01T00:00:00Z", "reply"},
		{`{"event":"reply","timeout":"2h"}`, "2026-11-21T10:30:00Z", "reply"},
	} {
		until, event, err := s.WaitFor(c.with, at)
		if err != nil || until.Format(time.RFC3339) != c.until || event != c.event {
			t.Errorf("%s: got %s, %q, %v; want %s, %q", c.with, until, event, err, c.until, c.event)
		}
	}
	for _, with := range []gatehouse.JSON{
		`{}`, `{"for":"1x"}`, `{"for":"-1s"}`, `{"for":5}`, `{"for":"400d"}`, `{"until":"tomorrow"}`,
		`{"until":"2999-01-01T00:00:00Z"}`,
		`{"event":""}`, `{"event":"a b"}`, `{"event":"a","timeout":"400d"}`, `{"until":null}`, `{"ever":"x"}`,
	} {
		if until, event, err := s.WaitFor(with, at); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("%s: got %s, %q, %v; want the error invalid", with, until, event, err)
		}
	}
}

// TestCheckInput checks which inputs are refused, and the pointers of the violations.
func TestCheckInput(t *testing.T) {
	t.Parallel()
	d := mustParse(t, `name: w
input:
  type: object
  required: [n]
  properties:
    n: {type: integer, minimum: 1, maximum: 9007199254740993}
    price: {type: number, multipleOf: 0.01}
    "a/b~c": {type: string, maxLength: 3}
    list: {type: array, items: {enum: [1, two]}, uniqueItems: true}
  additionalProperties: false
steps:
  - {id: a, uses: transform, with: 1}
`)
	for input, want := range map[gatehouse.JSON]string{
		`{"n":1}`: "", `{"n":1.0}`: "", `{"n":9007199254740993}`: "", `{"n":2,"price":19.99}`: "",
		`{"n":1,"list":[1,"two"]}`:    "",
		``:                            "/input: missing property 'n'",
		`{}`:                          "/input: missing property 'n'",
		`[]`:                          "/input: ",
		`{"n":0}`:                     "/input/n: ",
		`{"n":9007199254740994}`:      "/input/n: ", // a float would round it to the limit
		`{"n":1.5}`:                   "/input/n: ",
		`{"n":1,"price":0.001}`:       "/input/price: ",
		`{"a/b~c":"long","n":1}`:      "/input/a~1b~0c: ",
		`{"list":[1,3],"n":1}`:        "/input/list/1: ",
		`{"list":[1,1.0],"n":1}`:      "/input/list: ",
		`{"n":1,"x":1}`:               "/input: ",
		`{"n":1e999999999}`:           "/input: has a number",
		`{"n":{"deep":[-1e-999999]}}`: "/input: has a number",
		`{"list":[7,8,9],"n":0}`:      "/input/list/2: ",
	} {
		err := d.CheckInput(input)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", input, err)
			}
			continue
		}
		var e *gatehouse.Error
		if !errors.As(err, &e) || e.Code != gatehouse.CodeInvalid || len(e.Violations) == 0 {
			t.Errorf("%s: %v", input, err)
			continue
		}
		var all []string
		for _, v := range e.Violations {
			all = append(all, v.Pointer+": "+v.Detail)
		}
		if text := strings.Join(all, "\n"); !strings.Contains(text, want) {
			t.Errorf("%s:\n%s\nwant %s", input, text, want)
		}
	}
	large := gatehouse.StringJSON(strings.Repeat("x", workflow.MaxOutput))
	if err := d.CheckInput(large); err == nil || len(err.Error()) > 500 {
		t.Errorf("a large input: %.500v", err)
	}
	if err := mustParse(t, steps(transform)).CheckInput(large); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("a large input without a schema: %.500v", err)
	}
	if err := mustParse(t, steps(transform)).CheckInput(`[1,"anything"]`); err != nil {
		t.Errorf("without a schema: %v", err)
	}
}

// TestResult checks the output of a run. An output cannot use a step that was skipped.
func TestResult(t *testing.T) {
	t.Parallel()
	d := mustParse(t,
		"name: w\nsteps:\n- {id: before, uses: transform, with: 1}\noutput: {a: '${{ steps.before.output }}'}\n")
	if got, err := d.Result(scope(`{}`, `1.0`)); err != nil || got != `{"a":1.0}` {
		t.Errorf("the output is %s, %v", got, err)
	}
	if got, err := d.Result(scope(`{}`)); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("after a skipped step, the output is %s, %v", got, err)
	}
	if got, err := mustParse(t, steps(transform)).Result(scope(`{}`)); got != "" || err != nil {
		t.Errorf("a workflow without an output has %q, %v", got, err)
	}
}
