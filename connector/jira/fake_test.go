package jira_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/jira"
)

const token = "token-of-the-gate"

type object = map[string]any

// fake is a Jira Cloud site with one project. It implements the part of the REST API, version 3,
// that the connector uses, as Jira documents it: two create calls create two issues, an update is
// unconditional and answers 204 without a body, and the search lags behind.
type fake struct {
	t      testing.TB
	url    string
	server *httptest.Server

	mu       sync.Mutex
	issues   map[string]object // fields by key
	comments []object
	writes   []string
	tick     int
	// late makes the search find nothing, drop ignores a field of a write, rewrite sets one in an update,
	// stores changes the fields of a new issue; status answers instead.
	late         bool
	drop         string
	rewrite      object
	stores       func(object)
	status       int
	retry        string
	conflict     bool
	beforeWrite  func()
	unauthorized bool
}

func newFake(t testing.TB) *fake {
	f := &fake{t: t, issues: map[string]object{}}
	f.issues["SHOP-1"] = object{
		"project": object{"key": "SHOP"}, "summary": "Printer on fire", "status": object{"id": "1", "name": "To Do"},
		"priority": object{"id": "3", "name": "Medium", "iconUrl": "x"}, "labels": []any{"hall"}, "description": nil,
	}
	f.touch("SHOP-1")
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.url, f.server = s.URL, s
	return f
}

func (f *fake) touch(key string) {
	f.tick++
	f.issues[key]["updated"] = time.Unix(1763900000+int64(f.tick), 0).UTC().Format("2006-01-02T15:04:05.000-0700")
}

// set changes a field without the connector.
func (f *fake) set(field string, value any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.issues["SHOP-1"][field] = value
	f.touch("SHOP-1")
}

func (f *fake) field(key, name string) gatehouse.JSON {
	f.mu.Lock()
	defer f.mu.Unlock()
	return gatehouse.MustJSON(f.issues[key][name])
}

func (f *fake) effects() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.writes)
}

var issuePath = regexp.MustCompile(`^/rest/api/3/issue/([A-Z]+-[0-9]+)(?:/(transitions|comment))?$`)

var transitions = map[string][]object{
	"To Do": {{"id": "11", "to": object{"id": "2", "name": "In Progress"}}},
	"In Progress": {{"id": "21", "to": object{"id": "3", "name": "Done"}},
		{"id": "22", "to": object{"id": "1", "name": "To Do"}}},
	"On hold": {{"id": "41", "to": object{"id": "3", "name": "Done"}}},
	"Done": {{"id": "31", "to": object{"id": "1", "name": "To Do"}},
		{"id": "32", "to": object{"id": "1", "name": "To Do"}},
		{"id": "33", "to": object{"id": "2", "name": "In Progress"}}},
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Method != http.MethodGet && f.beforeWrite != nil {
		f.beforeWrite()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	email, pass, _ := r.BasicAuth()
	if email != "gate@acme.example" || pass != token || f.unauthorized {
		f.answer(w, 401, object{"errorMessages": []string{"You do not have the permission to see the specified issue."}})
		return
	}
	if f.status != 0 {
		if f.retry != "" {
			w.Header().Set("Retry-After", f.retry)
		}
		f.answer(w, f.status, object{"errorMessages": []string{"try later"}})
		return
	}
	var in object
	if len(body) > 0 && json.Unmarshal(body, &in) != nil {
		f.answer(w, 400, object{"errorMessages": []string{"There was an error parsing JSON."}})
		return
	}
	status, out := f.route(r, in)
	f.answer(w, status, out)
}

// behave changes how the fake answers from now on.
func (f *fake) behave(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) answer(w http.ResponseWriter, status int, out object) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Server", "gatehouse-fake-jira")
	w.WriteHeader(status)
	if out != nil {
		_ = json.NewEncoder(w).Encode(out)
	}
}

func (f *fake) route(r *http.Request, in object) (int, object) {
	missing := object{"errorMessages": []string{"Issue does not exist or you do not have permission to see it."}}
	switch path := r.URL.Path; {
	case r.Method == "GET" && path == "/rest/api/3/project/SHOP":
		return 200, object{"key": "SHOP"}
	case r.Method == "GET" && path == "/rest/api/3/search/jql":
		return 200, object{"issues": f.search(r.URL.Query().Get("jql")), "isLast": true}
	case r.Method == "POST" && path == "/rest/api/3/issue":
		return f.create(in)
	}
	m := issuePath.FindStringSubmatch(r.URL.Path)
	if m == nil || f.issues[m[1]] == nil {
		return 404, missing
	}
	key := m[1]
	status, _ := f.issues[key]["status"].(object)["name"].(string)
	switch r.Method + " " + m[2] {
	case "GET ":
		return 200, object{"id": "10001", "key": key, "fields": f.issues[key]}
	case "PUT ":
		return f.update(key, in)
	case "GET transitions":
		return 200, object{"transitions": transitions[status]}
	case "POST transitions":
		id, _ := in["transition"].(object)["id"].(string)
		if f.conflict {
			return 409, object{"errorMessages": []string{"The issue is being updated by another transition."}}
		}
		for _, t := range transitions[status] {
			if t["id"] == id {
				f.issues[key]["status"] = t["to"]
				f.touch(key)
				f.writes = append(f.writes, "transition "+key)
				return 204, nil
			}
		}
		return 400, object{
			"errorMessages": []string{"It seems that you have tried to perform a workflow operation that is not valid"}}
	case "GET comment":
		list := append([]object{}, f.comments...)
		slices.Reverse(list)
		return 200, object{"comments": list, "total": len(list)}
	case "POST comment":
		if _, isText := in["body"].(string); isText {
			return 400, object{"errors": object{"comment": "Comment body is not valid!"}}
		}
		in["id"] = fmt.Sprint(20000 + len(f.comments))
		f.comments = append(f.comments, in)
		f.touch(key)
		f.writes = append(f.writes, "comment "+key)
		return 201, in
	}
	return 405, object{}
}

func (f *fake) create(in object) (int, object) {
	fields, _ := in["fields"].(object)
	project, _ := fields["project"].(object)
	kind, _ := fields["issuetype"].(object)
	if project["key"] != "SHOP" || kind["name"] == nil || fields["summary"] == nil {
		return 400, object{"errors": object{"issuetype": "Specify a valid issue type"}}
	}
	if _, isText := fields["description"].(string); isText {
		return 400, object{"errors": object{"description": "Operation value must be an Atlassian Document"}}
	}
	key := fmt.Sprintf("SHOP-%d", len(f.issues)+1)
	fields["status"] = object{"id": "1", "name": "To Do"}
	delete(fields, f.drop)
	if f.stores != nil {
		f.stores(fields)
	}
	f.issues[key] = fields
	f.touch(key)
	f.writes = append(f.writes, "create "+key)
	return 201, object{"id": "10002", "key": key}
}

func (f *fake) update(key string, in object) (int, object) {
	fields, _ := in["fields"].(object)
	for name := range fields {
		if _, known := f.issues[key][name]; !known {
			return 400, object{
				"errors": object{name: "Field '" + name + "' cannot be set. It is not on the appropriate screen, or unknown."}}
		}
	}
	dropped := maps.Clone(fields)
	delete(dropped, f.drop)
	maps.Copy(dropped, f.rewrite)
	if len(dropped) > 0 {
		maps.Copy(f.issues[key], dropped)
		f.touch(key)
	}
	f.writes = append(f.writes, "update "+key)
	return 204, nil
}

var jql = regexp.MustCompile(`^project = "SHOP" AND labels = "(gatehouse-[0-9a-f]{32})"( ORDER BY created)?$`)

func (f *fake) search(query string) []object {
	found := []object{}
	m := jql.FindStringSubmatch(query)
	if m == nil || f.late {
		return found
	}
	keys := slices.Sorted(maps.Keys(f.issues))
	if m[2] == "" {
		slices.Reverse(keys)
	}
	for _, key := range keys {
		if labels, _ := f.issues[key]["labels"].([]any); slices.Contains(labels, any(m[1])) {
			found = append(found, object{"key": key, "fields": f.issues[key]})
		}
	}
	return found
}

func (f *fake) config() jira.Config {
	return jira.Config{
		Site: f.url, AllowPrivate: true, Email: "gate@acme.example", Token: connector.Secret{Secret: "JIRA"},
		Projects: map[string]jira.Project{"SHOP": {}},
	}
}

var secrets = connectortest.Named(map[string]string{"JIRA": token})

func (f *fake) connector(change func(*jira.Config)) *jira.Connector {
	f.t.Helper()
	cfg := f.config()
	if change != nil {
		change(&cfg)
	}
	return connectortest.Build[*jira.Connector](f.t, jira.New, cfg, secrets)
}

func call(operation string, change, pre gatehouse.JSON) connector.Call {
	c := connectortest.Call(operation, "issue", "SHOP-1", pre, change)
	if operation == "create" {
		c.Target.EntityRef = "SHOP"
	}
	return c
}

func says(j gatehouse.JSON, text string) bool { return strings.Contains(string(j), text) }
