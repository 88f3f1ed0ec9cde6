package cli

import (
	"os"
	"strings"
	"testing"
)

// TestManualPlan: the plan of the manual can be read, and is valid.
func TestManualPlan(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/policy.md")
	must(t, err)
	_, block, _ := strings.Cut(string(text), "```yml\n")
	block, _, _ = strings.Cut(block, "```")
	plan, err := readPlan([]byte(block))
	must(t, err)
	if err := plan.Validate(); err != nil || len(plan.Steps) != 1 {
		t.Errorf("%+v: %v", plan, err)
	}
}
