package workflow_test

import (
	"os"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// TestManual parses every workflow in the manual, checks it against the
// editors' schema, and runs the tests that follow it.
func TestManual(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	schema := compiledSchema(t)
	var last *workflow.Definition
	workflows, tests := 0, 0
	for i, part := range strings.Split(string(text), "```yaml\n")[1:] {
		snippet, _, closed := strings.Cut(part, "```")
		if !closed {
			t.Fatalf("snippet %d has no end", i+1)
		}
		if strings.HasPrefix(snippet, "tests:") {
			for _, r := range workflow.RunTests(last, parseTests(t, last, snippet)) {
				tests++
				if !r.Passed() {
					t.Errorf("snippet %d, test %q: %v", i+1, r.Name, r.Differences)
				}
			}
			continue
		}
		workflows++
		if last, err = workflow.Parse([]byte(snippet)); err != nil {
			t.Fatalf("snippet %d does not parse:\n%v\n%s", i+1, err, snippet)
		}
		if err := schema.Validate(asEditorsSee(t, snippet)); err != nil {
			t.Errorf("snippet %d: %v", i+1, err)
		}
	}
	if workflows < 5 || tests < 3 {
		t.Errorf("the manual has only %d workflows and %d tests", workflows, tests)
	}
}

// TestExamples runs the tests of the examples.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"incident", "letter"} {
		source, err := os.ReadFile("../../examples/" + name + "/workflow.yaml")
		if err != nil {
			t.Fatal(err)
		}
		tests, err := os.ReadFile("../../examples/" + name + "/workflow.test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		d := mustParse(t, string(source))
		for _, r := range workflow.RunTests(d, parseTests(t, d, string(tests))) {
			if !r.Passed() {
				t.Errorf("%s, %q: %v", name, r.Name, r.Differences)
			}
		}
	}
}
