package workflow_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// FuzzParse feeds arbitrary sources: the parser never panics, a refusal names
// the position, and a parsed workflow can be evaluated, drawn and simulated.
func FuzzParse(f *testing.F) {
	real, err := os.ReadFile("testdata/triage.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, source := range []string{
		string(real), fan, waiting, steps(transform), "name: w\nsteps:\n- {id: a, uses: worker.x, needs: [a]}\n",
		steps("- {id: a, uses: transform, with: {a: ['x ${{ input.x }}', '${{ {\"a\": 1} }}', $${{ }}}"),
		"name: w\non: {schedule: {cron: '*/5 1-3 * jan sun', timezone: Europe/Berlin}}\ninput: {type: object}\nsteps:\n" +
			transform,
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		d, err := workflow.Parse([]byte(source))
		if err != nil {
			var p workflow.Problems
			if !errors.As(err, &p) || len(p) == 0 {
				t.Fatalf("%T %v is not a list of problems", err, err)
			}
			for _, one := range p {
				if one.Line < 1 || one.Column < 1 || one.Detail == "" {
					t.Fatalf("a problem without a place: %+v", one)
				}
			}
			return
		}
		if len(d.Steps) == 0 || !workflow.ValidName(d.Name) {
			t.Fatalf("%+v", d)
		}
		s := scope(`{"body":{"short_description":"x","sys_id":1.50},"x":[1,{"a":null}]}`,
			`{"json":{"confidence":0.9,"watchers":["a"]}}`)
		for _, step := range d.Steps {
			exercise(t, step, s)
		}
		readSVG(t, d.SVG(nil))
		_ = d.Text(nil)
		_ = workflow.Lint(d)
		_ = d.CheckInput(s.Input)
		if c := d.On.Schedule; c != nil {
			if next := c.Next(at); !next.IsZero() && !next.After(at) {
				t.Fatalf("%s comes at %s", c.Spec, next)
			}
		}
		for _, r := range workflow.RunTests(d, []*workflow.Test{{Name: "x", Now: at, Input: s.Input}}) {
			_ = d.Text(r.Run)
		}
	})
}

// exercise evaluates the expressions of a step: values are valid JSON, and
// errors have code invalid.
func exercise(t *testing.T, step *workflow.Step, s *workflow.Scope) {
	check := func(j gatehouse.JSON, err error) {
		if err != nil {
			if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				t.Fatalf("%s: %v", step.ID, err)
			}
			return
		}
		if again, err := gatehouse.Canonicalize([]byte(j)); err != nil || again != j || len(j) > workflow.MaxOutput {
			t.Fatalf("%s gives %.200s, which is %.200s, %v", step.ID, j, again, err)
		}
	}
	if step.If != nil {
		_, err := step.If.Bool(s)
		check("null", err)
	}
	if step.ForEach != nil {
		items, err := step.ForEach.List(s)
		check(gatehouse.ArrayJSON(items...), err)
		inside := *s
		inside.HasItem, inside.Item = true, `{"id":1}`
		s = &inside
	}
	if step.IdempotencyKey != nil {
		text, err := step.IdempotencyKey.Text(s)
		check(gatehouse.StringJSON(text), err)
	}
	if step.With == nil {
		return
	}
	with, err := step.With.Eval(s)
	check(with, err)
	if err == nil && step.Kind.Proposes() {
		_, err := step.Proposal(with)
		check("null", err)
	}
	if err == nil && step.Kind == workflow.KindWait {
		_, _, err := step.WaitFor(with, at)
		check("null", err)
	}
}

// FuzzTemplate feeds arbitrary templates and inputs.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{
		"${{ input }}", "a ${{ input.x }} b", "$${{", "${{ '}}' }}", "${{ {'a': {'b': [1.5, 2]}} }}", "${{ r'\\' }}",
		"}}${{ 1 }}", "${{ json(input) }}",
		"${{ input.x.map(v, v * 2) }}", "${{ sum([0.1, 0.2]) * 1e3 }}", "${{ sha256(input) + string(now) }}",
		"${{ // x }} }}",
	} {
		f.Add(text, `{"x":[1,2.50,12345678901234567890]}`)
	}
	f.Fuzz(func(t *testing.T, text, input string) {
		j, err := gatehouse.Canonicalize([]byte(input))
		if err != nil {
			return
		}
		source := gatehouse.ObjectJSON(
			gatehouse.Member{Name: "name", Value: `"w"`},
			gatehouse.Member{Name: "steps", Value: gatehouse.ArrayJSON(gatehouse.ObjectJSON(
				gatehouse.Member{Name: "id", Value: `"a"`}, gatehouse.Member{Name: "uses", Value: `"transform"`},
				gatehouse.Member{Name: "with", Value: gatehouse.StringJSON(text)}))})
		d, err := workflow.Parse([]byte(source))
		if err != nil {
			return
		}
		exercise(t, d.Steps[0], scope(j))
		if !strings.Contains(text, "${{") {
			if got, err := d.Steps[0].With.Eval(scope(j)); err != nil || got != gatehouse.StringJSON(text) {
				t.Fatalf("%q gives %s, %v", text, got, err)
			}
		}
	})
}
