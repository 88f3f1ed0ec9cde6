package github_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/github"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	cfg := config(f)
	cfg.ActionInput = "gatehouse_action"
	c := newConnector(t, cfg)
	with := func(c connector.Call, change func(*connector.Call)) connector.Call {
		change(&c)
		return c
	}
	comment := call("comment", `{"body":"x"}`)
	for name, test := range map[string]struct {
		call connector.Call
		want string // where the first violation points to; "" for none
	}{
		"a comment": {comment, ""},
		"a merge":   {merge(), ""},
		"no commit": {
			with(merge(), func(c *connector.Call) { c.Target.Version = "main" }),
			"/target/version",
		},
		"no branch": {with(merge(), func(c *connector.Call) { c.CurrentState = "" }), "/current_state/base"},
		"another method": {
			with(merge(), func(c *connector.Call) { c.ProposedChange = `{"merge_method":"push"}` }),
			"/proposed_change/merge_method",
		},
		"another repository": {
			with(comment, func(c *connector.Call) { c.Target.EntityRef = "acme/other#1" }),
			"/target/entity_ref",
		},
		"a way out": {
			with(comment, func(c *connector.Call) { c.Target.EntityRef = "acme/../x#1" }),
			"/target/entity_ref",
		},
		"another entity": {
			with(comment, func(c *connector.Call) { c.Target.EntityType = "pull_request" }),
			"/target/entity_type",
		},
		"a version": {with(comment, func(c *connector.Call) { c.Target.Version = "1" }), "/target/version"},
		"a field that is not compared": {
			with(comment, func(c *connector.Call) { c.CurrentState = `{"milestone":1}` }),
			"/current_state/milestone",
		},
		"another's mark": {call("comment", `{"body":"x <!-- gatehouse:act_9 -->"}`), "/proposed_change/body"},
		"the action's input": {
			call("dispatch", `{"inputs":{"gatehouse_action":"x"},"ref":"main"}`),
			"/proposed_change/inputs/gatehouse_action",
		},
		"a branch to release": {call("release", `{"target_commitish":"main"}`), "/proposed_change/target_commitish"},
		"dots as a repository": {
			with(comment, func(c *connector.Call) { c.Target.EntityRef = "acme/..#1" }), "/target/entity_ref",
		},
		"a label of two": {call("add_label", `{"label":"a","x":1}`), "/proposed_change"},
		"no operation":   {call("force_push", `{}`), "/operation"},
	} {
		err := c.Validate(test.call)
		var invalid *gatehouse.Error
		got := ""
		if errors.As(err, &invalid) {
			got = invalid.Violations[0].Pointer
		}
		if got != test.want || (err == nil) != (test.want == "") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	// The message names the fields that can be compared, if any.
	for operation, want := range map[string]string{
		"comment":  "cannot be compared; these can: title, body, state, locked, labels",
		"dispatch": "cannot be compared",
	} {
		err := c.Validate(with(call(operation, `{"body":"x","ref":"main"}`),
			func(c *connector.Call) { c.CurrentState = `{"milestone":1}` }))
		var invalid *gatehouse.Error
		if !errors.As(err, &invalid) || !slices.ContainsFunc(invalid.Violations, func(v gatehouse.Violation) bool {
			return v.Detail == want
		}) {
			t.Errorf("%s: %v, want %q", operation, err, want)
		}
	}
	if len(f.log) != 0 {
		t.Errorf("called %q", f.log)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	cfg := config(f)
	cfg.Repositories = map[string]github.Repository{
		repo: {Operations: map[string]github.Operation{"comment": {Floor: 1}}},
	}
	c := newConnector(t, cfg)
	for operation, want := range map[string]gatehouse.RiskLevel{
		"comment": 1, "add_label": 3, "merge": 4, "release": 4, "dispatch": 4,
	} {
		if got := c.Floor(call(operation, `{}`)); got != want {
			t.Errorf("%s: level %d, want %d", operation, got, want)
		}
	}
	if d := c.Declarations(); len(d) != 1 ||
		d[0] != (connector.Declaration{Operation: "comment", EntityType: "issue", Level: 1}) {
		t.Errorf("%+v", d)
	}
	base := c.Fingerprint()
	cfg.Repositories = map[string]github.Repository{repo: {}}
	if newConnector(t, cfg).Fingerprint() != base {
		t.Error("levels are in the fingerprint")
	}
	cfg.ActionInput = "x"
	if newConnector(t, cfg).Fingerprint() == base {
		t.Error("the input is not in the fingerprint")
	}
	cfg.Repositories = map[string]github.Repository{"Acme/.github": {}, "acme/shop": {}} // of one owner
	cfg.Auth = github.Auth{App: &github.App{
		ClientID: "1", InstallationID: 1, PrivateKey: connector.Secret{Secret: "OTHER"},
	}}
	if _, err := github.New(t.Context(), cfg, secrets); err == nil ||
		!strings.Contains(err.Error(), "there is no secret") {
		t.Errorf("two spellings of an owner: %v", err)
	}
	configure := func() github.Config { return config(f) }
	connectortest.Refuses(t, github.New, configure, secrets, map[string]func(*github.Config){
		"at least one is needed": func(c *github.Config) { c.Repositories = nil },
		"is not owner/name":      func(c *github.Config) { c.Repositories = map[string]github.Repository{"shop": {}} },
		"exactly one of token":   func(c *github.Config) { c.Auth = github.Auth{} },
		"needs client_id":        func(c *github.Config) { c.Auth = github.Auth{App: &github.App{}} },
		"there is no secret":     func(c *github.Config) { c.Auth.Token = &connector.Secret{Secret: "OTHER"} },
		"cannot name an input":   func(c *github.Config) { c.ActionInput = "a b" },
		"there are add_label, cancel": func(c *github.Config) {
			c.Repositories = map[string]github.Repository{repo: {Operations: map[string]github.Operation{"x": {}}}}
		},
		"an internal address": func(c *github.Config) { c.AllowPrivate = false },
		"not github":          func(c *github.Config) { c.Type = "http" },
	})
}
