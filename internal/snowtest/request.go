package snowtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// request is one request to the Table API.
type request struct {
	server  *Server
	http    *http.Request
	table   *table
	name    string
	version string
	sysID   string
	user    string

	display      string // false, true or all
	inputDisplay bool
	noLinks      bool
	fields       []string // nil for all
	filters      []filter
	limit        int
	offset       int
	noCount      bool
	noPages      bool
}

// parse reads headers and parameters.
func (q *request) parse() *failure {
	if a := q.http.Header.Get("Accept"); a != "" && !strings.Contains(a, "application/json") &&
		!strings.Contains(a, "*/*") {
		return &failure{http.StatusNotAcceptable, "Not acceptable", "this fake gives application/json only"}
	}
	q.display, q.limit = "false", 10000
	params := q.http.URL.Query()
	var bad *failure
	boolean := func(name, value string) bool {
		if value != "true" && value != "false" {
			bad = &failure{http.StatusBadRequest, "Invalid parameter", name + " must be true or false"}
		}
		return value == "true"
	}
	number := func(name, value string) int {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			bad = &failure{http.StatusBadRequest, "Invalid parameter", name + " must be a number, not negative"}
		}
		return n
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		value := params.Get(name)
		switch name {
		case "sysparm_display_value":
			if q.display = value; value != "true" && value != "false" && value != "all" {
				bad = &failure{http.StatusBadRequest, "Invalid parameter", name + " must be true, false or all"}
			}
		case "sysparm_input_display_value":
			q.inputDisplay = boolean(name, value)
		case "sysparm_exclude_reference_link":
			q.noLinks = boolean(name, value)
		case "sysparm_fields":
			for f := range strings.SplitSeq(value, ",") {
				q.fields = append(q.fields, strings.TrimSpace(f))
			}
		case "sysparm_limit":
			q.limit = number(name, value)
		case "sysparm_offset":
			q.offset = number(name, value)
		case "sysparm_no_count":
			q.noCount = boolean(name, value)
		case "sysparm_suppress_pagination_header":
			q.noPages = boolean(name, value)
		case "sysparm_query":
			q.filters, bad = parseQuery(q.table, value)
		default:
			if strings.HasPrefix(name, "sysparm_") {
				return unsupported(name)
			}
			if params.Has("sysparm_query") {
				return &failure{http.StatusBadRequest, "Invalid parameter", "name-value pairs and sysparm_query exclude each other"}
			}
			if f, ok := q.table.fields[name]; ok {
				actual, _ := q.server.actual(f, value)
				q.filters = append(q.filters, filter{field: name, operator: "=", value: actual})
			}
		}
		if bad != nil {
			return bad
		}
	}
	return nil
}

var noRecord = failure{http.StatusNotFound, "No Record found",
	"Record doesn't exist or ACL restricts the record retrieval"}

func (q *request) get() (*answer, *failure) {
	r, ok := q.table.records[q.sysID]
	if !ok || q.hidden() {
		return nil, &noRecord
	}
	return &answer{status: http.StatusOK, result: q.show(r)}, nil
}

func (q *request) list() (*answer, *failure) {
	found := find(q.table, q.filters)
	if q.hidden() {
		found = nil
	}
	if len(found) == 0 && q.version == "v1" {
		return nil, &noRecord
	}
	a := &answer{status: http.StatusOK, header: map[string]string{}}
	if !q.noCount {
		a.header["X-Total-Count"] = strconv.Itoa(len(found))
	}
	if links := q.pages(len(found)); links != "" && !q.noPages {
		a.header["Link"] = links
	}
	page := found[min(q.offset, len(found)):]
	list := []any{}
	for _, r := range page[:min(q.limit, len(page))] {
		list = append(list, q.show(r))
	}
	a.result = list
	return a, nil
}

// pages makes the Link header.
func (q *request) pages(total int) string {
	if q.limit == 0 {
		return ""
	}
	var links []string
	add := func(rel string, offset int) {
		params := q.http.URL.Query()
		params.Set("sysparm_offset", strconv.Itoa(offset))
		params.Set("sysparm_limit", strconv.Itoa(q.limit))
		to := url.URL{Path: q.http.URL.Path, RawQuery: params.Encode()}
		links = append(links, fmt.Sprintf(`<%s%s>;rel="%s"`, q.base(), to.String(), rel))
	}
	add("first", 0)
	if q.offset+q.limit < total {
		add("next", q.offset+q.limit)
	}
	if q.offset > 0 {
		add("prev", max(q.offset-q.limit, 0))
	}
	add("last", max(total-1, 0)/q.limit*q.limit)
	return strings.Join(links, ",")
}

func (q *request) base() string {
	if q.http.TLS != nil {
		return "https://" + q.http.Host
	}
	return "http://" + q.http.Host
}

// show is a record as the parameters ask for it. Unknown fields are ignored.
func (q *request) show(r *record) map[string]any {
	out := map[string]any{}
	for name, f := range q.table.fields {
		if q.fields != nil && !slices.Contains(q.fields, name) {
			continue
		}
		value, shown := r.values[name], q.server.display(r, name, f)
		link := f.refers != "" && value != "" && !q.noLinks
		switch {
		case q.display == "all":
			m := map[string]any{"value": value, "display_value": shown}
			if link {
				m["link"] = q.link(f, value)
			}
			out[name] = m
		case link && q.display == "true":
			out[name] = map[string]any{"display_value": shown, "link": q.link(f, value)}
		case link:
			out[name] = map[string]any{"value": value, "link": q.link(f, value)}
		case q.display == "true":
			out[name] = shown
		default:
			out[name] = value
		}
	}
	return out
}

func (q *request) link(f field, id string) string {
	return q.base() + "/api/now/table/" + f.refers + "/" + id
}

func (q *request) hidden() bool { return slices.Contains(q.server.options.Hidden, q.name) }

var noAccess = failure{
	http.StatusForbidden, "Operation Failed", "ACL Exception Update Failed due to security constraints",
}

// remove deletes a record.
func (q *request) remove() (*answer, *failure) {
	switch {
	case q.server.options.Users[q.user].ReadOnly:
		return nil, &noAccess
	case q.table.records[q.sysID] == nil:
		return nil, &noRecord
	}
	delete(q.table.records, q.sysID)
	q.table.order = slices.DeleteFunc(q.table.order, func(id string) bool { return id == q.sysID })
	q.server.writes = append(q.server.writes, Write{
		Method: http.MethodDelete, Table: q.name, SysID: q.sysID, User: q.user, At: q.server.options.Now(),
	})
	return &answer{status: http.StatusNoContent}, nil
}

// write inserts or updates.
func (q *request) write(body []byte) (*answer, *failure) {
	if kind, _, err := mime.ParseMediaType(q.http.Header.Get("Content-Type")); q.http.Header.Get("Content-Type") != "" &&
		(err != nil || kind != "application/json") {
		return nil, &failure{http.StatusUnsupportedMediaType, "Unsupported media type",
			"this fake takes application/json only"}
	}
	writable := slices.Contains([]string{"incident", "change_request", "label_entry"}, q.name)
	if !writable || q.server.options.Users[q.user].ReadOnly {
		return nil, &noAccess
	}
	r := q.table.records[q.sysID]
	if q.sysID != "" && r == nil {
		return nil, &noRecord
	}
	sent, bad := q.input(body)
	if bad != nil {
		return nil, bad
	}
	for _, name := range q.server.options.Locked {
		if field, ok := strings.CutPrefix(name, q.name+"."); ok {
			delete(sent, field)
		}
	}
	if rule := q.server.options.Rule; rule != nil {
		was := map[string]string{}
		if r != nil {
			was = maps.Clone(r.values)
		}
		if !rule(q.name, was, sent) {
			return nil, &failure{
				http.StatusForbidden, "Operation Failed",
				"Operation against file '" + q.name + "' was aborted by Business Rule 'Expected version^0123'. " +
					"Business Rule Stack:Expected version",
			}
		}
	}
	a := &answer{status: http.StatusOK}
	w := Write{Method: q.http.Method, Table: q.name, User: q.user, At: q.server.options.Now(), Sent: sent}
	if r == nil {
		r = q.server.insert(q.name, sent, q.user)
		for _, name := range slices.Sorted(maps.Keys(sent)) {
			if f, ok := q.table.fields[name]; ok && !f.fixed {
				w.Changed = append(w.Changed, name)
			}
		}
		a.status = http.StatusCreated
		a.header = map[string]string{"Location": q.base() + "/api/now/table/" + q.name + "/" + r.values["sys_id"]}
	} else {
		w.Changed = q.server.update(q.table, r, sent, q.user)
	}
	w.SysID, w.ModCount = r.values["sys_id"], r.values["sys_mod_count"]
	q.server.writes = append(q.server.writes, w)
	a.result = q.show(r)
	return a, nil
}

// input reads a body: one object of texts, numbers and booleans.
func (q *request) input(body []byte) (map[string]string, *failure) {
	reject := func(format string, args ...any) (map[string]string, *failure) {
		return nil, &failure{http.StatusBadRequest, "Exception while reading request", fmt.Sprintf(format, args...)}
	}
	var raw map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&raw); err != nil || raw == nil || d.More() || len(body) > maxBody {
		return reject("The payload is not valid JSON.")
	}
	sent := make(map[string]string, len(raw))
	for name, v := range raw {
		switch v := v.(type) {
		case nil:
			sent[name] = ""
		case string:
			sent[name] = v
		case json.Number:
			sent[name] = v.String()
		case bool:
			sent[name] = strconv.FormatBool(v)
		default:
			return reject("%s must be a value, not an object or a list", name)
		}
		if f, ok := q.table.fields[name]; ok && q.inputDisplay {
			actual, ok := q.server.actual(f, sent[name])
			if !ok {
				return reject("%s has no value displayed as %q", name, sent[name])
			}
			sent[name] = actual
		}
	}
	return sent, nil
}
