package workflow_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

func mustParse(tb testing.TB, source string) *workflow.Definition {
	tb.Helper()
	d, err := workflow.Parse([]byte(source))
	if err != nil {
		tb.Fatalf("the workflow does not parse:\n%v", err)
	}
	return d
}

func triage(tb testing.TB) *workflow.Definition {
	tb.Helper()
	source, err := os.ReadFile("testdata/triage.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	return mustParse(tb, string(source))
}

// problems parses a workflow that must be refused.
func problems(tb testing.TB, source string) workflow.Problems {
	tb.Helper()
	_, err := workflow.Parse([]byte(source))
	var p workflow.Problems
	if !errors.As(err, &p) || len(p) == 0 {
		tb.Fatalf("expected workflow.Problems, got %T %v", err, err)
	}
	return p
}

// steps returns a workflow with the given steps, the first on line 3.
func steps(list ...string) string {
	return "name: w\nsteps:\n" + strings.Join(list, "\n") + "\n"
}

// made parses a transform with the given YAML as its `with`.
func made(tb testing.TB, with string) *workflow.Template {
	tb.Helper()
	d := mustParse(tb, steps("- {id: before, uses: transform, with: 1}", "- {id: un-even, uses: transform, with: 1}",
		"- id: a\n  uses: transform\n  needs: [before, un-even]\n  with: "+with))
	return d.Step("a").With
}

// at is the time of these tests' scopes.
var at = time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)

// scope has an input, and outputs for the steps of made.
func scope(input gatehouse.JSON, outputs ...gatehouse.JSON) *workflow.Scope {
	return &workflow.Scope{
		Input: input, Now: at,
		Run: &gatehouse.Run{ID: "run_1", Tenant: "default", Workflow: "w", Version: 3, Trigger: gatehouse.TriggerAPI,
			CreatedAt: at},
		Output: func(id string) (gatehouse.JSON, bool) {
			for i, known := range []string{"before", "un-even"} {
				if id == known && i < len(outputs) {
					return outputs[i], true
				}
			}
			return "", false
		},
	}
}
