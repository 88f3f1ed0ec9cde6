package config_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

func TestTargetSources(t *testing.T) {
	t.Parallel()
	const rest = "connectors: {erp: {type: worker}, own: {type: worker, tenants: [acme]}}\n" +
		"secrets: {s: x, empty: \"\", kept: store:k}\n"
	const good = "connector: erp, secret: s, entity_type: item, entity_ref: /id"
	c, err := config.Parse("g.yaml", []byte(rest+"hooks: {targets: {erp: {"+good+"}}}"))
	if err != nil {
		t.Fatal(err)
	}
	want := config.TargetSource{
		Tenant: "default", Kind: "generic", Connector: "erp", Secret: "s", EntityType: "item", EntityRef: "/id",
	}
	if got := c.Hooks.Targets["erp"]; got != want {
		t.Errorf("%+v", got)
	}
	for src, want := range map[string]string{
		`"a b": {` + good + `}`:              "cannot name a source",
		"x: {" + good + ", tenant: \"a b\"}": "hooks.targets.x.tenant:",
		"x: {" + good +
			", kind: plain}": "hooks.targets.x.kind: must be generic, github or servicenow",
		"x: {" + good +
			", tenant: acme}": "hooks.targets.x.connector: \"erp\" does not list",
		"x: {" + strings.Replace(good, "erp", "own", 1) +
			"}": "hooks.targets.x.connector: \"own\" does not list",
		"x: {" + strings.Replace(good, "erp", "none", 1) + "}": "connectors has no entry",
		"x: {" + strings.Replace(good, "secret: s", "secret: empty", 1) +
			"}": "hooks.targets.x.secret: the secret \"empty\" is empty",
		"x: {" + strings.Replace(good, "secret: s", "secret: kept", 1) + "}": "the secret \"kept\" is in the store",
		"x: {connector: erp, entity_type: item, entity_ref: /id}":            "hooks.targets.x.secret:",
		"x: {connector: erp, secret: s, entity_ref: /id}":                    "hooks.targets.x.entity_type: is required",
		"x: {connector: erp, secret: s, entity_type: item}": "hooks.targets.x.entity_ref: must be a JSON " +
			"pointer",
		"x: {" + strings.Replace(good, "/id", "id", 1) + "}": "hooks.targets.x.entity_ref: must be a JSON pointer",
		"x: {" + good + ", version: v}":                      "hooks.targets.x.version: must be a JSON pointer",
		"x: {" + good + ", header: X-Token}":                 "unknown key header",
	} {
		if _, err := config.Parse("g.yaml", []byte(rest+"hooks:\n  targets:\n    "+src)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", src, err, want)
		}
	}
}
