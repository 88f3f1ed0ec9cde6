package policy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// TestManual parses every policy in the manual and runs the tests in it.
func TestManual(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, page := range []string{"policy.md", "policy-language.md"} {
		source, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(source)
	}
	snippets, tests := 0, 0
	for i, part := range strings.Split(text.String(), "```yaml\n")[1:] {
		snippet, _, closed := strings.Cut(part, "```")
		if !closed {
			t.Fatalf("snippet %d has no end", i+1)
		}
		snippets++
		p, err := policy.Parse([]byte(snippet))
		if err != nil {
			t.Errorf("snippet %d does not parse:\n%v\n%s", i+1, err, snippet)
			continue
		}
		for _, r := range p.Test() {
			tests++
			if !r.Passed() {
				t.Errorf("snippet %d, test %q: %v", i+1, r.Name, r.Differences)
			}
		}
	}
	if snippets < 8 || tests < 6 {
		t.Errorf("the manual has only %d snippets with %d tests", snippets, tests)
	}
}
