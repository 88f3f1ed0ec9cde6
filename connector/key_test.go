package connector_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// TestTargetKey compares the key with that of the command in docs/connectors.md:
// printf 'gatehouse/idempotency-key/1\n%s\n%s' default act_1:1 | sha256sum.
func TestTargetKey(t *testing.T) {
	t.Parallel()
	for i, row := range [][3]string{
		{"default", "act_1:1", "5a3720b54cb9391cb517b4dd59da43103af5a1eb5685d70f3db63b0050699219"},
		{"acme", "act_1:1", "38192aec448c928e58fc78daf227c1cce16100d6a26c19072f0a96b2ae0b7f6a"},
		{"default", "refund-4711", "1eaf154927960be804687576c66d80a80aa5a5471372a15d76a71823544c9b84"},
	} {
		c := connector.Call{Tenant: row[0], IdempotencyKey: row[1], Attempt: i, ActionID: "act_1"}
		if got := c.TargetKey(); got != row[2] {
			t.Errorf("%s, %s: %s, want %s", row[0], row[1], got, row[2])
		}
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
