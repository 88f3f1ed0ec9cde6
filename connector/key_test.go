package connector_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// TestTargetKey reads the test vectors of docs/connectors.md.
func TestTargetKey(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/connectors.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| `([0-9a-f]{64})` \\|$").FindAllStringSubmatch(string(page), -1)
	seen := make(map[string]bool)
	for _, row := range rows {
		if got := (connector.Call{Tenant: row[1], IdempotencyKey: row[2], Attempt: len(seen), ActionID: "act_1"}).TargetKey(); got != row[3] {
			t.Errorf("%s, %s: %s, the page says %s", row[1], row[2], got, row[3])
		}
		seen[row[3]] = true
	}
	if len(seen) < 3 {
		t.Errorf("the page has %d different vectors", len(seen))
	}
}
