package jira

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

func issuePath(key string, more ...string) string {
	path := "/rest/api/3/issue/" + url.PathEscape(key)
	for _, m := range more {
		path += "/" + url.PathEscape(m)
	}
	return path
}

// issue is an issue that was read: updated is the time of the last update, fields are the values in
// the form of proposals. Their labels are without the marks.
type issue struct {
	key, updated string
	fields       gatehouse.JSON
	marks        []gatehouse.JSON
	// formatted are the fields whose document has more than text, so that their text cannot restore them.
	formatted []string
}

// names are the fields to read for a call: those that the call names, and updated and status.
func names(call connector.Call) []string {
	out := append(connector.Fields(call.CurrentState), "updated", "status")
	if call.Operation == opUpdate || call.Operation == opCreate {
		out = append(out, connector.Fields(call.ProposedChange)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// read reads an issue; gone is true if it does not exist or this account may not see it.
func (c *Connector) read(
	ctx context.Context, key string, fields []string,
) (i issue, gone bool, failed *connector.Error) {
	query := url.Values{"fields": {strings.Join(fields, ",")}}
	a, failed := c.api.Ask(ctx, http.MethodGet, issuePath(key), query)
	switch {
	case failed != nil:
		return i, false, failed
	case a.Status == http.StatusNotFound:
		return i, true, nil
	case a.Status != http.StatusOK:
		return i, false, rest.ReadFailure(a.Failure())
	}
	i, ok := issueOf(a.JSON())
	if !ok || i.key != key {
		return i, false, &connector.Error{
			Kind: connector.Transient, Code: "check_failed", Detail: "the answer is not the issue " + gatehouse.Quote(key) +
				": it was moved, or the answer is incomplete", Says: a.Text(a.JSON()),
		}
	}
	return i, false, nil
}

func issueOf(doc gatehouse.JSON) (issue, bool) {
	fields, ok := doc.Get("fields")
	members, err := fields.Fields()
	if !ok || err != nil {
		return issue{}, false
	}
	i := issue{key: rest.Text(doc, "key")}
	out := make([]gatehouse.Member, len(members))
	for n, m := range members {
		out[n] = gatehouse.Member{Name: m.Name, Value: plain(m.Name, m.Value)}
		if t, _ := m.Value.Get("type"); t == `"doc"` && !isPlain(m.Value) {
			i.formatted = append(i.formatted, m.Name)
		}
		if m.Name == labelsField {
			out[n].Value, i.marks = splitLabels(m.Value)
		}
	}
	i.fields = gatehouse.ObjectJSON(out...)
	i.updated = rest.Text(i.fields, "updated")
	return i, i.key != ""
}

const (
	labelsField = "labels"
	// markPrefix begins the label of an issue that a call has created. Proposals do not name such labels, and an update of
	// the labels keeps them.
	markPrefix = "gatehouse-"
)

// splitLabels separates a list of labels into those of proposals and the marks.
func splitLabels(labels gatehouse.JSON) (own gatehouse.JSON, marks []gatehouse.JSON) {
	elements, err := labels.Elements()
	if err != nil {
		return labels, nil
	}
	var others []gatehouse.JSON
	for _, e := range elements {
		if label, _ := e.Text(); strings.HasPrefix(label, markPrefix) {
			marks = append(marks, e)
		} else {
			others = append(others, e)
		}
	}
	return gatehouse.ArrayJSON(others...), marks
}

// plain is a field's value in the form of proposals: a document becomes its text, status and type
// become their names.
func plain(name string, value gatehouse.JSON) gatehouse.JSON {
	if t, _ := value.Get("type"); t == `"doc"` {
		return gatehouse.StringJSON(textOf(value))
	}
	if name == "status" || name == "issuetype" {
		if n, ok := value.Get("name"); ok {
			return n
		}
	}
	return value
}

// holds reports whether a shown value matches the approved one. Of an object, also within a list,
// only the approved members are compared; lists have no order.
func holds(approved, shown gatehouse.JSON) bool {
	if approved.Equal(shown) {
		return true
	}
	if members, err := approved.Fields(); err == nil && approved.IsObject() {
		for _, m := range members {
			v, ok := shown.Get(m.Name)
			if !ok && m.Name == "id" {
				v, ok = shown.Get("accountId") // the id of a user
			}
			if !ok || !v.Equal(m.Value) {
				return false
			}
		}
		return shown.IsObject()
	}
	want, err := approved.Elements()
	got, errGot := shown.Elements()
	if err == nil && errGot == nil && strings.HasPrefix(string(approved), "[") && len(want) == len(got) {
		for _, w := range want {
			if !slices.ContainsFunc(got, func(g gatehouse.JSON) bool { return holds(w, g) }) {
				return false
			}
		}
		return true
	}
	a, errA := gatehouse.ParseDecimal(string(approved))
	b, errB := gatehouse.ParseDecimal(string(shown))
	return errA == nil && errB == nil && a.Cmp(b) == 0
}

// value is a field of an issue, null if it is missing.
func (i issue) value(name string) gatehouse.JSON {
	if v, ok := i.fields.Get(name); ok {
		return v
	}
	return "null"
}

// compare reports how an issue differs from the call's description of it. A pre-image takes
// precedence over the version, because comments also change the time of the last update.
func compare(call connector.Call, i issue) connector.State {
	if v := call.Target.Version; v != "" && len(connector.Fields(call.CurrentState)) == 0 && v != i.updated {
		return rest.OtherVersion(v, i.updated)
	}
	return rest.Compare(call, func(m gatehouse.Member) (gatehouse.JSON, bool) {
		got, want := i.value(m.Name), m.Value
		if m.Name == labelsField {
			want, _ = splitLabels(want)
		}
		return got, holds(want, got)
	})
}

// readAndCompare reads the issue before it is changed, and refuses a mismatch.
func (c *Connector) readAndCompare(ctx context.Context, call connector.Call) (issue, *connector.Error) {
	i, gone, failed := c.read(ctx, call.Target.EntityRef, names(call))
	switch {
	case failed != nil:
		return i, rest.NothingSent(failed)
	case gone:
		return i, rest.TargetChanged("the issue does not exist, or this account may not see it")
	}
	if s := compare(call, i); !s.Matches {
		return i, rest.Changed(s)
	}
	return i, nil
}

// Check implements [connector.Checker].
func (c *Connector) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	if call.Operation == opCreate {
		return connector.State{Matches: true, Unchecked: true}, nil
	}
	i, gone, failed := c.read(ctx, call.Target.EntityRef, names(call))
	switch {
	case failed != nil:
		return connector.State{}, failed
	case gone:
		return connector.State{Expected: gatehouse.StringJSON(call.Target.EntityRef), Actual: "null"}, nil
	}
	return compare(call, i), nil
}

// ReadsState implements [connector.StateReader].
func (c *Connector) ReadsState(call connector.Call) bool { return call.Operation != opCreate }

// ReadState implements [connector.StateReader].
func (c *Connector) ReadState(ctx context.Context, call connector.Call) (connector.Snapshot, error) {
	if !c.ReadsState(call) {
		return connector.Snapshot{}, rest.NoState()
	}
	i, gone, failed := c.read(ctx, call.Target.EntityRef, names(call))
	if failed != nil {
		return connector.Snapshot{}, failed
	}
	if gone {
		return connector.Snapshot{Gone: true}, nil
	}
	out := connector.Snapshot{Matches: compare(call, i).Matches}
	if call.Target.Version != "" {
		out.Version = i.updated
	}
	of := connector.Fields(call.CurrentState)
	switch call.Operation {
	case opUpdate:
		of = append(of, connector.Fields(call.ProposedChange)...)
	case opTransition:
		of = append(of, "status")
	}
	out.CurrentState = i.only(of)
	return out, nil
}

// only selects the named fields, in the form in which a proposal sets them; "" for none.
func (i issue) only(of []string) gatehouse.JSON {
	return rest.Select(of, func(name string) gatehouse.JSON { return settable(i.value(name)) })
}

// settable reduces the object that Jira shows to the member that identifies it.
func settable(v gatehouse.JSON) gatehouse.JSON {
	if elements, err := v.Elements(); err == nil && strings.HasPrefix(string(v), "[") {
		parts := make([]string, len(elements))
		for n, e := range elements {
			parts[n] = string(settable(e))
		}
		return gatehouse.JSON("[" + strings.Join(parts, ",") + "]")
	}
	for _, name := range []string{"accountId", "id", "name", "value"} {
		if m, ok := v.Get(name); ok {
			return gatehouse.ObjectJSON(gatehouse.Member{Name: name, Value: m})
		}
	}
	return v
}
