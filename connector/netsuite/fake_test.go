package netsuite_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// account is a fake NetSuite account: the record service, the token endpoint, and a RESTlet. It
// follows Oracle's documentation: it recomputes signatures, refuses a used nonce, checks
// assertions, refuses unknown fields and values of another type, limits concurrent requests, and
// can run a script that changes values when a record is saved. It has only four record types, with
// the fields that the tests use.
type account struct {
	*httptest.Server
	t        *testing.T
	mu       sync.Mutex
	records  map[string]*record // by type and id, such as vendor/42
	external map[string]string  // maps type and external id to the id
	nextID   int
	effects  int
	log      []string
	tokens   map[string]time.Time
	nonces   map[string]bool
	tba      map[string]string
	// refusal, when set, is the status with which the record service refuses to describe a type.
	refusal int
	// userEvent, when set, runs when a record is saved.
	userEvent func(fields map[string]any)
	// fault handles a request that changes something, and reports whether it did; with applied, it
	// runs after the effect.
	fault   func(w http.ResponseWriter, r *http.Request) bool
	applied bool
	// script answers requests to the RESTlet.
	script func(a *account, method string, body map[string]any, query map[string]string) (int, any)
}

type record struct {
	Fields   map[string]any
	Modified int
}

// schemas are the fields of the record types, by their names in the record service.
var schemas = map[string]map[string]string{
	"vendor": {
		"companyName": "text", "email": "text", "phone": "text", "terms": "reference", "creditLimit": "number",
		"isInactive": "boolean", "externalId": "text", "comments": "text",
	},
	"customer": {"companyName": "text", "creditLimit": "number", "creditHoldOverride": "reference",
		"isInactive": "boolean"},
	"salesOrder": {
		"entity": "reference", "tranDate": "date", "memo": "text", "item": "lines", "otherRefNum": "text",
	},
	"journalEntry": {"tranDate": "date", "memo": "text", "line": "lines", "subsidiary": "reference"},
}

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{
		t: t, records: map[string]*record{}, external: map[string]string{}, nextID: 100,
		tokens: map[string]time.Time{}, nonces: map[string]bool{}, script: plainScript,
		tba: map[string]string{"ck": "consumer-s3cret-value", "tk": "token-s3cret-value"},
	}
	a.records["vendor/42"] = &record{Fields: map[string]any{
		"companyName": "ACME", "creditLimit": json.Number("1000.00"), "terms": map[string]any{"id": "5",
			"refName": "Net 30"},
		"isInactive": false, "phone": "555-0100",
	}, Modified: 1}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

func (a *account) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.URL.Path == "/services/rest/auth/oauth2/v1/token" {
		a.serveToken(w, r, string(body))
		return
	}
	restlet := r.URL.Path == "/app/site/hosting/restlet.nl"
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log = append(a.log, r.Method+" "+r.RequestURI)
	if err := a.authorize(r); err != nil {
		a.t.Logf("login refused: %v", err)
		if restlet {
			fail(w, 401, "INVALID_LOGIN_ATTEMPT", true)
		} else {
			fail(w, 401, "INVALID_LOGIN", false)
		}
		return
	}
	writes := r.Method != http.MethodGet
	if writes && a.fault != nil && !a.applied && a.fault(w, r) {
		return
	}
	answer := httptest.NewRecorder()
	if restlet {
		a.serveScript(answer, r, body)
	} else {
		a.serveRecord(answer, r, body)
	}
	if writes && a.fault != nil && a.applied && a.fault(w, r) {
		return
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// fail answers with an error, as a RESTlet or as the record service.
func fail(w http.ResponseWriter, status int, code string, restlet bool) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if restlet {
		fmt.Fprintf(w, `{"error":{"code":%q,"message":"fake: %s"}}`, code, code)
		return
	}
	fmt.Fprintf(w, `{"type":"https://www.rfc-editor.org/rfc/rfc9110","title":"fake","status":%d,`+
		`"o:errorDetails":[{"detail":"fake: %s","o:errorCode":%q}]}`, status, code, code)
}

func (a *account) serveScript(w http.ResponseWriter, r *http.Request, raw []byte) {
	q := map[string]string{}
	for name := range r.URL.Query() {
		q[name] = r.URL.Query().Get(name)
	}
	if q["script"] != "customscript_gfs_platform_query" || q["deploy"] != "customdeploy_gfs" {
		fail(w, 404, "SSS_INVALID_SCRIPTLET_ID", true)
		return
	}
	var body map[string]any
	if r.Header.Get("Content-Type") != "application/json" {
		fail(w, 415, "UNSUPPORTED_MEDIA_TYPE", true)
		return
	}
	if r.Method == http.MethodPost {
		if err := decode(raw, &body); err != nil {
			fail(w, 400, "SYNTAX_ERROR", true)
			return
		}
	}
	status, answer := a.script(a, r.Method, body, q)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func decode(raw []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	return d.Decode(into)
}

// plainScript is the RESTlet of the draft: it writes fields by their script names and answers with
// the internal id.
func plainScript(a *account, method string, body map[string]any, _ map[string]string) (int, any) {
	if method != http.MethodPost {
		return 405, map[string]any{"error": map[string]any{"code": "METHOD_NOT_ALLOWED"}}
	}
	id, _ := body["ns_internal_id"].(string)
	r, ok := a.records[body["record_type"].(string)+"/"+id]
	if !ok {
		return 400, map[string]any{"error": map[string]any{"code": "RCRD_DSNT_EXIST", "message": "no such record"}}
	}
	names := map[string]string{"companyname": "companyName", "creditlimit": "creditLimit", "phone": "phone",
		"terms": "terms"}
	for name, value := range body["fields"].(map[string]any) {
		rest, ok := names[name]
		if !ok {
			return 400, map[string]any{"error": map[string]any{"code": "INVALID_FLD_VALUE", "message": name}}
		}
		if s, ok := value.(string); ok && rest == "creditLimit" {
			value = json.Number(s)
		}
		r.Fields[rest] = value
	}
	a.save(r)
	return 200, map[string]any{"ns_internal_id": id, "applied_at": "2026-11-24T03:00:00Z"}
}

// save saves a record and counts the effect.
func (a *account) save(r *record) {
	if a.userEvent != nil {
		a.userEvent(r.Fields)
	}
	r.Modified++
	a.effects++
}

func (a *account) serveRecord(w http.ResponseWriter, r *http.Request, body []byte) {
	kind, ref, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/services/rest/record/v1/"), "/")
	if kind == "metadata-catalog" && r.Method == http.MethodGet {
		a.serveCatalog(w, ref)
		return
	}
	schema := schemas[kind]
	if !ok || schema == nil {
		fail(w, 404, "INVALID_RCRD_TYPE", false)
		return
	}
	id, eid := ref, ""
	if key, is := strings.CutPrefix(ref, "eid:"); is {
		if strings.ContainsFunc(key, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
		}) {
			fail(w, 400, "INVALID_CONTENT", false)
			return
		}
		eid, id = key, a.external[kind+"/"+key]
	}
	rec := a.records[kind+"/"+id]
	switch {
	case r.Method == http.MethodGet && rec == nil, r.Method == http.MethodPatch && rec == nil:
		fail(w, 404, "NONEXISTENT_ID", false)
		return
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		answer := maps.Clone(rec.Fields)
		answer["id"] = id
		answer["lastModifiedDate"] = fmt.Sprintf("2026-11-24T00:00:%02dZ", rec.Modified)
		if r.URL.Query().Get("expandSubResources") != "true" {
			delete(answer, "item")
			delete(answer, "line")
		}
		_ = json.NewEncoder(w).Encode(answer)
		return
	case r.Method != http.MethodPatch && (r.Method != http.MethodPut || eid == ""):
		fail(w, 405, "METHOD_NOT_ALLOWED", false)
		return
	}
	var change map[string]any
	if r.Header.Get("Content-Type") != "application/json" || decode(body, &change) != nil {
		fail(w, 400, "INVALID_CONTENT", false)
		return
	}
	for name, value := range change {
		if err := fits(schema[name], value); err != nil {
			a.t.Logf("%s.%s: %v", kind, name, err)
			fail(w, 400, "INVALID_CONTENT", false)
			return
		}
	}
	if rec == nil {
		a.nextID++
		id = strconv.Itoa(a.nextID)
		rec = &record{Fields: map[string]any{}}
		a.records[kind+"/"+id], a.external[kind+"/"+eid] = rec, id
	} else if same(rec.Fields, change) {
		// An upsert of an existing record creates no other one.
		w.Header().Set("Location", a.URL+"/services/rest/record/v1/"+kind+"/"+id)
		w.WriteHeader(204)
		return
	}
	for name, value := range change {
		if value == nil {
			delete(rec.Fields, name)
		} else {
			rec.Fields[name] = value
		}
	}
	a.save(rec)
	w.Header().Set("Location", a.URL+"/services/rest/record/v1/"+kind+"/"+id)
	w.WriteHeader(204)
}

// serveCatalog describes a record type.
func (a *account) serveCatalog(w http.ResponseWriter, kind string) {
	switch {
	case a.refusal != 0:
		fail(w, a.refusal, "USER_ERROR", false)
	case schemas[kind] == nil:
		fail(w, 404, "INVALID_RCRD_TYPE", false)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"name":%q,"links":[]}`, kind)
	}
}

func same(fields, change map[string]any) bool {
	for name, value := range change {
		x, _ := json.Marshal(fields[name])
		y, _ := json.Marshal(value)
		if string(x) != string(y) {
			return false
		}
	}
	return true
}

// fits checks a value against the type of a field.
func fits(kind string, value any) error {
	ok := value == nil && kind != ""
	switch v := value.(type) {
	case string:
		ok = kind == "text"
		if kind == "date" {
			_, err := time.Parse("2006-01-02", v)
			ok = err == nil
		}
	case json.Number:
		ok = kind == "number"
	case bool:
		ok = kind == "boolean"
	case map[string]any:
		_, isRef := v["id"].(string)
		items, isLines := v["items"].([]any)
		ok = kind == "reference" && isRef || kind == "lines" && isLines && len(items) > 0
	}
	if !ok {
		return fmt.Errorf("%v does not fit the type %q", value, kind)
	}
	return nil
}

// writes lists the requests that were meant to change something.
func (a *account) writes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.log), func(s string) bool { return strings.HasPrefix(s, "GET ") })
}

func (a *account) set(change func(*account)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}
