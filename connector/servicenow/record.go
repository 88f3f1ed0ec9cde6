package servicenow

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

// record is a record in the form of the Table API, field by field.
type record struct{ json gatehouse.JSON }

// value is a field's value; for a reference with a link, it is the sys_id.
func (r record) value(name string) (string, bool) {
	member, ok := r.json.Get(name)
	if !ok {
		return "", false
	}
	if v, ok := member.Get("value"); ok {
		member = v
	}
	if s, ok := member.Text(); ok {
		return s, true
	}
	return string(member), member != "null"
}

func (r record) hasValue(name, want string) bool {
	v, ok := r.value(name)
	return ok && v == want
}

// externalID is the record's number, or its sys_id if the table has no numbers.
func (r record) externalID() string {
	if number, ok := r.value("number"); ok && number != "" {
		return number
	}
	id, _ := r.value("sys_id")
	return id
}

func (r record) version() string {
	v, _ := r.value("sys_mod_count")
	return v
}

// plain is a value in the form of the Table API, which represents everything as a string.
func plain(j gatehouse.JSON) string {
	if s, ok := j.Text(); ok {
		return s
	}
	if j == "null" {
		return ""
	}
	return string(j)
}

// same compares an approved value with the shown one, as texts or as numbers.
func same(approved gatehouse.JSON, shown string) bool {
	if plain(approved) == shown {
		return true
	}
	a, errA := gatehouse.ParseDecimal(plain(approved))
	b, errB := gatehouse.ParseDecimal(shown)
	return errA == nil && errB == nil && a.Cmp(b) == 0
}

func tablePath(table string) string { return "/api/now/table/" + url.PathEscape(table) }

func recordPath(t gatehouse.Target) string {
	return tablePath(t.EntityType) + "/" + url.PathEscape(t.EntityRef)
}

// fieldParameters asks for the actual values of the named fields, and of the fields that identify a record.
func fieldParameters(fields ...string) url.Values {
	names := []string{"sys_id", "number", "sys_mod_count"}
	for _, f := range fields {
		if !slices.Contains(names, f) {
			names = append(names, f)
		}
	}
	return url.Values{
		"sysparm_fields": {strings.Join(names, ",")}, "sysparm_display_value": {"false"},
		"sysparm_exclude_reference_link": {"true"},
	}
}

// read reads the record of a call; gone is true if it does not exist or this user may not see it.
func (c *Connector) read(ctx context.Context, call connector.Call) (r record, gone bool, failed *connector.Error) {
	fields := connector.Fields(call.CurrentState)
	if changesRecord(call.Operation) {
		fields = append(fields, connector.Fields(call.ProposedChange)...)
	}
	a, failed := c.api.Ask(ctx, http.MethodGet, recordPath(call.Target), fieldParameters(fields...))
	if failed != nil {
		return record{}, false, failed
	}
	if a.Status == http.StatusNotFound {
		return record{}, true, nil
	}
	result, failed := resultOf(a)
	if failed != nil {
		failed.Kind = connector.Transient
		if a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden {
			failed.Kind = connector.Terminal
		}
		return record{}, false, failed
	}
	r = record{result}
	if !r.hasValue("sys_id", call.Target.EntityRef) {
		return record{}, false, &connector.Error{
			Kind: connector.Transient, Code: "check_failed", Detail: "the answer is not the record", Says: a.Text(a.JSON()),
		}
	}
	return r, false, nil
}

// find asks for the records of a table that match an encoded query, the oldest first: a person may have copied one with
// its key or mark.
func (c *Connector) find(ctx context.Context, table, query string, fields ...string) ([]record, *connector.Error) {
	params := fieldParameters(fields...)
	params.Set("sysparm_query", query+"^ORDERBYsys_created_on")
	params.Set("sysparm_limit", "20")
	a, failed := c.api.Ask(ctx, http.MethodGet, tablePath(table), params)
	if failed != nil {
		return nil, failed
	}
	result, failed := resultOf(a)
	if failed != nil {
		return nil, failed
	}
	elements, err := result.Elements()
	if err != nil {
		return nil, &connector.Error{
			Kind: connector.Transient, Code: "check_failed", Detail: "the answer is not a list",
			Says: a.Text(a.JSON()),
		}
	}
	records := make([]record, len(elements))
	for i, e := range elements {
		records[i] = record{e}
	}
	return records, nil
}

// resultOf is the member result of a successful answer. A 200 without it does not come from the
// Table API: a sleeping instance answers with an HTML page.
func resultOf(a *rest.Answer) (gatehouse.JSON, *connector.Error) {
	if a.Status != http.StatusOK && a.Status != http.StatusCreated {
		return "", a.Failure()
	}
	result, ok := a.JSON().Get("result")
	switch {
	case a.Cut != "":
		return "", &connector.Error{
			Code: "answer_cut", Detail: "the answer is incomplete (" + a.Cut + "), so the outcome is not known",
		}
	case !ok:
		return "", &connector.Error{
			Code: "no_result", Detail: a.Describe() + ", but without a result", Says: a.Text(a.JSON()),
		}
	}
	return result, nil
}

// compare reports how a record differs from the call's description of it. A pre-image takes
// precedence over the version, because rules and SLAs also raise sys_mod_count; with the business
// rule, the count must match as well.
func (c *Connector) compare(call connector.Call, r record) connector.State {
	s := rest.Compare(call, func(m gatehouse.Member) (gatehouse.JSON, bool) {
		shown, ok := r.value(m.Name)
		return gatehouse.StringJSON(shown), ok && same(m.Value, shown) || !ok && m.Value == "null"
	})
	v := call.Target.Version
	if s.Matches && v != "" && v != r.version() && (!hasMembers(call.CurrentState) || c.Conditional(call)) {
		return rest.OtherVersion(v, r.version())
	}
	return s
}

// Checks implements [connector.SelectiveChecker].
func (c *Connector) Checks(call connector.Call) bool { return call.Operation != opCreate }

// Check implements [connector.Checker].
func (c *Connector) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	if !c.Checks(call) {
		return connector.State{Matches: true, Unchecked: true}, nil
	}
	r, gone, failed := c.read(ctx, call)
	switch {
	case failed != nil:
		return connector.State{}, failed
	case gone:
		return connector.State{Expected: gatehouse.StringJSON(call.Target.EntityRef), Actual: "null"}, nil
	}
	return c.compare(call, r), nil
}

// ReadsState implements [connector.StateReader].
func (c *Connector) ReadsState(call connector.Call) bool { return c.Checks(call) }

// ReadState implements [connector.StateReader].
func (c *Connector) ReadState(ctx context.Context, call connector.Call) (connector.Snapshot, error) {
	if !c.ReadsState(call) {
		return connector.Snapshot{}, rest.NoState()
	}
	r, gone, failed := c.read(ctx, call)
	if failed != nil {
		return connector.Snapshot{}, failed
	}
	if gone {
		return connector.Snapshot{Gone: true}, nil
	}
	out := connector.Snapshot{Matches: c.compare(call, r).Matches}
	if call.Target.Version != "" {
		out.Version = r.version()
	}
	names := connector.Fields(call.CurrentState)
	if changesRecord(call.Operation) {
		names = append(names, connector.Fields(call.ProposedChange)...)
	}
	out.CurrentState = r.fields(names)
	return out, nil
}

// fields selects the named fields, each once; "" for none. A missing field is null.
func (r record) fields(names []string) gatehouse.JSON {
	return rest.Select(names, func(name string) gatehouse.JSON {
		if shown, ok := r.value(name); ok {
			return gatehouse.StringJSON(shown)
		}
		return "null"
	})
}

// before reads the record before its change, and refuses a mismatch with the proposal.
func (c *Connector) before(ctx context.Context, call connector.Call) (record, *connector.Error) {
	r, gone, failed := c.read(ctx, call)
	switch {
	case failed != nil:
		return record{}, rest.NothingSent(failed)
	case gone:
		return record{}, rest.TargetChanged("the record does not exist, or this user may not read it")
	}
	if s := c.compare(call, r); !s.Matches {
		return record{}, rest.Changed(s)
	}
	return r, nil
}
