package salesforce

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

const fieldModified = "LastModifiedDate"

// path is the escaped path below sobjects.
func (c *Connector) path(parts ...string) string {
	out := c.root + "/sobjects"
	for _, p := range parts {
		out += "/" + url.PathEscape(p)
	}
	return out
}

// record is a record that was read. seen is the time of the answer by Salesforce's clock, or by this
// machine's if the answer has no Date.
type record struct {
	id, version    string
	modified, seen time.Time
	fields         gatehouse.JSON
}

// names are the fields to read for a call: those that it names, the id, and the time of the last
// change.
func (c *Connector) names(call connector.Call) []string {
	out := append(connector.Fields(call.CurrentState), "Id", fieldModified)
	out = append(out, connector.Fields(call.ProposedChange)...)
	slices.Sort(out)
	return slices.Compact(out)
}

// read reads the fields of a record. parts is the record's path below sobjects. gone is true if the
// record does not exist or this user may not see it; deleted is true if Salesforce says that the
// record was deleted.
func (c *Connector) read(
	ctx context.Context, fields []string, parts ...string,
) (r record, gone, deleted bool, failed *connector.Error) {
	a, failed := c.api.Ask(ctx, http.MethodGet, c.path(parts...), url.Values{"fields": {strings.Join(fields, ",")}})
	switch {
	case failed != nil:
		return r, false, false, failed
	case a.Status == http.StatusNotFound:
		return r, true, errorCode(a.JSON()) == "ENTITY_IS_DELETED", nil
	case a.Status != http.StatusOK:
		return r, false, false, c.unread(a)
	}
	r, ok := recordOf(a)
	if !ok {
		return r, false, false, &connector.Error{
			Kind: connector.Transient, Code: "check_failed",
			Detail: "the answer is not a record with a time of its last change",
			Says:   a.Text(a.JSON()),
		}
	}
	// Salesforce accepts a field's name in any case, but levels and policies match names exactly.
	for _, name := range fields {
		if _, ok := r.fields.Get(name); !ok {
			return r, false, false, &connector.Error{
				Kind: connector.Terminal, Code: string(gatehouse.CodeInvalid),
				Detail: "the answer has no field " + gatehouse.Quote(name) + "; write the name as the object has it",
			}
		}
	}
	return r, false, false, nil
}

func recordOf(a *rest.Answer) (record, bool) {
	doc := a.JSON()
	r := record{id: rest.Text(doc, "Id"), version: rest.Text(doc, fieldModified), fields: doc, seen: time.Now()}
	if date, err := http.ParseTime(a.Header.Get("Date")); err == nil {
		r.seen = date
	}
	var ok bool
	r.modified, ok = parseTime(r.version)
	return r, ok && validID(r.id)
}

// parseTime parses a time in Salesforce's format, 2026-11-24T10:00:00.000+0000, or in RFC 3339.
func parseTime(s string) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02T15:04:05.000-0700", time.RFC3339Nano} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// unread is the failure of a refused read.
func (c *Connector) unread(a *rest.Answer) *connector.Error {
	e := c.failure(a)
	if e.Kind == connector.Ambiguous {
		e.Kind = connector.Transient
	}
	return e
}

// value is a field of a record, null if it is missing.
func (r record) value(name string) gatehouse.JSON {
	if v, ok := r.fields.Get(name); ok {
		return v
	}
	return "null"
}

// holds reports whether a shown value matches the approved one. An empty text is stored as null,
// numbers are compared by value, and times as points in time.
func holds(approved, shown gatehouse.JSON) bool {
	if approved.Equal(shown) || approved == `""` && shown == "null" {
		return true
	}
	a, isNumber := approved.Number()
	b, isNumberToo := shown.Number()
	if isNumber && isNumberToo {
		return a.Cmp(b) == 0
	}
	s, _ := approved.Text()
	t, _ := shown.Text()
	at, ok := parseTime(s)
	bt, okToo := parseTime(t)
	return ok && okToo && at.Equal(bt)
}

// compare reports how a record differs from the call's description of it.
func compare(call connector.Call, r record) connector.State {
	s := rest.Compare(call, func(m gatehouse.Member) (gatehouse.JSON, bool) {
		got := r.value(m.Name)
		return got, holds(m.Value, got)
	})
	if v := call.Target.Version; s.Matches && v != "" {
		if t, _ := parseTime(v); !t.Equal(r.modified) {
			return rest.OtherVersion(v, r.version)
		}
	}
	return s
}

// before reads the record before it is changed, and refuses a mismatch.
func (c *Connector) before(ctx context.Context, call connector.Call) (record, *connector.Error) {
	r, gone, _, failed := c.read(ctx, c.names(call), call.Target.EntityType, call.Target.EntityRef)
	switch {
	case failed != nil:
		return r, rest.NothingSent(failed)
	case gone:
		return r, rest.TargetChanged("the record does not exist, or this user may not see it")
	}
	if s := compare(call, r); !s.Matches {
		return r, rest.Changed(s)
	}
	return r, nil
}

// Checks implements [connector.SelectiveChecker].
func (c *Connector) Checks(call connector.Call) bool { return call.Operation != opCreate }

// Check implements [connector.Checker].
func (c *Connector) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	if !c.Checks(call) {
		return connector.State{Matches: true, Unchecked: true}, nil
	}
	r, gone, _, failed := c.read(ctx, c.names(call), call.Target.EntityType, call.Target.EntityRef)
	switch {
	case failed != nil:
		return connector.State{}, failed
	case gone:
		return connector.State{Expected: gatehouse.StringJSON(call.Target.EntityRef), Actual: "null"}, nil
	}
	return compare(call, r), nil
}

// ReadsState implements [connector.StateReader].
func (c *Connector) ReadsState(call connector.Call) bool { return c.Checks(call) }

// ReadState implements [connector.StateReader].
func (c *Connector) ReadState(ctx context.Context, call connector.Call) (connector.Snapshot, error) {
	if !c.ReadsState(call) {
		return connector.Snapshot{}, rest.NoState()
	}
	r, gone, _, failed := c.read(ctx, c.names(call), call.Target.EntityType, call.Target.EntityRef)
	if failed != nil {
		return connector.Snapshot{}, failed
	}
	if gone {
		return connector.Snapshot{Gone: true}, nil
	}
	out := connector.Snapshot{Matches: compare(call, r).Matches}
	if call.Target.Version != "" {
		out.Version = r.version
	}
	out.CurrentState = r.only(append(connector.Fields(call.CurrentState), connector.Fields(call.ProposedChange)...))
	return out, nil
}

// only selects the named fields; "" for none.
func (r record) only(of []string) gatehouse.JSON {
	return rest.Select(of, r.value)
}
