package workflow_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

func compiledSchema(tb testing.TB) *jsonschema.Schema {
	tb.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(workflow.Schema())))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("workflow.json", doc); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile("workflow.json")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// asEditorsSee converts YAML to the JSON that an editor validates.
func asEditorsSee(tb testing.TB, source string) any {
	tb.Helper()
	var v any
	if err := yaml.Load([]byte(source), &v); err != nil {
		tb.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// TestSchemaTakes: the schema accepts what the parser accepts.
func TestSchemaTakes(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	real, err := os.ReadFile("testdata/triage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{
		string(real), fan, waiting, steps(transform),
		steps("- {id: a, uses: worker.x, if: true, for_each: '[1]', max_items: 1, retry: {max: 0, backoff: [1h30m, 2d]}, " +
			"timeout: 1.5s}"),
		steps("- {id: a, uses: model.x, with: {model: m, prompt: p, temperature: 0.2, max_tokens: '${{ input.n }}', json: " +
			"'${{ input.j }}'}}"),
		steps("- {id: a, uses: wait, with: {event: '${{ input.e }}', timeout: '${{ input.t }}'}}"),
		steps("- {id: a, uses: approval, with: {change: '${{ input.c }}', evaluations: '${{ input.e }}', expires_in: 4h}}"),
		"name: w\nlimits: {budget: {amount: 5.00, currency: USD, window: 30d}}\nsteps:\n" + transform,
	} {
		mustParse(t, source)
		if err := schema.Validate(asEditorsSee(t, source)); err != nil {
			t.Errorf("%s\n%v", source, err)
		}
	}
}

// TestSchemaRefuses: the schema refuses what an editor can detect.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for _, source := range []string{
		"name: W\nsteps:\n" + transform,
		"name: w\nsteps: []",
		"name: w\ntitle: w\nsteps:\n" + transform,
		"name: w\non: {webhook: {kind: slack, secret: s}}\nsteps:\n" + transform,
		"name: w\nlimits: {budget: {amount: 1, currency: usd, window: 1d}}\nsteps:\n" + transform,
		steps("- {id: A, uses: transform, with: 1}"),
		steps("- {id: a, uses: transform}"),
		steps("- {id: a, uses: transmute, with: 1}"),
		steps("- {id: a, uses: transform, with: 1, within: 1}"),
		steps("- {id: a, uses: worker.x, timeout: soon}"),
		steps("- {id: a, uses: worker.x, retry: {max: 21}}"),
		steps("- {id: a, uses: worker.x, max_items: 1001}"),
		steps("- {id: a, uses: approval, risk: extreme}"),
		steps("- {id: a, uses: approval, with: {target: {}}}"),
		steps("- {id: a, uses: approval, action_type: UPPER}"),
		steps("- {id: a, uses: connector.s.update, with: {target: {}, change: {}}}"),
		steps("- {id: a, uses: connector.s.update, action_type: x, with: {change: {}}}"),
		steps("- {id: a, uses: connector.s.update, action_type: x, with: {target: {ref: 1}, change: {}}}"),
		steps("- {id: a, uses: connector.s.update, action_type: x, with: {target: {}, change: {}, chnage: {}}}"),
		steps("- {id: a, uses: model.x, with: {model: m}}"),
		steps("- {id: a, uses: wait, with: {for: 1h, event: x}}"),
		steps("- {id: a, uses: wait, with: {timeout: 1h}}"),
	} {
		if _, err := workflow.Parse([]byte(source)); err == nil {
			t.Errorf("the parser accepts\n%s", source)
		}
		if err := schema.Validate(asEditorsSee(t, source)); err == nil {
			t.Errorf("the schema accepts\n%s", source)
		}
	}
}

// TestSchemaKeys: schema and parser know the same keys everywhere.
func TestSchemaKeys(t *testing.T) {
	t.Parallel()
	type object struct {
		Properties map[string]*object `json:"properties"`
		Items      *object            `json:"items"`
		Defs       map[string]*object `json:"$defs"`
		Ref        string             `json:"$ref"`
		AnyOf      []*object          `json:"anyOf"`
	}
	var schema object
	if err := json.Unmarshal(workflow.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	defs := schema.Defs
	in := map[string]*object{
		"a workflow": &schema, "on": defs["on"], "webhook": defs["on"].Properties["webhook"],
		"schedule": defs["on"].Properties["schedule"],
		"limits":   defs["limits"], "budget": defs["limits"].Properties["budget"], "a step": defs["step"],
		"retry":             defs["step"].Properties["retry"],
		"with of connector": defs["proposal"], "with of approval": defs["proposal"], "with of model": defs["model"],
		"with of wait":  defs["wait"],
		"target":        defs["proposal"].Properties["target"].AnyOf[1],
		"magnitude":     defs["proposal"].Properties["magnitude"].AnyOf[1],
		"artifact_diff": defs["proposal"].Properties["artifact_diff"].AnyOf[1],
		"about":         defs["proposal"].Properties["about"].AnyOf[1],
		"on_rejected":   defs["refusal"].AnyOf[1], "on_expired": defs["refusal"].AnyOf[1],
	}
	parser := workflow.Keys()
	for what, o := range in {
		want := slices.Sorted(maps.Keys(o.Properties))
		got := slices.Sorted(slices.Values(parser[what]))
		if what == "with of approval" {
			got = slices.Sorted(slices.Values(append(got, "target"))) // both kinds share one definition
		}
		if what == "with of connector" {
			got = slices.Sorted(slices.Values(append(got, "title", "about")))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (schema, parser): %s", what, diff)
		}
	}
	for what := range parser {
		if in[what] == nil {
			t.Errorf("the schema is not compared for %s", what)
		}
	}
}
