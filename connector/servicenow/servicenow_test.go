package servicenow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/servicenow"
	"github.com/gatehouse-dev/gatehouse/internal/snowtest"
)

var noTime = connectortest.Not("a password does not contain the time", connectortest.Skewed)

// The target is a fake that follows ServiceNow's documentation of the Table API, and ignores,
// rewrites and hides fields as ServiceNow does. The suite runs with class C, which reads before it
// writes, and with class B and the business rule.
func TestConformance(t *testing.T) {
	t.Parallel()
	for class, test := range map[string]struct {
		fake   func(*snowtest.Options)
		config func(*servicenow.Config)
	}{"C": {}, "B": {withRule, conditional}} {
		t.Run(class, func(t *testing.T) {
			connectortest.Run(t, connectortest.Harness{Skip: noTime, New: func(t *testing.T) *connectortest.Fixture {
				w := newWorld(t, test.fake)
				cfg := w.config()
				if test.config != nil {
					test.config(&cfg)
				}
				return &connectortest.Fixture{
					Connector: w.connector(t, test.config),
					Call:      w.update(),
					Disturb:   func(*testing.T) { w.Touch(w.incident, map[string]string{"state": "3"}) },
					Read: func(*testing.T) gatehouse.JSON {
						return gatehouse.StringJSON(w.Incident(w.incident)["state"])
					},
					Effects: func(*testing.T) int { return len(w.Writes()) },
					Secrets: []string{password},
					Server:  w.http, Field: "state", Value: [2]string{`"2"`, `"3"`},
					Expired: connectortest.WithSecret(servicenow.New, cfg, "pass-that-has-expired"),
				}
			}})
		})
	}
}

// TestConformanceOfCreate: each call creates a new record.
func TestConformanceOfCreate(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Harness{Skip: noTime, New: func(t *testing.T) *connectortest.Fixture {
		w := newWorld(t, nil)
		call := w.call("create", `{"short_description":"Printer on fire"}`)
		call.Target.EntityRef = "printer-fire"
		return &connectortest.Fixture{
			Connector: w.connector(t, nil), Call: call, Creates: true,
			Read:    func(*testing.T) gatehouse.JSON { return gatehouse.MustJSON(len(w.Writes())) },
			Effects: func(*testing.T) int { return len(w.Writes()) },
			Secrets: []string{password},
			Server:  w.http, Field: "short_description", Value: [2]string{"fire", "ice"},
			Expired: connectortest.WithSecret(servicenow.New, w.config(), "pass-that-has-expired"),
		}
	}})
}

// TestUpdate: the update sends exactly the approved change, and its result describes the reversal.
func TestUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.connector(t, nil)
	call := w.call("update", gatehouse.MustJSON(map[string]any{"urgency": 1, "short_description": "VPN — down"}))
	call.CurrentState = `{"short_description":"Can't reach the VPN"}`
	res, err := c.Execute(t.Context(), call)
	connectortest.Must(t, err)
	want := []snowtest.Write{
		{
			Method:   "PATCH",
			Table:    "incident",
			SysID:    w.incident,
			User:     "gate",
			ModCount: "1",
			Sent: map[string]string{
				"urgency":           "1",
				"short_description": "VPN — down",
			},
			Changed: []string{"short_description", "urgency"},
		},
	}
	got := w.Writes()
	got[0].At = want[0].At
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if res.ExternalID != "INC0010001" ||
		res.Reversal.ProposedChange != `{"short_description":"Can't reach the VPN","urgency":"2"}` ||
		res.Reversal.Target.Version != "1" {
		t.Errorf("%s, %+v", res.ExternalID, res.Reversal)
	}
	if !strings.Contains(string(res.RequestMetadata), `"Authorization":"[redacted]"`) {
		t.Error(res.RequestMetadata)
	}
}

// TestReversalIsChecked: an assignment is reversed only while it is still in place.
func TestReversalIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.connector(t, nil)
	call := w.call("assign", gatehouse.MustJSON(map[string]string{"assignment_group": w.network}))
	call.CurrentState = gatehouse.MustJSON(map[string]string{"assignment_group": w.desk})
	res, err := c.Execute(t.Context(), call)
	if err != nil || w.Incident(w.incident)["assignment_group"] != w.network {
		t.Fatal(err)
	}
	back := call
	back.Operation, back.Target = res.Reversal.Operation, res.Reversal.Target
	back.CurrentState, back.ProposedChange = res.Reversal.CurrentState, res.Reversal.ProposedChange
	w.Touch(w.incident, map[string]string{"assignment_group": ""})
	_, err = c.Execute(t.Context(), back)
	wantFailure(t, err, connector.Terminal, "target_changed")
	// Other changes of the record, such as by an SLA, do not matter.
	w.Touch(w.incident, map[string]string{"assignment_group": w.network, "urgency": "1"})
	if _, err := c.Execute(t.Context(), back); err != nil || w.Incident(w.incident)["assignment_group"] != w.desk {
		t.Errorf("%v, %v", err, w.Incident(w.incident))
	}
}

// TestNotAsApproved: a 200 proves nothing.
func TestNotAsApproved(t *testing.T) {
	t.Parallel()
	both := gatehouse.JSON(`{"state":"2","urgency":"1"}`)
	for name, test := range map[string]struct {
		fake   func(*snowtest.Options)
		change gatehouse.JSON
		kind   connector.Kind
		code   string
		sent   int64
	}{
		"all of it dropped": {
			func(o *snowtest.Options) {
				o.Locked = []string{"incident.state"}
			}, `{"state":"2"}`, connector.Terminal, "not_as_approved", 1,
		},
		"a part of it": {
			func(o *snowtest.Options) {
				o.Locked = []string{"incident.state"}
			}, both, connector.Ambiguous, "not_as_approved", 1,
		},
		"another value by it": {rewrites("state", "6"), `{"state":"2"}`, connector.Ambiguous, "not_as_approved", 1},
		"a rule aborts": {func(o *snowtest.Options) {
			o.Rule = func(string, map[string]string, map[string]string) bool { return false }
		}, both, connector.Terminal, "http_403", 1},
		"no such field":      {nil, `{"no_such_field":"2"}`, connector.Terminal, "invalid", 0},
		"the fixed priority": {nil, `{"priority":"1"}`, connector.Terminal, "not_as_approved", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.fake)
			call := w.update()
			call.ProposedChange = test.change
			_, err := w.connector(t, nil).Execute(t.Context(), call)
			wantFailure(t, err, test.kind, test.code)
			if w.changes.Load() != test.sent {
				t.Errorf("%d writes were sent", w.changes.Load())
			}
		})
	}
}

// rewrites is a business rule that sets a field to a fixed value.
func rewrites(field, value string) func(*snowtest.Options) {
	return func(o *snowtest.Options) {
		o.Rule = func(_ string, _, write map[string]string) bool {
			write[field] = value
			return true
		}
	}
}

// TestCondition: another client writes between the connector's read and its write. The rule refuses
// the connector's write; without it the write succeeds, which is why the class is C.
func TestCondition(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fake   func(*snowtest.Options)
		config func(*servicenow.Config)
		state  string
	}{"with the rule": {withRule, conditional, "3"}, "without": {nil, nil, "2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.fake)
			c := w.connector(t, test.config)
			w.whenWriting(func() { w.Touch(w.incident, map[string]string{"state": "3"}) })
			_, err := c.Execute(t.Context(), w.update())
			if test.fake != nil {
				wantFailure(t, err, connector.Terminal, "target_changed")
			} else if err != nil {
				t.Error(err)
			}
			if got := w.Incident(w.incident)["state"]; got != test.state {
				t.Errorf("state %s", got)
			}
			if c.Conditional(w.update()) != (test.fake != nil) || c.Conditional(w.call("work_note", `{"text":"x"}`)) {
				t.Error("what is conditional")
			}
		})
	}
}

// TestJournal: a note is found again by the action's id, and only a note that was found counts.
func TestJournal(t *testing.T) {
	t.Parallel()
	for operation, field := range map[string]string{"work_note": "work_notes", "comment": "comments"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			c := w.connector(t, nil)
			call := w.call(operation, `{"text":"Moved.\nSorry."}`)
			found(t, c, call, connector.Inconclusive)
			for range 2 { // the second attempt finds the first one's note
				if res, err := c.Execute(t.Context(), call); err != nil || res.ExternalID != "INC0010001" ||
					res.Reversal != nil {
					t.Fatalf("%v, %+v", err, res)
				}
			}
			if got := w.Journal(w.incident, field); len(got) != 1 ||
				got[0].Text != "Moved.\nSorry.\n\n[gatehouse act_1]" {
				t.Errorf("%+v", got)
			}
			found(t, c, call, connector.Present)
			other := call
			other.ActionID = "act_2"
			found(t, c, other, connector.Inconclusive)
		})
	}
	t.Run("unread", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, func(o *snowtest.Options) { o.Hidden = []string{"sys_journal_field"} })
		_, err := w.connector(t, nil).Execute(t.Context(), w.call("work_note", `{"text":"x"}`))
		wantFailure(t, err, connector.Ambiguous, "not_confirmed")
	})
	t.Run("dropped", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, func(o *snowtest.Options) { o.Locked = []string{"incident.work_notes"} })
		_, err := w.connector(t, nil).Execute(t.Context(), w.call("work_note", `{"text":"x"}`))
		wantFailure(t, err, connector.Ambiguous, "not_confirmed")
	})
}

func TestLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.connector(t, nil)
	labels := func(want ...string) {
		t.Helper()
		if got := w.Labels(w.incident); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("labels %q, want %q", got, want)
		}
	}
	add := w.call("add_label", `{"label":"vip"}`)
	found(t, c, add, connector.Inconclusive)
	res, err := c.Execute(t.Context(), add)
	if err != nil || res.Reversal == nil {
		t.Fatal(err)
	}
	labels("vip")
	found(t, c, add, connector.Present)
	// Adding the label again changes nothing, so there is nothing to reverse.
	if res, err := c.Execute(t.Context(), add); err != nil || res.Reversal != nil {
		t.Errorf("%v, %+v", err, res.Reversal)
	}
	back := add
	back.Operation, back.Target = res.Reversal.Operation, res.Reversal.Target
	back.ProposedChange = res.Reversal.ProposedChange
	undone, err := c.Execute(t.Context(), back)
	if err != nil || undone.Reversal.Operation != "add_label" {
		t.Fatal(err)
	}
	labels()
	if res, err := c.Execute(t.Context(), back); err != nil || res.Reversal != nil {
		t.Errorf("removed twice: %v", err)
	}
	if n := len(w.Writes()); n != 2 {
		t.Errorf("%d writes", n)
	}
	_, err = c.Execute(t.Context(), w.call("add_label", `{"label":"unknown"}`))
	wantFailure(t, err, connector.Terminal, "no_such_label")

	// By default, only the role maint may write these two fields.
	locked := newWorld(
		t,
		func(o *snowtest.Options) { o.Locked = []string{"label_entry.table", "label_entry.table_key"} },
	)
	_, err = locked.connector(t, nil).Execute(t.Context(), locked.call("add_label", `{"label":"vip"}`))
	wantFailure(t, err, connector.Ambiguous, "not_as_approved")
}

// TestCreate: the answer is lost after the record was created; the record is found by its
// correlation_id, and no second one is created.
func TestCreate(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"incident", "change_request"} {
		w := newWorld(t, nil)
		c := w.connector(t, nil)
		call := w.call("create", `{"short_description":"Printer on fire"}`)
		call.Target = gatehouse.Target{EntityType: table, EntityRef: "printer-fire"}
		found(t, c, call, connector.Inconclusive)
		w.breaks(snowtest.Fault{Drop: true}, false)
		_, err := c.Execute(t.Context(), call)
		wantFailure(t, err, connector.Ambiguous, "connection_lost")
		w.mend()
		made := found(t, c, call, connector.Present)
		if res, err := c.Execute(
			t.Context(),
			call,
		); err != nil || made.ExternalID == "" || res.ExternalID != made.ExternalID ||
			len(w.Writes()) != 1 {
			t.Errorf("%v, %q after %q, %d writes", err, res.ExternalID, made.ExternalID, len(w.Writes()))
		}
		if sent := w.Writes()[0].Sent; sent["correlation_id"] != call.TargetKey() {
			t.Errorf("%v", sent)
		}
		// The same key of another tenant makes another record.
		call.Tenant = "acme"
		if _, err := c.Execute(t.Context(), call); err != nil || len(w.Writes()) != 2 {
			t.Error(err)
		}
	}
}
