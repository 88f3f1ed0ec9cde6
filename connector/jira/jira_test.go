package jira_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/jira"
)

const (
	newSummary = gatehouse.JSON(`{"summary":"Printer is out"}`)
	oldSummary = gatehouse.JSON(`{"summary":"Printer on fire"}`)
	newIssue   = gatehouse.JSON(`{"issuetype":"Task","summary":"Buy a printer","description":"Soon.\n*not bold*"}`)
	hello      = gatehouse.JSON(`{"text":"It is out.\n[~ana] look"}`)
)

// TestConformance runs the suite for each operation, against a fake.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call    connector.Call
		creates bool
		read    func(*fake) gatehouse.JSON
		disturb func(*fake)
		field   string
		value   [2]string
	}{
		"update": {
			call("update", newSummary, oldSummary), false,
			func(f *fake) gatehouse.JSON { return f.field("SHOP-1", "summary") },
			func(f *fake) { f.set("summary", "Printer is gone") },
			"summary", [2]string{"is out", "is in"},
		},
		"transition": {
			call("transition", `{"status":"Done"}`, `{"status":"In Progress"}`), false,
			func(f *fake) gatehouse.JSON { return f.field("SHOP-1", "status") },
			func(f *fake) { f.set("status", object{"id": "4", "name": "On hold"}) },
			"", [2]string{`"21"`, `"22"`},
		},
		"create": {
			call("create", newIssue, ""), true, func(f *fake) gatehouse.JSON { return gatehouse.MustJSON(f.effects()) },
			nil, "description", [2]string{"Buy", "Sell"},
		},
		"comment": {
			call("comment", hello, ""), true, func(f *fake) gatehouse.JSON { return gatehouse.MustJSON(f.effects()) },
			nil, "body", [2]string{"It is out", "It is in"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			not := connectortest.Not("a token does not contain the time", connectortest.Skewed)
			if test.field == "" {
				not[connectortest.Dropped] = "Jira requires the transition, the only field"
			}
			connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
				f := newFake(t)
				if name == "transition" {
					f.set("status", object{"id": "2", "name": "In Progress"})
				}
				return &connectortest.Fixture{
					Connector: f.connector(nil), Call: test.call, Creates: test.creates,
					Disturb: func(*testing.T) { test.disturb(f) },
					Read:    func(*testing.T) gatehouse.JSON { return test.read(f) },
					Effects: func(*testing.T) int { return f.effects() },
					Secrets: []string{token},
					Server:  f.server, Field: test.field, Value: test.value,
					Expired: connectortest.WithSecret(jira.New, f.config(), "token-that-has-expired"),
				}
			}})
		})
	}
}

var (
	wantFailure = connectortest.WantFailure
	finding     = connectortest.WantFinding
)

// TestLateSearch: Jira's search does not find the new issue yet. That proves nothing.
func TestLateSearch(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.connector(nil)
	create := call("create", newIssue, "")
	if _, err := c.Execute(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	f.behave(func() { f.late = true })
	finding(t, c, create, connector.Inconclusive)
	if op, _ := c.Operation("create"); op.Class != connector.ClassC {
		t.Errorf("class %s: a search that is late cannot make creation idempotent", op.Class)
	}
}

// TestFormatted: the update of a description with more than text has no reversal, because a reversal would restore
// the text only.
func TestFormatted(t *testing.T) {
	t.Parallel()
	text := func(marks ...any) object {
		node := object{"type": "text", "text": "See the runbook"}
		if marks != nil {
			node["marks"] = marks
		}
		return object{"type": "doc", "version": 1, "content": []any{object{"type": "paragraph", "content": []any{node}}}}
	}
	for name, c := range map[string]struct {
		description object
		reversible  bool
	}{
		"plain":  {text(), true},
		"a link": {text(object{"type": "link", "attrs": object{"href": "https://a/1"}}), false},
	} {
		f := newFake(t)
		f.set("description", c.description)
		res, err := f.connector(nil).Execute(t.Context(),
			call("update", `{"description":"short"}`, `{"description":"See the runbook"}`))
		if err != nil || (res.Reversal != nil) != c.reversible {
			t.Errorf("%s: %v, reversal %+v", name, err, res.Reversal)
		}
	}
}

func TestNotAsApproved(t *testing.T) {
	t.Parallel()
	both := gatehouse.JSON(`{"priority":{"name":"High"},"summary":"Printer is out"}`)
	for name, test := range map[string]struct {
		set    func(*fake)
		change gatehouse.JSON
		kind   connector.Kind
		code   string
	}{
		"all dropped":    {func(f *fake) { f.drop = "summary" }, newSummary, connector.Terminal, "not_as_approved"},
		"a part dropped": {func(f *fake) { f.drop = "priority" }, both, connector.Ambiguous, "not_as_approved"},
		"another value": {func(f *fake) { f.rewrite = object{"summary": "x"} }, newSummary, connector.Ambiguous,
			"not_as_approved"},
		"an unknown field": {nil, `{"customfield_10001":"x"}`, connector.Terminal, "http_400"},
		"a rate limit":     {func(f *fake) { f.status, f.retry = 429, "7" }, newSummary, connector.NotSent, "http_429"},
		"it is down":       {func(f *fake) { f.status = 503 }, newSummary, connector.NotSent, "http_503"},
		"a revoked token":  {func(f *fake) { f.unauthorized = true }, newSummary, connector.Terminal, "http_401"},
		"down at the write": {func(f *fake) { f.beforeWrite = func() { f.mu.Lock(); f.status = 503; f.mu.Unlock() } },
			newSummary, connector.Ambiguous, "http_503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			if test.set != nil {
				test.set(f)
			}
			_, err := f.connector(nil).Execute(t.Context(), call("update", test.change, oldSummary))
			wantFailure(t, err, test.kind, test.code)
		})
	}
	f := newFake(t)
	f.behave(func() { f.drop = "description" })
	_, err := f.connector(nil).Execute(t.Context(), call("create", newIssue, ""))
	wantFailure(t, err, connector.Ambiguous, "not_as_approved")
}

// TestTexts: an agent's text is not interpreted as markup or as a mention.
func TestTexts(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.connector(nil)
	res, err := c.Execute(t.Context(), call("create", newIssue, ""))
	connectortest.Must(t, err)
	if _, err := c.Execute(t.Context(), call("comment", hello, "")); err != nil {
		t.Fatal(err)
	}
	stored := f.field(res.ExternalID, "description") + gatehouse.MustJSON(f.comments)
	for _, part := range []string{`"text":"*not bold*"`, `"text":"[~ana] look"`, `"type":"doc"`} {
		if !says(stored, part) {
			t.Errorf("%s is not in %s", part, stored)
		}
	}
	if says(stored, "mention") {
		t.Errorf("a mention: %s", stored)
	}
}

// TestLabelsKeepTheMark: an update of the labels of an issue that Gatehouse has created keeps the label by which the
// issue is found, and can be reversed.
func TestLabelsKeepTheMark(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.connector(nil)
	create := call("create", `{"issuetype":"Task","labels":["hall"],"summary":"Buy a printer"}`, "")
	made, err := c.Execute(t.Context(), create)
	connectortest.Must(t, err)
	first := f.field(made.ExternalID, "labels")
	elements, _ := first.Elements()
	if len(elements) != 2 {
		t.Fatalf("the labels are %s", first)
	}
	mark := elements[1]

	update := call("update", `{"labels":["office"]}`, gatehouse.ObjectJSON(gatehouse.Member{Name: "labels", Value: first}))
	update.Target.EntityRef = made.ExternalID
	seen, err := c.ReadState(t.Context(), update)
	if err != nil || !seen.Matches || seen.CurrentState != `{"labels":["hall"]}` {
		t.Errorf("before: %+v, %v", seen, err)
	}
	res, err := c.Execute(t.Context(), update)
	connectortest.Must(t, err)
	if got := f.field(made.ExternalID, "labels"); got != gatehouse.ArrayJSON(`"office"`, mark) {
		t.Errorf("the labels are %s", got)
	}
	finding(t, c, update, connector.Present)
	finding(t, c, create, connector.Inconclusive) // somebody has taken a label away

	back := call("update", res.Reversal.ProposedChange, res.Reversal.CurrentState)
	back.Target = res.Reversal.Target
	connectortest.Must(t, c.Validate(back))
	_, err = c.Execute(t.Context(), back)
	connectortest.Must(t, err)
	if got := f.field(made.ExternalID, "labels"); got != first {
		t.Errorf("after the reversal, the labels are %s", got)
	}
	finding(t, c, create, connector.Present)
}

func TestTransitions(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.connector(nil)
	_, err := c.Execute(t.Context(), call("transition", `{"status":"Done"}`, `{"status":"To Do"}`))
	wantFailure(t, err, connector.Terminal, "no_such_transition")
	f.behave(func() { f.conflict = true })
	_, err = c.Execute(t.Context(), call("transition", `{"status":"In Progress"}`, `{"status":"To Do"}`))
	wantFailure(t, err, connector.Terminal, "target_changed")
	f.behave(func() { f.conflict = false })
	f.set("status", object{"id": "3", "name": "Done"})
	_, err = c.Execute(t.Context(), call("transition", `{"status":"To Do"}`, `{"status":"Done"}`))
	wantFailure(t, err, connector.Terminal, "no_such_transition") // two transitions lead there
	f.set("status", object{"id": "9", "name": "Closed"})
	_, err = c.Execute(t.Context(), call("transition", `{"status":"Done"}`, `{"status":"Closed"}`))
	if e := connectortest.Failure(t, err); e.Detail != `there is no transition to the status "Done"` {
		t.Errorf("no transition at all: %v", e)
	}
	if f.effects() != 0 {
		t.Errorf("%d effects", f.effects())
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.connector(func(cfg *jira.Config) {
		cfg.Projects["SHOP"] = jira.Project{
			Fields: connector.FieldLevels{"labels": 1}, Operations: map[string]jira.Operation{"comment": {Floor: 2}},
		}
	})
	other := call("update", newSummary, oldSummary)
	other.Target.EntityRef = "OPS-1"
	path := call("update", newSummary, oldSummary)
	path.Target.EntityRef = "SHOP-1/../OPS-1"
	connectortest.Invalid(t, c, map[string]connector.Call{
		"another project": other, "a path": path, "blind": call("update", newSummary, ""),
		"status as a field":  call("update", `{"status":"Done"}`, oldSummary),
		"our label":          call("create", `{"issuetype":"Task","summary":"x","labels":["gatehouse-1"]}`, ""),
		"our label, added":   call("update", `{"labels":["gatehouse-1"]}`, `{"labels":["hall"]}`),
		"lines in a summary": call("update", `{"summary":"a\nb"}`, oldSummary), "no text": call("comment", `{}`, ""),
		"a state of nothing": call("create", newIssue, oldSummary),
	})
	for change, floor := range map[gatehouse.JSON]gatehouse.RiskLevel{`{"labels":["a"]}`: 1, newSummary: 3,
		`{"labels":["a"],"summary":"b"}`: 3} {
		if got := c.Floor(call("update", change, oldSummary)); got != floor {
			t.Errorf("%s: floor %v", change, got)
		}
	}
	if c.Floor(call("comment", hello, "")) != 2 || c.Floor(call("create", newIssue, "")) != 4 ||
		len(c.Declarations()) != 2 {
		t.Errorf("floors and %+v", c.Declarations())
	}
	if err := c.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if f.effects() != 0 {
		t.Error("something was done")
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	connectortest.Refuses(t, jira.New, f.config, secrets, map[string]func(*jira.Config){
		"site: ":             func(c *jira.Config) { c.Site = "ftp://x" },
		"email: ":            func(c *jira.Config) { c.Email = "gate" },
		"token: ":            func(c *jira.Config) { c.Token.Secret = "OTHER" },
		"projects: at least": func(c *jira.Config) { c.Projects = nil },
		"projects: \"shop\"": func(c *jira.Config) { c.Projects = map[string]jira.Project{"shop": {}} },
		"projects.SHOP.operations.delete:": func(c *jira.Config) {
			c.Projects["SHOP"] = jira.Project{Operations: map[string]jira.Operation{"delete": {}}}
		},
	})
	connectortest.Fingerprint(t, jira.New, f.config, secrets, map[string]func(*jira.Config){
		"another account": func(c *jira.Config) { c.Email = "other@acme.example" },
	}, map[string]func(*jira.Config){
		"levels": func(c *jira.Config) {
			c.Projects["SHOP"] = jira.Project{Fields: connector.FieldLevels{"labels": 1}}
		},
	})
}
