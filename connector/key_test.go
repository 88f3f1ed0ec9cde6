package connector_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
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

// TestCheckKey: a key that describes its effect must describe the call's effect.
// The hash is that of `printf
// '{"assignment_group":"698982fe84b2166a10781503da092fef"}' | sha256sum`.
func TestCheckKey(t *testing.T) {
	t.Parallel()
	const hash = "a7d63b46c3fad1b193fef70f73624f99c0be4e557157bcf0d6145b6671fb1e0e"
	c := connector.Call{ProposedChange: `{"assignment_group":"698982fe84b2166a10781503da092fef"}`}
	for key, want := range map[string]int{
		"": 0, "act_1:1": 0, "sn:incident:id:" + hash: 0, "sn:incident:update:acme:id:" + hash: 0, "sn:incident:id": 0,
		"sn:incident:other:" + hash: 1, "sn:problem:id:" + hash: 1, "sn": 2,
		"sn:incident:id:0000000000000000000000000000000000000000000000000000000000000000": 1,
	} {
		var v gatehouse.Violations
		c.IdempotencyKey = key
		if c.CheckKey(&v, "sn", "incident", "id"); len(v) != want {
			t.Errorf("%q: %v", key, v)
		}
	}
}
