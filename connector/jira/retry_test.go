package jira_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/jira"
)

// doc is a document with a paragraph for each text.
func doc(paragraphs ...string) object {
	content := []any{}
	for _, text := range paragraphs {
		content = append(content, object{"type": "paragraph", "content": []any{object{"type": "text", "text": text}}})
	}
	return object{"type": "doc", "version": 1, "content": content}
}

// retried makes a call again and reads it back. wrong is part of the detail if the effect of the first call is not
// as approved, and "" if it is.
func (f *fake) retried(t *testing.T, c *jira.Connector, again connector.Call, first connector.Result, wrong string) {
	t.Helper()
	again.Attempt++
	res, err := c.Execute(t.Context(), again)
	want := connector.Present
	if wrong == "" {
		connectortest.Must(t, err)
	} else {
		want = connector.Inconclusive
		wantFailure(t, err, connector.Ambiguous, "not_as_approved")
		if e := connectortest.Failure(t, err); e != nil && !strings.Contains(e.Detail, wrong) {
			t.Errorf("the detail is %q", e.Detail)
		}
	}
	finding(t, c, again, want)
	if res.ExternalID != first.ExternalID || res.ExternalID == "" || f.effects() != 1 {
		t.Errorf("%q after %q, %d effects", res.ExternalID, first.ExternalID, f.effects())
	}
}

// TestCreateRetried: the issue of an earlier call is compared with what was approved, in the form in which Jira shows
// it. A label that somebody has added is no difference.
func TestCreateRetried(t *testing.T) {
	t.Parallel()
	change := gatehouse.MustJSON(object{
		"issuetype": "Task", "summary": "Buy a printer ", "description": "Soon. \r\n\r\n*not bold*\n",
		"labels": []string{"hall", "hall"}, "priority": object{"name": "High"}, "assignee": object{"id": "5b10"},
		"components": []object{{"name": "Office"}}, "customfield_1": 42, "customfield_2": "team-1",
		"customfield_3": "2026-11-24T10:00:00.000+0000", "customfield_4": []string{}, "customfield_5": "",
		"customfield_6": 1.50,
	})
	shown := func(fields object) { // as Jira stores it
		labels, _ := fields["labels"].([]any)
		fields["labels"] = []any{labels[len(labels)-1], "triage", "hall"}
		fields["issuetype"] = object{"id": "10001", "name": "Task", "subtask": false}
		fields["summary"], fields["description"] = "Buy a printer", doc("Soon.", "*not bold*")
		fields["priority"] = object{"id": "2", "name": "High"}
		fields["assignee"] = object{"accountId": "5b10", "displayName": "Ana"}
		fields["components"] = []any{object{"id": "7", "name": "Office"}}
		fields["customfield_1"] = []any{object{"id": 41, "state": "closed"}, object{"id": 42, "state": "active"}}
		fields["customfield_2"] = object{"id": "team-1", "name": "Hall"}
		fields["customfield_3"] = "2026-11-24T11:00:00.000+0100"
		fields["customfield_4"], fields["customfield_5"], fields["customfield_6"] = nil, nil, 1.5
		fields["reporter"] = object{"accountId": "gate"}
	}
	set := func(name string, value any) func(object) { return func(fields object) { fields[name] = value } }
	for name, test := range map[string]struct {
		edit  func(object)
		wrong string
	}{
		"the same":            {func(object) {}, ""},
		"a field of its own":  {set("status", object{"id": "3", "name": "Done"}), ""},
		"another summary":     {set("summary", "Buy two printers"), `summary is "Buy two printers" instead of "Buy a pr`},
		"another description": {set("description", doc("Soon.", "No, later.")), "description is "},
		"no description":      {set("description", nil), "description is null"},
		"another priority":    {set("priority", object{"id": "3", "name": "Medium"}), "priority is "},
		"another assignee":    {set("assignee", object{"accountId": "5b11"}), "assignee is "},
		"another sprint":      {set("customfield_1", []any{object{"id": 43}}), "customfield_1 is "},
		"another team":        {set("customfield_2", object{"id": "team-2"}), "customfield_2 is "},
		"another time":        {set("customfield_3", "2026-11-24T10:00:00.000+0100"), "customfield_3 is "},
		"a component more":    {set("components", []any{object{"name": "Office"}, object{"name": "X"}}), "components is "},
		"a label less": {func(fields object) {
			labels, _ := fields["labels"].([]any)
			fields["labels"] = labels[:2]
		}, "labels is "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.stores = shown
			c, create := f.connector(nil), call("create", change, "")
			first, err := c.Execute(t.Context(), create)
			connectortest.Must(t, err)
			f.behave(func() { test.edit(f.issues[first.ExternalID]) })
			f.retried(t, c, create, first, test.wrong)
		})
	}
}

// TestClone: somebody has cloned the issue, with its labels, and changed the clone.
func TestClone(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c, create := f.connector(nil), call("create", newIssue, "")
	first, err := c.Execute(t.Context(), create)
	connectortest.Must(t, err)
	f.behave(func() {
		f.issues["SHOP-3"] = maps.Clone(f.issues[first.ExternalID])
		f.issues["SHOP-3"]["summary"] = "CLONE - Buy a printer"
	})
	f.retried(t, c, create, first, "")
}

// TestCreateAssignsByDefault: "-1" asks for the project's default assignee, so anybody is as approved.
func TestCreateAssignsByDefault(t *testing.T) {
	t.Parallel()
	for id, selected := range map[string]any{"id": object{"accountId": "5b10"}, "accountId": nil} {
		f := newFake(t)
		f.stores = func(fields object) { fields["assignee"] = selected }
		c := f.connector(nil)
		create := call("create", gatehouse.MustJSON(object{
			"issuetype": "Task", "summary": "x", "assignee": object{id: "-1"},
		}), "")
		first, err := c.Execute(t.Context(), create)
		connectortest.Must(t, err)
		f.retried(t, c, create, first, "")
	}
}

// TestCommentRetried: the comment of an earlier call is compared with what was approved.
func TestCommentRetried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shown object
		wrong string
	}{
		"the same":      {doc("It is out.", "[~ana] look"), ""},
		"edited":        {doc("It is out.", "[~bob] look"), `its text is "It is out.\n[~bob] look"`},
		"a line more":   {doc("It is out.", "[~ana] look", "Done"), "its text is "},
		"emptied by it": {doc(), `its text is ""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			c, comment := f.connector(nil), call("comment", `{"text":"It is out. \r\n\r\n[~ana] look\n"}`, "")
			first, err := c.Execute(t.Context(), comment)
			connectortest.Must(t, err)
			f.behave(func() { f.comments[0]["body"] = test.shown })
			f.retried(t, c, comment, first, test.wrong)
		})
	}
}
