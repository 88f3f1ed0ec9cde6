package servicenow_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/internal/snowtest"
)

// retried makes a call again and reads it back. wrong is part of the detail if the effect of the first call is not
// as approved, and "" if it is.
func (w *world) retried(t *testing.T, again connector.Call, wrong string) {
	t.Helper()
	c := w.connector(t, nil)
	again.Attempt++
	res, err := c.Execute(t.Context(), again)
	want := connector.Present
	if wrong == "" {
		connectortest.Must(t, err)
	} else {
		want = connector.Inconclusive
		wantFailure(t, err, connector.Ambiguous, "not_as_approved")
		if e := failure(t, err); e != nil && !strings.Contains(e.Detail, wrong) {
			t.Errorf("the detail is %q", e.Detail)
		}
	}
	found(t, c, again, want)
	if res.ExternalID == "" || len(w.Writes()) != 1 {
		t.Errorf("%q, %d writes", res.ExternalID, len(w.Writes()))
	}
}

// tidies is an instance that stores numbers in its own form, and other line ends and no white space at the ends of a
// text.
func tidies(o *snowtest.Options) {
	o.Rule = func(_ string, _, write map[string]string) bool {
		for name, value := range write {
			write[name] = strings.ReplaceAll(strings.TrimSpace(value), "\n", "\r\n")
		}
		if write["urgency"] == "1.0" {
			write["urgency"] = "1"
		}
		return true
	}
}

// TestCreateRetried: the record of an earlier call is compared with what was approved.
func TestCreateRetried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit  map[string]string
		wrong string
	}{
		"the same":              {nil, ""},
		"a field of its own":    {map[string]string{"state": "2", "assigned_to": "ana"}, ""},
		"another description":   {map[string]string{"description": "Smoke"}, `description is "Smoke" instead of "Smoke.`},
		"another urgency":       {map[string]string{"urgency": "3"}, `urgency is "3" instead of "1.0"`},
		"no short description":  {map[string]string{"short_description": ""}, `short_description is ""`},
		"another reference":     {map[string]string{"assignment_group": ""}, "assignment_group is "},
		"another boolean value": {map[string]string{"active": "false"}, `active is "false" instead of "true"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tidies)
			create := w.call("create", gatehouse.JSON(`{"active":true,"assignment_group":"`+w.network+
				`","description":"Smoke.\nFire. \n","short_description":" Printer on fire","urgency":1.0}`))
			create.Target.EntityRef = "printer-fire"
			_, err := w.connector(t, nil).Execute(t.Context(), create)
			connectortest.Must(t, err)
			w.Touch(w.Writes()[0].SysID, test.edit)
			w.retried(t, create, test.wrong)
		})
	}
}

// TestNoteRetried: the note of an earlier call is compared with what was approved.
func TestNoteRetried(t *testing.T) {
	t.Parallel()
	for operation, field := range map[string]string{"work_note": "work_notes", "comment": "comments"} {
		w := newWorld(t, tidies)
		note := w.call(operation, `{"text":"Moved. \nSorry.\n"}`)
		_, err := w.connector(t, nil).Execute(t.Context(), note)
		connectortest.Must(t, err)
		w.retried(t, note, "")

		w = newWorld(t, func(o *snowtest.Options) {
			o.Rule = func(_ string, _, write map[string]string) bool {
				write[field] = strings.ReplaceAll(write[field], "Sorry", "*****")
				return true
			}
		})
		note.Target.EntityRef = w.incident
		_, err = w.connector(t, nil).Execute(t.Context(), note)
		wantFailure(t, err, connector.Ambiguous, "not_as_approved")
		w.retried(t, note, `its text is "Moved. \n*****.`)
	}
}

// TestNoteQuoted: a later note quotes the action's note with its mark, and the instance would list it first.
func TestNoteQuoted(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	w := newWorld(t, func(o *snowtest.Options) {
		o.Now = func() time.Time { return time.Unix(1900000000-clock.Add(1), 0) }
	})
	w.whenWriting(func() { w.Touch(w.incident, map[string]string{"work_notes": "Why? Moved.\n\n[gatehouse act_1]"}) })
	note := w.call("work_note", `{"text":"Moved."}`)
	_, err := w.connector(t, nil).Execute(t.Context(), note)
	connectortest.Must(t, err)
	w.retried(t, note, "")
}
