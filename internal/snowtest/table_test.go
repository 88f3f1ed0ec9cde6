package snowtest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/snowtest"
)

func TestGet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.http.URL + "/api/now/table/sys_user_group/" + w.service
	for query, want := range map[string]map[string]any{
		"": {"state": "1", "assignment_group": map[string]any{"value": w.service, "link": link}},
		"sysparm_display_value=true&": {
			"state": "New", "assignment_group": map[string]any{"display_value": "Service Desk", "link": link},
		},
		"sysparm_display_value=all&": {
			"state":            map[string]any{"value": "1", "display_value": "New"},
			"assignment_group": map[string]any{"value": w.service, "display_value": "Service Desk", "link": link},
		},
		"sysparm_exclude_reference_link=true&": {"state": "1", "assignment_group": w.service},
		"sysparm_exclude_reference_link=true&sysparm_display_value=true&": {"state": "New",
			"assignment_group": "Service Desk"},
	} {
		got := w.result(t, 200, "GET", w.path()+"?"+query+"sysparm_fields=state,assignment_group,no_such_field", "")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	all := w.result(t, 200, "GET", w.path(), "")
	for name, want := range map[string]string{
		"sys_id": w.incident, "number": "INC0010001", "priority": "3", "sys_mod_count": "0", "active": "true",
		"work_notes": "", "assigned_to": "",
		"sys_updated_on": "2016-01-22 14:12:37", "sys_class_name": "incident", "short_description": "Can't reach the VPN",
	} {
		if all[name] != want {
			t.Errorf("%s = %v, want %s", name, all[name], want)
		}
	}
	if got := w.result(t, 200, "GET", "/api/now/v2/table/incident/"+w.incident, ""); got["sys_id"] != w.incident {
		t.Error("/api/now/v2 gives another record")
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"PATCH", "PUT"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.second.Store(60)
			got := w.result(t, 200, method, w.path(),
				`{"assignment_group": "`+w.network+
					`", "urgency": 1, "work_notes": "Moved.", "sys_mod_count": "9", "priority": "5", "nonsense": "x"}`,
				"If-Match", `"7"`, "Idempotency-Key", "k-1")
			for name, want := range map[string]any{
				"sys_mod_count": "1", "sys_updated_on": "2016-01-22 14:13:37", "sys_updated_by": "gate", "urgency": "1",
				"priority": "2", "work_notes": "",
				"short_description": "Can't reach the VPN", // PUT keeps fields that it does not name
			} {
				if got[name] != want {
					t.Errorf("%s = %v, want %v", name, got[name], want)
				}
			}
			if _, ok := got["nonsense"]; ok {
				t.Error("an unknown field was created")
			}
			// The same values again are not an update; a note always is.
			w.second.Store(120)
			again := w.result(t, 200, method, w.path()+"?sysparm_fields=sys_mod_count,sys_updated_on",
				`{"assignment_group": "`+w.network+`", "urgency": "1"}`)
			if diff := cmp.Diff(map[string]any{"sys_mod_count": "1", "sys_updated_on": "2016-01-22 14:13:37"},
				again); diff != "" {
				t.Error(diff)
			}
			w.result(t, 200, method, w.path(), `{"work_notes": "Again."}`)
			notes := w.result(t, 200, "GET", w.path()+"?sysparm_display_value=true&sysparm_fields=work_notes,sys_mod_count", "")
			want := map[string]any{
				"work_notes": "2016-01-22 14:14:37 - gate (Work notes)\nAgain.\n\n2016-01-22 14:13:37 - gate (Work " +
					"notes)\nMoved.\n\n",
				"sys_mod_count": "2",
			}
			if diff := cmp.Diff(want, notes); diff != "" {
				t.Error(diff)
			}
			var ledger []string
			for _, x := range w.Writes() {
				ledger = append(ledger, x.Method+" "+x.User+" "+x.ModCount+" "+strings.Join(x.Changed, ","))
			}
			if diff := cmp.Diff(
				[]string{method + " gate 1 assignment_group,urgency,work_notes", method + " gate 1 ",
					method + " gate 2 work_notes"}, ledger); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(
				[]snowtest.Entry{{At: "2016-01-22 14:13:37", By: "gate", Text: "Moved."},
					{At: "2016-01-22 14:14:37", By: "gate", Text: "Again."}}, w.Journal(w.incident, "work_notes")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	res, body := w.do(t, "POST", table,
		`{"short_description": "Unable to connect to office wifi", "urgency": "2", "impact": "2", "comments": "Please."}`)
	var a struct {
		Result map[string]any `json:"result"`
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil || res.StatusCode != 201 {
		t.Fatal(res.Status, body)
	}
	id, _ := a.Result["sys_id"].(string)
	if len(id) != 32 || a.Result["number"] != "INC0010002" || a.Result["sys_mod_count"] != "0" ||
		a.Result["priority"] != "3" || res.Header.Get("Location") != w.http.URL+table+"/"+id {
		t.Errorf("%v at %s", a.Result, res.Header.Get("Location"))
	}
	if got := w.Writes(); len(got) != 1 || got[0].SysID != id ||
		strings.Join(got[0].Changed, " ") != "comments impact short_description urgency" {
		t.Errorf("ledger = %+v", got)
	}
	res, body = w.do(t, "POST", table, `{}`, "X-no-response-body", "true")
	if res.StatusCode != 201 || body != "" {
		t.Errorf("%d %q", res.StatusCode, body)
	}
}

func TestInputByDisplayValue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.AddUser("ana", "Ana Ruß")
	w.result(t, 200, "PATCH", w.path()+"?sysparm_input_display_value=true",
		`{"assignment_group": "Network", "state": "In Progress", "assigned_to": "Ana Ruß"}`)
	got := w.Incident(w.incident)
	if got["assignment_group"] != w.network || got["state"] != "2" || got["assigned_to"] != ana {
		t.Errorf("%v", got)
	}
	if res, _ := w.do(t, "PATCH", w.path()+"?sysparm_input_display_value=true",
		`{"assignment_group": "Nobody"}`); res.StatusCode != 400 {
		t.Error(res.Status)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.AddIncident(map[string]string{"short_description": "Printer on fire", "state": "2", "category": "hardware"})
	w.AddIncident(map[string]string{"short_description": "Printer is out", "state": "7", "category": "hardware"})
	for query, want := range map[string]string{
		"":                                "INC0010001 INC0010002 INC0010003",
		"sysparm_query=category=hardware": "INC0010002 INC0010003",
		"sysparm_query=state!=7^ORDERBYDESCnumber":                            "INC0010002 INC0010001",
		"sysparm_query=short_descriptionLIKEPrinter^ORDERBYshort_description": "INC0010003 INC0010002",
		"sysparm_query=short_descriptionSTARTSWITHCan":                        "INC0010001",
		"sysparm_query=short_descriptionENDSWITHfire":                         "INC0010002",
		"sysparm_query=no_field=1^active=false":                               "INC0010003",
		"sysparm_query=number=INC9":                                           "",
		"state=In Progress":                                                   "INC0010002",
		"category=hardware&active=true":                                       "INC0010002",
		"sysparm_limit=1&sysparm_offset=1":                                    "INC0010002",
		"sysparm_offset=9":                                                    "",
	} {
		res, body := w.do(t, "GET", table+"?"+strings.ReplaceAll(query, " ", "%20"), "")
		var a struct {
			Result []map[string]any `json:"result"`
		}
		if err := json.Unmarshal([]byte(body), &a); err != nil || res.StatusCode != 200 || a.Result == nil {
			t.Fatalf("%s: %s %s", query, res.Status, body)
		}
		var numbers []string
		for _, r := range a.Result {
			numbers = append(numbers, r["number"].(string))
		}
		if got := strings.Join(numbers, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	res, _ := w.do(t, "GET", table+"?sysparm_limit=1&sysparm_offset=1", "")
	if res.Header.Get("X-Total-Count") != "3" || strings.Count(res.Header.Get("Link"), "rel=") != 4 ||
		!strings.Contains(res.Header.Get("Link"), `sysparm_offset=2>;rel="last"`) {
		t.Errorf("headers %v", res.Header)
	}
	res, _ = w.do(t, "GET", table+"?sysparm_no_count=true&sysparm_suppress_pagination_header=true", "")
	if res.Header.Get("X-Total-Count")+res.Header.Get("Link") != "" {
		t.Errorf("headers %v", res.Header)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tc := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		message            string
	}{
		"nobody": {"GET", w.path(), "", []string{"Authorization", ""}, 401, "User Not Authenticated"},
		"a wrong password": {"GET", w.path(), "", []string{"Authorization", "Basic Z2F0ZTp3cm9uZw=="}, 401,
			"User Not Authenticated"},
		"a wrong token": {"GET", w.path(), "", []string{"Authorization", "Bearer x"}, 401, "User Not Authenticated"},
		"a reader's write": {"PATCH", w.path(), "{}", []string{"Authorization", "Basic cmVhZGVyOnBhc3M="}, 403,
			"Operation Failed"},
		"users":               {"POST", "/api/now/table/sys_user", "{}", nil, 403, "Operation Failed"},
		"no such record":      {"GET", table + "/0", "", nil, 404, "No Record found"},
		"no record to change": {"PATCH", table + "/0", "{}", nil, 404, "No Record found"},
		"no rows in v1":       {"GET", "/api/now/v1/table/incident?number=0", "", nil, 404, "No Record found"},
		"no such table":       {"GET", "/api/now/table/problem", "", nil, 400, "Invalid table problem"},
		"no such path": {"GET", "/api/now/stats/incident", "", nil, 400,
			"Requested URI does not represent any resource"},
		"no JSON":           {"PATCH", w.path(), "{", nil, 400, "Exception while reading request"},
		"a list":            {"PATCH", w.path(), "[]", nil, 400, "Exception while reading request"},
		"two objects":       {"PATCH", w.path(), "{}{}", nil, 400, "Exception while reading request"},
		"an object within":  {"PATCH", w.path(), `{"state": {"value": "2"}}`, nil, 400, "Exception while reading request"},
		"a negative offset": {"GET", table + "?sysparm_offset=-1", "", nil, 400, "Invalid parameter"},
		"an unknown mode":   {"GET", table + "?sysparm_display_value=yes", "", nil, 400, "Invalid parameter"},
		"pairs and a query": {"GET", table + "?sysparm_query=state=1&active=true", "", nil, 400, "Invalid parameter"},
		"PATCH of a table":  {"PATCH", table, "{}", nil, 405, "Method not supported"},
		"POST to a record":  {"POST", w.path(), "{}", nil, 405, "Method not supported"},
		"XML wanted":        {"GET", w.path(), "", []string{"Accept", "application/xml"}, 406, "Not acceptable"},
		"XML sent": {"PATCH", w.path(), "<x/>", []string{"Content-Type", "application/xml"}, 415,
			"Unsupported media type"},
		"DELETE":             {"DELETE", w.path(), "", nil, 501, "Not in this fake"},
		"a view":             {"GET", w.path() + "?sysparm_view=mobile", "", nil, 501, "Not in this fake"},
		"an unknown sysparm": {"GET", w.path() + "?sysparm_felds=state", "", nil, 501, "Not in this fake"},
		"IN":                 {"GET", table + "?sysparm_query=stateIN1,2", "", nil, 501, "Not in this fake"},
		"greater":            {"GET", table + "?sysparm_query=state%3E1", "", nil, 501, "Not in this fake"},
		"no value":           {"GET", table + "?sysparm_query=stateISEMPTY", "", nil, 501, "Not in this fake"},
		"a field of a record": {
			"GET", table + "?sysparm_query=assignment_group.name=x", "", nil, 501, "Not in this fake",
		},
		"OR": {"GET", table + "?sysparm_query=state=1^ORstate=2", "", nil, 501, "Not in this fake"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, body := w.do(t, tc.method, tc.path, tc.body, tc.headers...)
			var e struct {
				Error struct {
					Message string  `json:"message"`
					Detail  *string `json:"detail"`
				} `json:"error"`
				Status string `json:"status"`
			}
			if err := json.Unmarshal([]byte(body), &e); err != nil || res.StatusCode != tc.status ||
				e.Error.Message != tc.message || e.Error.Detail == nil || e.Status != "failure" {
				t.Errorf("%s %s", res.Status, body)
			}
			if tc.status == 401 && res.Header.Get("WWW-Authenticate") == "" {
				t.Error("no challenge")
			}
		})
	}
	t.Cleanup(func() {
		if got := w.Writes(); len(got) != 0 {
			t.Errorf("ledger = %+v", got)
		}
	})
	w.result(t, 200, "GET", w.path(), "", "Authorization", "Bearer tok")
}

func TestTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault.Store(&snowtest.Fault{Status: 503, RetryAfter: "7"})
	res, _ := w.do(t, "PATCH", w.path(), `{"state": "2"}`)
	if res.StatusCode != 503 || res.Header.Get("Retry-After") != "7" || len(w.Writes()) != 0 {
		t.Errorf("%s, ledger %v", res.Status, w.Writes())
	}
	w.fault.Store(&snowtest.Fault{Drop: true})
	req, err := http.NewRequestWithContext(t.Context(), "PATCH", w.http.URL+w.path(), strings.NewReader(`{"state": "2"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("gate", "pass")
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
		t.Error("the fake answered, though it should have dropped the connection")
	}
	if len(w.Writes()) != 1 || w.Incident(w.incident)["state"] != "2" {
		t.Errorf("ledger %v", w.Writes())
	}
	w.Touch(w.incident, map[string]string{"state": "3"})
	if len(w.Writes()) != 1 || w.Incident(w.incident)["sys_mod_count"] != "2" {
		t.Errorf("Touch must change the incident and leave the ledger alone: version %q, ledger %v",
			w.Incident(w.incident)["sys_mod_count"], w.Writes())
	}
}
