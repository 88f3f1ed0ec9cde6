package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// TestSimulatedSenders: a simulated run accepts an event only from senders in
// its from, like a real run.
func TestSimulatedSenders(t *testing.T) {
	t.Parallel()
	const source = `
name: ask
steps:
  - {id: reply, uses: wait, with: {event: go, %s until: 1h}}
`
	for _, c := range []struct{ from, by, status string }{
		{"", "", "succeeded"},
		{"", "by: ana,", "succeeded"},
		{"", "by: starter,", "succeeded"},
		{"", "by: kind:agent,", "failed_terminal"},
		{"from: [role:approver, ana],", "", "succeeded"},
		{"from: [role:approver, ana],", "by: ana,", "succeeded"},
		{"from: [role:approver, ana],", "by: role:approver,", "succeeded"},
		{"from: [role:approver, ana],", "by: kind:agent,", "failed_terminal"},
		{"from: [starter],", "by: ben,", "failed_terminal"},
	} {
		d, err := workflow.Parse([]byte(fmt.Sprintf(strings.Replace(source, "until: 1h", "timeout: 1h", 1), c.from)))
		if err != nil {
			t.Fatal(err)
		}
		tests, err := workflow.ParseTests(d, []byte(fmt.Sprintf(
			"tests:\n  - {name: one, steps: {reply: {signal: {n: 1}, %s after: 1m}}, expect: {status: %s}}\n", c.by,
			c.status)))
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range workflow.RunTests(d, tests) {
			if len(result.Differences) > 0 {
				t.Errorf("%s %s: %v", c.from, c.by, result.Differences)
			}
		}
	}
}
