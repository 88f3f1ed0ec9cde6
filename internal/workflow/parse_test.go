package workflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// TestParse checks everything that a real workflow contains.
func TestParse(t *testing.T) {
	t.Parallel()
	d := triage(t)
	if d.Name != "incident-triage" || d.Workspace != "support" || d.Description == "" || len(d.Steps) != 5 {
		t.Errorf("%+v", d)
	}
	if w := d.On.Webhook; w == nil || w.Kind != workflow.HookServiceNow || w.Secret != "sn_hook" ||
		w.Ref.String() != "input.body.sys_id" {
		t.Errorf("webhook %+v", d.On.Webhook)
	}
	ref, err := d.On.Webhook.Ref.Value(&workflow.Scope{Input: `{"body":{"sys_id":"abc"}}`})
	if err != nil || ref != `"abc"` {
		t.Errorf("ref %s, %v", ref, err)
	}
	if c := d.On.Schedule; c == nil || c.Spec != "0 6 * * 1-5" || c.Zone != "Europe/Berlin" {
		t.Errorf("schedule %+v", c)
	}
	want := workflow.Limits{
		MaxConcurrency: 20, MaxRunsPerMin: 60, MaxWritesPerRun: 10, Deadline: gatehouse.Duration(24 * time.Hour),
		Budget: &workflow.Budget{Amount: "5.00", Currency: "USD", Window: gatehouse.Duration(24 * time.Hour)},
	}
	if diff := cmp.Diff(want, d.Limits); diff != "" {
		t.Error(diff)
	}
	type row struct {
		ID, Parts string
		Kind      workflow.Kind
		Needs     []string
		Retry     workflow.Retry
		Timeout   time.Duration
		Risk      gatehouse.RiskLevel
		Two       bool
		Type      string
		Max, Line int
	}
	standard := workflow.Retry{Max: 4,
		Backoff: []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}}
	var rows []row
	for i, s := range d.Steps {
		if s.Index != i || d.Step(s.ID) != s {
			t.Errorf("%s stands at %d", s.ID, s.Index)
		}
		parts := strings.Join([]string{s.Connector, s.Operation, s.Provider, s.Workflow, s.Tool}, "|")
		rows = append(rows,
			row{s.ID, parts, s.Kind, s.Needs, s.Retry, s.Timeout, s.Risk, s.TwoPerson, s.ActionType, s.MaxItems, s.Line})
	}
	if diff := cmp.Diff([]row{
		{"classify", "||openai||", workflow.KindModel, nil, workflow.Retry{Max: 3, Backoff: standard.Backoff}, time.Minute, 0,
			false, "", 0, 21},
		{"update", "snow|update|||", workflow.KindConnector, []string{"classify"}, standard, 0, gatehouse.L4, true,
			"field_update", 0, 31},
		{"notify", "||||page", workflow.KindWorker, []string{"update"}, standard, 0, 0, false, "", 50, 44},
		{"settle", "||||", workflow.KindWait, []string{"notify"}, standard, 0, 0, false, "", 0, 49},
		{"sub", "|||other|", workflow.KindWorkflow, []string{"settle"}, standard, 0, 0, false, "", 0, 52},
	}, rows); diff != "" {
		t.Error(diff)
	}
	if d.Step("none") != nil {
		t.Error("a step that does not exist")
	}
}

// TestParseKinds checks the other kinds of steps and the short forms.
func TestParseKinds(t *testing.T) {
	t.Parallel()
	d := mustParse(t, steps(
		"- {id: ask, uses: approval, risk: med, with: {rationale: ship it?}}",
		"- {id: go, uses: connector.my.shop.v1.insert, action_type: note, risk: low, needs: [], with: {target: "+
			"{entity_type: t, entity_ref: r}, change: {a: 1}}}",
		"- {id: w, uses: worker.x, retry: {max: 0}, for_each: '[1,2]', max_items: 7}",
		"- {id: v, uses: worker.y, retry: {backoff: [1s]}, for_each: input.x}",
	))
	ask := d.Step("ask")
	if ask.Connector != "workflow" || ask.Operation != "approve" || ask.ActionType != "workflow_approval" ||
		ask.Risk != gatehouse.L3 || !ask.Kind.Proposes() {
		t.Errorf("%+v", ask)
	}
	if s := d.Step("go"); s.Connector != "my.shop.v1" || s.Operation != "insert" || s.Risk != gatehouse.L2 ||
		len(s.Needs) != 0 {
		t.Errorf("%+v", s)
	}
	if s := d.Step("w"); s.Retry.Max != 0 || s.MaxItems != 7 || s.Kind.Proposes() {
		t.Errorf("%+v", s)
	}
	if s := d.Step("v"); s.Retry.Max != workflow.DefaultRetries || len(s.Retry.Backoff) != 1 ||
		s.MaxItems != workflow.DefaultItems {
		t.Errorf("%+v", s)
	}
	if d.Workspace != "default" || d.On != (workflow.Triggers{}) || d.Limits != (workflow.Limits{}) || d.Input != "" {
		t.Errorf("%+v", d)
	}
}

// TestParseJSON: JSON is accepted too.
func TestParseJSON(t *testing.T) {
	t.Parallel()
	d := mustParse(t,
		`{"name": "w", "steps": [{"id": "a", "uses": "transform", "with": {"n": 1.50, "e": "${{ input.x }}"}}]}`)
	if got, err := d.Step("a").With.Eval(scope(`{"x":2}`)); err != nil || got != `{"e":2,"n":1.50}` {
		t.Errorf("%s, %v", got, err)
	}
}

const transform = "- {id: a, uses: transform, with: 1}"

// TestParseRefuses checks what is refused, with line, column and message.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	many := make([]string, workflow.MaxSteps+1)
	for i := range many {
		many[i] = fmt.Sprintf("- {id: s%d, uses: transform, with: 1}", i)
	}
	costly := make([]string, 10)
	for i := range costly {
		costly[i] = fmt.Sprintf("- {id: s%d, uses: transform, with: [%s]}", i, strings.Repeat("'${{ 1 }}',", 401))
	}
	for _, c := range []struct{ source, want string }{
		{steps(costly...), "12:4337: the workflow has more than 4000 expressions"},
		{"", "1:1: no documents"},
		{"[]", "1:1: a workflow must be a mapping"},
		{"name: w", "1:1: a workflow needs steps"},
		{"name: W\nsteps:\n" + transform, "1:7: name must be lower-case"},
		{"name: " + strings.Repeat("w", 64) + "\nsteps:\n" + transform, "1:7: name must be lower-case"},
		{"name: 12\nsteps:\n" + transform, "1:7: name must be text"},
		{"name: w\nsteps: []", "2:8: a workflow needs a step"},
		{"name: w\nname: v\nsteps:\n" + transform, `2:1: "name" appears twice`},
		{"name: w\nsetps:\n" + transform, `2:1: a workflow has no key "setps"`},
		{"name: &a w\nsteps:\n" + transform, "1:7: anchors"},
		{"name: w\nsteps: !!seq\n" + transform, "2:8: tags"},
		{"name: w\nsteps:\n  - {id: a", "1: "},
		{"name: \xff\nsteps:\n" + transform, "1:1: the workflow is not UTF-8"},
		{"name: w\n" + strings.Repeat("#\n", 10_001) + "steps:\n" + transform, "longer than 10000 lines"},
		{"name: w\n#" + strings.Repeat("x", gatehouse.MaxWorkflowBytes) + "\nsteps:\n" + transform,
			"longer than 262144 bytes"},
		{steps(many...), "3:1: there are more than 200 steps"},
		// Steps.
		{steps("- {uses: transform, with: 1}"), "3:3: a step needs id"},
		{steps("- {id: a}"), "3:3: a step needs uses"},
		{steps("- {id: a, uses: transform, with: 1, when: x}"), `3:37: a step has no key "when"`},
		{steps("- {id: A, uses: transform, with: 1}"), "3:8: id must be"},
		{steps("- {id: a/b, uses: transform, with: 1}"), "3:8: id must be"},
		{steps(transform, transform), `4:8: another step is named "a"`},
		{steps("- x"), "3:3: a step must be a mapping"},
		{steps("- {id: a, uses: transmute, with: 1}"), "3:17: uses must be connector.<name>.<operation>, approval"},
		{steps("- {id: a, uses: transform.x, with: 1}"), "3:17: uses must be transform"},
		{steps("- {id: a, uses: connector.x, with: 1}"), "3:17: uses must be connector.<name>.<operation>"},
		{steps("- {id: a, uses: connector.workflow.approve, action_type: x, with: {target: {}, change: {}}}"),
			"3:17: the connector workflow is built in"},
		{steps("- {id: a, uses: 'model.', with: {prompt: x}}"), "3:17: uses must be model.<provider>"},
		{steps("- {id: a, uses: workflow.X}"), "3:17: uses must be workflow.<name>"},
		{steps("- {id: a, uses: worker.a b}"), "3:17: uses must be worker.<tool>"},
		// Graph.
		{steps("- {id: a, uses: transform, with: 1, needs: [b]}"), `3:45: there is no step "b"`},
		{steps("- {id: a, uses: transform, with: 1, needs: [a]}"), "3:45: a step cannot need itself"},
		{steps(transform, "- {id: b, uses: transform, with: 1, needs: [a, a]}"), `4:48: "a" appears twice`},
		{steps("- {id: a, uses: transform, with: 1, needs: a}"), "3:44: needs must be a list"},
		{steps("- {id: a, uses: transform, with: 1, needs: [c]}", "- {id: b, uses: transform, with: 1}",
			"- {id: c, uses: transform, with: 1}"),
			"3:44: the steps depend on each other in a cycle: a → c → b → a"},
		// What expressions may read.
		{steps(transform, "- {id: b, uses: transform, with: '${{ steps.c.output }}'}"), `4:39: with: there is no step "c"`},
		{steps(transform, "- {id: b, needs: [], uses: transform, with: '${{ 1 + steps.a.output }}'}"),
			`4:54: with: step "a" may still be running here; add it to needs`},
		{steps("- {id: a, uses: transform, with: '${{ steps.a.output }}'}"), `3:39: with: step "a" may still be running`},
		{steps(transform, "- {id: b, uses: transform, with: '${{ steps.a }}'}"), `4:39: with: write steps["a"].output`},
		{steps(transform, "- {id: b, uses: transform, with: '${{ has(steps.a) }}'}"), `with: write steps["a"].output`},
		{steps(transform, "- {id: b, uses: transform, with: '${{ steps.a.status }}'}"),
			`4:39: with: a step has an output and a rejection, and no "status"`},
		{steps(transform, "- {id: b, uses: transform, with: '${{ steps }}'}"),
			"4:39: with: steps must be followed by the id of a step"},
		{steps(transform, "- {id: b, uses: transform, with: '${{ steps[input.x].output }}'}"),
			"4:39: with: steps must be followed by the id"},
		{steps(transform, "- {id: b, uses: transform, with: '${{ [1].map(x, steps.c.output) }}'}"), `there is no step "c"`},
		{steps(transform, "- {id: b, uses: transform, with: '${{ {''k'': steps.c.output} }}'}"), `there is no step "c"`},
		{steps("- {id: a, uses: transform, with: '${{ item }}'}"), "3:39: with: item exists only in a step with for_each"},
		{steps("- {id: a, uses: worker.x, for_each: '[item]'}"), "3:39: for_each: item exists only"},
		{steps("- {id: a, uses: worker.x, for_each: input.l, if: index > 1}"), "3:50: if: index exists only"},
		{"name: w\noutput: '${{ steps.b.output }}'\nsteps:\n" + transform, `2:14: output: there is no step "b"`},
		{"name: w\noutput: '${{ item }}'\nsteps:\n" + transform, "2:14: output: item exists only"},
		// Expressions.
		{steps("- {id: a, uses: transform, with: 1, if: 1}"), "3:41: if must be an expression"},
		{steps("- {id: a, uses: transform, with: 1, if: '1'}"), "3:42: if: gives int, but must give bool"},
		{steps("- {id: a, uses: transform, with: 1, if: '${{ true }}'}"), "3:41: if is an expression already"},
		{steps("- {id: a, uses: transform, with: 1, if: '1 +'}"), "3:45: if: Syntax error"},
		{steps("- {id: a, uses: transform, with: 1, if: 'inptu.x'}"), `3:42: if: there is no fact or function named "inptu"`},
		{steps("- {id: a, uses: transform, with: 1, if: 'run.nme == \"x\"'}"), "run has only id, tenant"},
		{steps("- {id: a, uses: transform, with: 1, if: '\"a\" == 1'}"), "never holds"},
		{steps("- {id: a, uses: transform, with: '${{ double(input.x) }}'}"), "double makes a float"},
		{steps("- {id: a, uses: transform, with: '${{ input.map(item, item) }}'}"), "item is the name of a fact"},
		{steps("- {id: a, uses: transform, with: 'x ${{ input.x'}"), "3:37: with: ${{ has no closing }}"},
		{steps("- {id: a, uses: transform, with: '${{ \"}} }}'}"), "3:35: with: ${{ has no closing }}"},
		{steps("- {id: a, uses: transform, with: '${{ }}'}"), "3:38: with: an expression is empty"},
		{steps("- {id: a, uses: transform, with: {'${{ x }}': 1}}"), "3:35: with: a key cannot contain an expression"},
		{steps("- {id: a, uses: transform, with: 012}"), `3:34: "012" means something else in YAML`},
		{steps("- {id: a, uses: transform, with: 2026-01-01}"), "means something else in YAML"},
		{steps("- {id: a, uses: transform, with: {n: [1e400]}}"), `"1e400" means something else in YAML`},
		{steps("- id: a\n  uses: transform\n  with:\n    deep: |\n      one\n      two ${{ input.x +\n        nope }} three"),
			"9:9: with: there is no fact"},
		{steps("- {id: a, uses: transform, with: [" + strings.Repeat("'${{ 1 }}',", 501) + "]}"),
			"3:34: with has more than 500 expressions"},
		{steps("- {id: a, uses: transform, with: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}"),
			"nested deeper than 32"},
		// for_each.
		{steps("- {id: a, uses: worker.x, for_each: '\"a\"'}"), "3:37: for_each: gives string, but must give a list"},
		{steps("- {id: a, uses: worker.x, max_items: 5}"), "3:38: max_items needs for_each"},
		{steps("- {id: a, uses: worker.x, for_each: input.l, max_items: 1001}"),
			"3:57: max_items must be a whole number from 1 to 1000"},
		{steps("- {id: a, uses: worker.x, for_each: input.l, idempotency_key: k}"),
			"3:63: idempotency_key must contain item or index"},
		{steps("- {id: a, uses: worker.x, idempotency_key: 'k-${{ now }}'}"),
			"the time cannot be part of an idempotency key"},
		{steps("- {id: a, uses: worker.x, idempotency_key: {a: b}}"), "3:44: idempotency_key must be a string"},
		// with, by kind.
		{steps("- {id: a, uses: transform}"), "3:3: a step that uses transform needs with"},
		{steps("- {id: a, uses: connector.s.update, action_type: x}"), "3:3: a step that uses connector needs with"},
		{steps("- {id: a, uses: connector.s.update, with: {target: {}, change: {}}}"),
			"3:3: a connector step needs action_type"},
		{steps("- {id: a, uses: connector.s.update, action_type: X, with: {target: {}, change: {}}}"),
			"3:50: action_type must be lower-case"},
		{steps("- {id: a, uses: connector.s.update, action_type: x, with: {change: {}}}"), "3:59: with needs target"},
		{steps("- {id: a, uses: connector.s.update, action_type: x, with: {target: {ref: 1}, change: {}}}"),
			`3:69: target has no key "ref"`},
		{steps("- {id: a, uses: connector.s.update, action_type: x, with: {target: {}, change: 1}}"),
			"3:80: change must be a mapping"},
		{steps("- {id: a, uses: connector.s.update, action_type: x, with: {target: {}, chnage: {}}}"),
			`with of connector has no key "chnage"`},
		{steps("- {id: a, uses: connector.s.update, action_type: x, with: {target: {}, change: {}, expires_in: soon}}"),
			"expires_in"},
		{steps("- {id: a, uses: connector.s.update, action_type: x, with: '${{ input }}'}"), "3:59: with must be a mapping"},
		{steps("- {id: a, uses: approval, with: {target: {}}}"), `with of approval has no key "target"`},
		{steps("- {id: a, uses: approval, with: {about: {connector: c, entity_type: t, version: x}}}"),
			"about needs entity_ref"},
		{steps("- {id: a, uses: approval, with: {about: {connector: c, entity_type: t, entity_ref: r}}}"),
			"about needs a version, or a current_state"},
		{steps("- {id: a, uses: approval, with: {about: {state_digest: d}}}"), `about has no key "state_digest"`},
		{steps("- {id: a, uses: approval, with: {about: x}}"), "about must be a mapping"},
		{steps("- {id: a, uses: model.x, with: {model: y}}"), "3:32: with needs one of prompt and messages"},
		{steps("- {id: a, uses: model.x, with: {model: y, prompt: p, messages: []}}"), "3:32: with needs one of"},
		{steps("- {id: a, uses: model.x, with: {prompt: y}}"), "3:32: with needs model"},
		{steps("- {id: a, uses: model.x, with: {model: m, prompt: y, max_token: 1}}"),
			`with of model has no key "max_token"`},
		{steps("- {id: a, uses: workflow.x, with: [1]}"), "3:35: with must be a mapping"},
		{steps("- {id: a, uses: wait, with: {for: 1h, event: x}}"), "3:29: a wait has one of for, until and event"},
		{steps("- {id: a, uses: wait, with: {timeout: 1h}}"), "3:29: a wait has one of"},
		{steps("- {id: a, uses: wait, with: {for: 1h, timeout: 1h}}"), "3:48: timeout needs event"},
		{steps("- {id: a, uses: wait, with: {for: 1h, from: [ana]}}"), "3:45: from needs event"},
		{steps("- {id: a, uses: wait, with: {event: '${{ input.e }}', from: [ana]}}"),
			"3:61: from needs an event without expressions"},
		{steps("- {id: a, uses: wait, with: {event: go, from: []}}"), "3:47: from must list 1 to 50 senders"},
		{steps("- {id: a, uses: wait, with: {event: go, from: ['${{ input.who }}']}}"), "3:48: from must list"},
		{steps("- {id: a, uses: wait, with: {event: go, from: [kind:robot]}}"), "3:48: from must list"},
		{steps("- {id: a, uses: wait, with: {event: go, from: [role:boss]}}"), "3:48: from must list"},
		{steps("- {id: a, uses: wait, with: {event: go, from: [ana, ana]}}"), `3:53: "ana" appears twice`},
		{steps("- {id: a, uses: wait, with: {event: go, from: [ana]}}\n- {id: b, uses: wait, with: {event: go}}"),
			"4:29: the step a waits for the same event with another from"},
		{steps("- {id: a, uses: wait, with: {event: go}}\n- {id: b, uses: wait, with: {event: go, from: [ana]}}"),
			"4:47: the step a waits for the same event with another from"},
		{steps("- {id: a, uses: wait, with: {for: 1x}}"), "3:35: for: "},
		{steps("- {id: a, uses: wait, with: {until: tomorrow}}"), "3:37: until must be a time"},
		{steps("- {id: a, uses: wait, with: {event: 'a b'}}"), "3:37: event must be"},
		// The rest of a step.
		{steps("- {id: a, uses: worker.x, timeout: 25h}"), "3:36: timeout must be from 1s to 1d"},
		{steps("- {id: a, uses: worker.x, timeout: -1s}"), "3:36: timeout"},
		{steps("- {id: a, uses: worker.x, retry: {max: 21}}"), "3:40: max must be a whole number from 1 to 20"},
		{steps("- {id: a, uses: worker.x, retry: {max: 3, every: 5s}}"), `3:43: retry has no key "every"`},
		{steps("- {id: a, uses: worker.x, retry: {backoff: []}}"), "3:44: backoff must list 1 to 20 durations"},
		{steps("- {id: a, uses: worker.x, retry: {backoff: [5]}}"), "3:45: backoff"},
		{steps("- {id: a, uses: worker.x, risk: high}"), "3:33: risk has no effect in a step that uses worker"},
		{steps("- {id: a, uses: worker.x, two_person: true}"), "3:39: two_person has no effect"},
		{steps("- {id: a, uses: approval, risk: extreme}"), "3:33: risk must be low, med or high"},
		{steps("- {id: a, uses: approval, two_person: yes}"), "3:39: two_person must be true or false"},
		{steps("- {id: a, uses: approval, timeout: 5s}"), "3:36: timeout has no effect in a step that uses approval"},
		{steps("- {id: a, uses: transform, with: 1, retry: {max: 1}}"),
			"3:44: retry has no effect in a step that uses transform"},
		// Triggers, limits, input.
		{"name: w\non: {webhook: {kind: slack, secret: x}}\nsteps:\n" + transform,
			"2:22: kind must be servicenow, github or generic"},
		{"name: w\non: {webhook: {kind: github}}\nsteps:\n" + transform, "2:15: webhook needs secret"},
		{"name: w\non: {webhook: {kind: github, secret: x, ref: run.id}}\nsteps:\n" + transform,
			"there is no run yet; only input"},
		{"name: w\non: {webhook: {kind: github, secret: x, ref: steps.a.output}}\nsteps:\n" + transform,
			"there are no steps yet"},
		{"name: w\non: {webhook: {kind: github, secret: x, ref: '1'}}\nsteps:\n" + transform,
			"gives int, but must give string"},
		{"name: w\non: {schedule: {cron: '* * * *'}}\nsteps:\n" + transform, "2:23: a schedule has five fields"},
		{"name: w\non: {schedule: {cron: '0 0 31 2 *'}}\nsteps:\n" + transform, "2:23: the schedule never occurs"},
		{"name: w\non: {schedule: {cron: '0 0 * * *', timezone: Mars/Base}}\nsteps:\n" + transform, "is not a time zone"},
		{"name: w\nlimits: {max_concurrency: 0}\nsteps:\n" + transform,
			"2:27: max_concurrency must be a whole number from 1"},
		{"name: w\nlimits: {deadline: 400d}\nsteps:\n" + transform, "2:20: deadline must be from 1s to 366d"},
		{"name: w\nlimits: {budget: {amount: 1, currency: USD}}\nsteps:\n" + transform, "2:18: budget needs window"},
		{"name: w\nlimits: {budget: {amount: -1, currency: usd, window: 1d}}\nsteps:\n" + transform,
			"2:27: amount must be above 0"},
		{"name: w\nlimits: {budget: {amount: 1, currency: usd, window: 1d}}\nsteps:\n" + transform,
			"2:40: currency must be three capital letters"},
		{"name: w\ninput: [1]\nsteps:\n" + transform, "2:8: input must be a JSON Schema"},
		{"name: w\ninput: {type: objekt}\nsteps:\n" + transform, "2:8: input is not a JSON Schema"},
		{"name: w\ninput: {properties: {a: {$ref: 'http://x/y'}}}\nsteps:\n" + transform,
			"2:8: input is not a JSON Schema: $ref is not supported"},
		{"name: w\ninput: {multipleOf: 1e-999999}\nsteps:\n" + transform,
			"2:8: input is not a JSON Schema: a number has an exponent"},
		{"name: w\nworkspace: a b\nsteps:\n" + transform, "2:12: workspace must be"},
		{"name: w\ndescription: " + strings.Repeat("x", 4097) + "\nsteps:\n" + transform,
			"2:14: description is longer than 4096 bytes"},
	} {
		got := problems(t, c.source).Error()
		if !strings.Contains("\n"+got, c.want) {
			t.Errorf("%.300s\ngives %.400s\nwant  %s", c.source, got, c.want)
		}
		if strings.Contains(got, "%!") {
			t.Errorf("%.100s: %s", c.source, got)
		}
	}
}

// TestParseAllProblems: all problems are reported at once, in order, with
// positions in the source.
func TestParseAllProblems(t *testing.T) {
	t.Parallel()
	source := "name: W\nsteps:\n" +
		"- {id: a, uses: wait, with: {for: x}, risk: low}\n" +
		"- {id: b, uses: worker.x, if: 'steps.zzz.output', for_each: '1'}\n" +
		"- {id: b, uses: worker.x, timeout: 2}\n" +
		"output: '${{ nope }}'\n"
	got := problems(t, source)
	if len(got) < 7 {
		t.Errorf("only %d problems:\n%v", len(got), got)
	}
	lines := strings.Split(source, "\n")
	for i, p := range got {
		if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > len([]rune(lines[p.Line-1]))+1 || p.Detail == "" {
			t.Errorf("%+v", p)
		}
		if i > 0 && (p.Line < got[i-1].Line || p.Line == got[i-1].Line && p.Column < got[i-1].Column) {
			t.Errorf("%+v stands after %+v", p, got[i-1])
		}
	}
}
