package servicenow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/servicenow"
)

// TestValidate lists the proposals that are refused, and the members that the errors name.
func TestValidate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	plain, ruled := w.connector(t, nil), w.connector(t, conditional)
	good := w.update()
	sha := good.ChangeHash()
	for name, test := range map[string]struct {
		change func(*connector.Call)
		want   string // pointers; "" for nothing
		ruled  bool
	}{
		"good": {func(*connector.Call) {}, "", false},
		"no guard": {
			func(c *connector.Call) { c.CurrentState, c.Target.Version = "", "" }, "/current_state", false,
		},
		"no version": {func(c *connector.Call) { c.Target.Version = "" }, "/target/version", true},
		"the rule's own field": {
			func(c *connector.Call) {
				c.ProposedChange = `{"u_gatehouse_expected":"1"}`
			}, "/proposed_change/u_gatehouse_expected", true,
		},
		"a system field": {
			func(c *connector.Call) { c.ProposedChange = `{"sys_mod_count":"1"}` }, "/proposed_change", false,
		},
		"a journal": {
			func(c *connector.Call) { c.ProposedChange = `{"work_notes":"x"}` }, "/proposed_change", false,
		},
		"the key's field": {
			func(c *connector.Call) { c.ProposedChange = `{"correlation_id":"x"}` }, "/proposed_change", false,
		},
		"another spelling": {
			func(c *connector.Call) { c.ProposedChange = `{"State":"x"}` }, "/proposed_change", false,
		},
		"an object": {
			func(c *connector.Call) { c.ProposedChange = `{"state":{}}` }, "/proposed_change/state", false,
		},
		"nothing": {func(c *connector.Call) { c.ProposedChange = `{}` }, "/proposed_change", false},
		"another table": {
			func(c *connector.Call) { c.Target.EntityType = "sys_user" }, "/target/entity_type", false,
		},
		"its other spelling": {
			func(c *connector.Call) { c.Target.EntityType = "Incident" }, "/target/entity_type", false,
		},
		"a number": {
			func(c *connector.Call) { c.Target.EntityRef = "INC0010001" }, "/target/entity_ref", false,
		},
		"a way out": {
			func(c *connector.Call) { c.Target.EntityRef = "../sys_user/1" }, "/target/entity_ref", false,
		},
		"several": {
			func(c *connector.Call) { c.Target.EntityRefs = []string{"a"} }, "/target/entity_refs", false,
		},
		"no operation": {func(c *connector.Call) { c.Operation = "delete" }, "/operation", false},
		"a group by name": {
			func(c *connector.Call) {
				c.Operation, c.ProposedChange = "assign", `{"assignment_group":"Network"}`
			}, "/proposed_change/assignment_group", false,
		},
		"HTML": {
			func(c *connector.Call) {
				c.Operation, c.ProposedChange = "comment", `{"text":"[CODE]<b>x[/CODE]"}`
			}, "/proposed_change/text", false,
		},
		"a query in a label": {
			func(c *connector.Call) {
				c.Operation, c.ProposedChange = "add_label", `{"label":"a^nameLIKEb"}`
			}, "/proposed_change/label", false,
		},
		"a script in a label": {
			func(c *connector.Call) {
				c.Operation, c.ProposedChange = "add_label", `{"label":"javascript:gs.x()"}`
			}, "/proposed_change/label", false,
		},
		"a pre-image of a new": {func(c *connector.Call) { c.Operation = "create" }, "/current_state", false},
		"the key of the effect": {
			func(c *connector.Call) { c.IdempotencyKey = "sn:incident:" + w.incident + ":" + sha }, "", false,
		},
		"and its longer form": {
			func(c *connector.Call) {
				c.IdempotencyKey = "sn:incident:update:acme:" + w.incident + ":" + sha
			}, "", false,
		},
		"without a hash": {
			func(c *connector.Call) { c.IdempotencyKey = "sn:incident:update:" + w.incident }, "", false,
		},
		"another one's": {
			func(c *connector.Call) { c.IdempotencyKey = "sn:incident:0:" + sha }, "/idempotency_key", false,
		},
		"another change's": {func(c *connector.Call) {
			c.IdempotencyKey = "sn:incident:" + w.incident + ":" + strings.Repeat("0", 64)
		}, "/idempotency_key", false},
		"a key of any form": {func(c *connector.Call) { c.IdempotencyKey = "snow:1" }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, c := good, plain
			if test.ruled {
				c = ruled
			}
			test.change(&call)
			err := c.Validate(call)
			if got := pointers(err); got != test.want {
				t.Errorf("%q, want %q: %v", got, test.want, err)
			}
			if test.want == "" {
				return
			}
			_, err = c.Execute(t.Context(), call)
			wantFailure(t, err, connector.Terminal, "invalid")
		})
	}
	t.Cleanup(func() {
		if w.requests.Load() != 0 {
			t.Error("something was sent")
		}
	})
}

// pointers lists the JSON pointers in an error.
func pointers(err error) string {
	var all []string
	var invalid *gatehouse.Error
	if errors.As(err, &invalid) {
		for _, v := range invalid.Violations {
			all = append(all, v.Pointer)
		}
	}
	return strings.Join(all, " ")
}

func TestLevels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.connector(t, func(cfg *servicenow.Config) {
		cfg.Tables["incident"] = servicenow.Table{
			Fields:     connector.FieldLevels{"urgency": 2, "state": 4},
			Operations: map[string]servicenow.Operation{"work_note": {Floor: 1}, "create": {Floor: 5}},
		}
	})
	for _, test := range []struct {
		table, operation string
		change           gatehouse.JSON
		want             gatehouse.RiskLevel
	}{
		{"incident", "update", `{"urgency":"1"}`, 2},
		{"incident", "update", `{"impact":"1","urgency":"1"}`, 3},
		{"incident", "update", `{"state":"1","urgency":"1"}`, 4},
		{"incident", "work_note", `{"text":"x"}`, 1},
		{"incident", "comment", `{"text":"x"}`, 3},
		{"incident", "create", `{"urgency":"1"}`, 5},
		{"change_request", "work_note", `{"text":"x"}`, 3},
		{"change_request", "create", `{"urgency":"1"}`, 4},
		{"change_request", "update", `{"urgency":"1"}`, 3},
		{"incident", "no_such", `{}`, 5},
	} {
		call := w.call(test.operation, test.change)
		call.Target.EntityType = test.table
		op, _ := c.Operation(test.operation)
		if got := connector.FloorOf(c, op, call); got != test.want {
			t.Errorf("%s of %s %s: level %d, want %d", test.operation, test.table, test.change, got, test.want)
		}
	}
	want := []connector.Declaration{
		{Operation: "update", EntityType: "incident", Field: "state", Level: 4},
		{Operation: "update", EntityType: "incident", Field: "urgency", Level: 2},
		{Operation: "assign", EntityType: "incident", Field: "state", Level: 4},
		{Operation: "assign", EntityType: "incident", Field: "urgency", Level: 2},
		{Operation: "create", EntityType: "incident", Level: 5},
		{Operation: "work_note", EntityType: "incident", Level: 1},
	}
	got := c.Declarations()
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

// TestFingerprint: the fingerprint covers the address and the user, but not the levels.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	connectortest.Fingerprint(t, servicenow.New, newWorld(t, nil).config, secrets, map[string]func(*servicenow.Config){
		"instance":  func(c *servicenow.Config) { c.Instance += "/x" },
		"user":      func(c *servicenow.Config) { c.Auth.Basic.Username = "other" },
		"tables":    func(c *servicenow.Config) { delete(c.Tables, "incident") },
		"condition": conditional,
	}, map[string]func(*servicenow.Config){
		"timeout": func(c *servicenow.Config) { c.Timeout = gatehouse.Span(soon) },
		"tenants": func(c *servicenow.Config) { c.Tenants = []string{"acme"} },
		"levels": func(c *servicenow.Config) {
			c.Tables["incident"] = servicenow.Table{Fields: connector.FieldLevels{"state": 1}}
		},
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	connectortest.Refuses(t, servicenow.New, w.config, secrets, map[string]func(*servicenow.Config){
		"instance: is required":     func(c *servicenow.Config) { c.Instance = "" },
		"an internal address":       func(c *servicenow.Config) { c.AllowPrivate = false },
		"tables: at least one":      func(c *servicenow.Config) { c.Tables = nil },
		"is not a valid table name": func(c *servicenow.Config) { c.Tables["a/b"] = servicenow.Table{} },
		"there are update, assign": func(c *servicenow.Config) {
			c.Tables["a"] = servicenow.Table{Operations: map[string]servicenow.Operation{"x": {}}}
		},
		"must be 1 to 5": func(c *servicenow.Config) {
			c.Tables["a"] = servicenow.Table{Operations: map[string]servicenow.Operation{"update": {Floor: 6}}}
		},
		"exactly one of basic and oauth": func(c *servicenow.Config) { c.Auth = servicenow.Auth{} },
		"there is no secret OTHER": func(c *servicenow.Config) {
			c.Auth.Basic = &servicenow.Basic{Username: "gate", Password: connector.Secret{Secret: "OTHER"}}
		},
		"username: is missing, or has a colo": func(c *servicenow.Config) {
			c.Auth.Basic = &servicenow.Basic{Username: "a:b"}
		},
		"is not a valid field name": func(c *servicenow.Config) {
			c.Condition = &servicenow.Condition{Field: "a b"}
		},
		`type: is "http", not servicenow`: func(c *servicenow.Config) { c.Type = "http" },
	})
}
