package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// with sets a member of a valid proposal.
func with(member, value string) string {
	return strings.TrimSuffix(goodProposal, "}") + `,"` + member + `":` + value + "}"
}

func TestStrictBodies(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	const malformed, invalid = gatehouse.CodeMalformed, gatehouse.CodeInvalid
	deep := strings.Repeat("[", 33) + strings.Repeat("]", 33)
	for name, tt := range map[string]struct {
		body    string
		code    gatehouse.Code
		pointer string
	}{
		"empty":               {"", malformed, ""},
		"blank":               {" \n", malformed, ""},
		"cut in a name":       {goodProposal[:35], malformed, ""},
		"cut in a value":      {goodProposal[:45], malformed, "/connector"},
		"two values":          {goodProposal + "{}", malformed, ""},
		"trailing comma":      {`{"action_type":"a",}`, malformed, ""},
		"single quotes":       {`{'action_type':"a"}`, malformed, ""},
		"NaN":                 {with("context", `{"a":NaN}`), malformed, "/context/a"},
		"leading zero":        {with("context", `{"a":[1,012]}`), malformed, "/context/a/1"},
		"duplicate":           {with("operation", `"delete"`), malformed, "/operation"},
		"duplicate by escape": {with(`\u006fperation`, `"delete"`), malformed, "/operation"},
		"duplicate deep":      {with("metadata", `{"a":{"b/c":1,"b/c":2}}`), malformed, "/metadata/a/b~1c"},
		"unknown":             {with("label", `"approved"`), malformed, "/label"},
		"unknown deep":        {`{"target":{"entity_type":"item","id":1}}`, malformed, "/target/id"},
		"unknown in a list": {with("evaluations", `[{"name":"a","kind":"human","result":"pass","score":1}]`), malformed,
			"/evaluations/0/score"},
		"name in another case": {with("Rationale", `"x"`), malformed, "/Rationale"},
		"too deep":             {with("context", `{"a":`+deep+`}`), malformed, "/context/a" + strings.Repeat("/0", 30)},
		"not UTF-8":            {with("rationale", "\"\xff\""), malformed, "/rationale"},
		"lone surrogate":       {with("rationale", `"\ud800"`), malformed, "/rationale"},
		"byte order mark":      {"\xef\xbb\xbf" + goodProposal, malformed, ""},
		"array":                {"[]", invalid, ""},
		"null":                 {"null", invalid, ""},
		"string for object":    {`{"target":"item"}`, invalid, "/target"},
		"number for string":    {`{"action_type":5}`, invalid, "/action_type"},
		"string for number":    {with("risk_level", `"3"`), invalid, "/risk_level"},
		"fraction for integer": {with("risk_level", `3.5`), invalid, "/risk_level"},
		"huge integer":         {with("risk_level", `1e999`), invalid, "/risk_level"},
		"object for list":      {with("evaluations", `{}`), invalid, "/evaluations"},
		"number for duration":  {with("expires_in", `4`), invalid, "/expires_in"},
		"not a duration":       {with("expires_in", `"4 hours"`), invalid, "/expires_in"},
		"zero seconds":         {with("expires_in", `"0s"`), invalid, "/expires_in"},
		"zero days":            {with("expires_in", `"0d"`), invalid, "/expires_in"},
		"not a decimal":        {with("magnitude", `{"amount":"2,50"}`), invalid, "/magnitude/amount"},
		"level out of range":   {with("risk_level", `6`), invalid, "/risk_level"},
		"missing member": {`{"action_type":"a","connector":"c","operation":"o","target":{"entity_type":"t"}}`, invalid,
			"/target/entity_ref"},
		"callback": {with("callback", `{"type":"webhook"}`), invalid, "/callback/url"},
		"server's own member": {with("callback", `{"type":"step_functions","task_token":"t","task_token_hash":"x"}`), invalid,
			"/callback/task_token_hash"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request{method: "POST", path: "/api/v1/proposed-actions", key: "gth_bot", body: tt.body}
			p := wantCode(t, r.send(s), tt.code)
			var pointers []string
			errors, _ := p["errors"].([]any)
			for _, e := range errors {
				pointers = append(pointers, e.(map[string]any)["pointer"].(string))
				if e.(map[string]any)["detail"] == "" {
					t.Error("an error without detail")
				}
			}
			if len(pointers) == 0 || pointers[0] != tt.pointer {
				t.Errorf("pointers %q, want %q first (%v)", pointers, tt.pointer, p["detail"])
			}
			if tt.code == malformed && p["pointer"] != tt.pointer {
				t.Errorf("pointer %v, want %q", p["pointer"], tt.pointer)
			}
			if detail := p["detail"].(string); !strings.HasPrefix(detail, tt.pointer) {
				t.Errorf("detail %q does not begin with the first error's %q", detail, tt.pointer)
			}
		})
	}
}

func TestWrongTimesAreNamed(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`"tomorrow"`, `1770000000`, `{}`, `"2026-01-02"`} {
		var body struct {
			Since time.Time `json:"since"`
		}
		err := decodeStrict([]byte(`{"since":`+value+`}`), &body)
		if err == nil || err.Error() != "invalid: /since must be a time such as 2026-01-02T15:04:05Z" {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestRefusedBodiesReachNoUseCase(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	for _, body := range []string{"", "{", with("label", "1"), `{"action_type":5}`, "[]"} {
		request{method: "POST", path: "/api/v1/proposed-actions", key: "gth_bot", body: body}.send(s)
	}
	if n := f.count("Propose"); n != 0 {
		t.Errorf("Propose ran %d times", n)
	}
}

func TestBodySize(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	fill := func(n int) string {
		body := with("metadata", `{"a":"`+"%s"+`"}`)
		return fmt.Sprintf(body, strings.Repeat("x", n-len(body)+len("%s")))
	}
	r := request{method: "POST", path: "/api/v1/proposed-actions", key: "gth_bot", body: fill(MaxBody)}
	if len(r.body) != MaxBody {
		t.Fatal(len(r.body))
	}
	if w := r.send(s); w.Code != http.StatusCreated {
		t.Errorf("a body of exactly the limit: %d %s", w.Code, w.Body)
	}
	r.body = fill(MaxBody + 1)
	p := wantCode(t, r.send(s), gatehouse.CodeBodyTooLarge)
	if p["limit"] != float64(MaxBody) {
		t.Errorf("limit %v", p["limit"])
	}
	// Without a Content-Length, the body is read only up to the limit.
	req := r.http()
	req.ContentLength = -1
	w := newRecorder()
	s.ServeHTTP(w, req)
	wantCode(t, w, gatehouse.CodeBodyTooLarge)
}

// TestSlowBody sends the beginning of a body and waits until the server cuts it off.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	f := newFake()
	server := httptest.NewServer(newServer(t, f, func(c *Config) { c.BodyTimeout = 50 * time.Millisecond }))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	fmt.Fprintf(conn,
		"POST /api/v1/proposed-actions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer gth_bot\r\nContent-Length: "+
			"500\r\n\r\n{\"action_type\":")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest || f.count("Propose") != 0 {
		t.Errorf("%d, and Propose ran %d times", resp.StatusCode, f.count("Propose"))
	}
}

func TestContentType(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	for contentType, ok := range map[string]bool{
		"": true, "application/json": true, "application/json; charset=utf-8": true, "Application/JSON;charset=UTF-8": true,
		"text/plain": true, "application/x-www-form-urlencoded": true, "application/problem+json": true, "text/html": false,
		"application/xml": false, "application/json; charset=latin1": false, "multipart/form-data; boundary=x": false,
	} {
		r := decideRequest()
		if contentType != "" {
			r.header = map[string]string{"Content-Type": contentType}
		}
		if w := r.send(s); (w.Code == http.StatusOK) != ok {
			t.Errorf("%q: %d %s", contentType, w.Code, w.Body)
		}
	}
}

// TestNumbersKeepEveryDigit passes numbers that no float64 can hold, in and
// out.
func TestNumbersKeepEveryDigit(t *testing.T) {
	t.Parallel()
	f := newFake()
	const change = `{"cents":1234567890123456789,"list":[9007199254740993,0.10,1e400,-0],"z":"<&>\u2028é"}`
	canonical := gatehouse.JSON(
		"{\"cents\":1234567890123456789,\"list\":[9007199254740993,0.10,1e400,-0],\"z\":\"<&>\u2028é\"}")
	a := testAction()
	a.ProposedChange = canonical
	f.values["Propose"] = a
	s := newServer(t, f)
	body := strings.Replace(with("magnitude", `{"amount":1.50}`), `{"price":"12.50"}`, change, 1)
	w := request{method: "POST", path: "/api/v1/proposed-actions", key: "gth_bot", body: body}.send(s)
	if w.Code != http.StatusCreated {
		t.Fatal(w.Code, w.Body)
	}
	p := f.last(t, "Propose").args[0].(*gatehouse.Proposal)
	if p.ProposedChange != canonical {
		t.Errorf("in:  %s\nwant %s", p.ProposedChange, canonical)
	}
	if p.Magnitude.Amount != "1.50" {
		t.Errorf("amount %q", p.Magnitude.Amount)
	}
	var got struct {
		Change json.RawMessage `json:"proposed_change"`
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &got))
	if string(got.Change) != string(canonical) {
		t.Errorf("out: %s\nwant %s", got.Change, canonical)
	}
}

// TestAnswersAgreeWithEncodingJSON compares the fast encoder with encoding/json
// on the domain's tags.
func TestAnswersAgreeWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for method, value := range newFake().values {
		want, err := json.Marshal(value)
		must(t, err)
		got, err := new(call).encode(value)
		must(t, err)
		// encoding/json writes a nil list as null; the contract's lists are
		// never null.
		x := strings.NewReplacer(`"votes":null`, `"votes":[]`, `"reasons":null`, `"reasons":[]`).Replace(string(want))
		a, errA := gatehouse.Canonicalize([]byte(x))
		b, errB := gatehouse.Canonicalize(got)
		if errA != nil || errB != nil || a != b {
			t.Errorf("%s:\n got %s\nwant %s (%v, %v)", method, b, a, errA, errB)
		}
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	for query, pointer := range map[string]string{
		"limit=0": "/query/limit", "limit=201": "/query/limit", "limit=x": "/query/limit", "limit=1&limit=2": "/query/limit",
		"status=open": "/query/status", "risk_level=6": "/query/risk_level", "sort=oldest": "/query/sort",
		"tenant=other": "/query/tenant",
		"a%2Fb=1":      "/query/a~1b", "%zz": "/query", "cursor=" + strings.Repeat("x", 1025): "/query/cursor",
	} {
		p := wantCode(t, request{path: "/api/v1/proposed-actions?" + query, key: "gth_aud"}.send(s), gatehouse.CodeInvalid)
		if got := p["errors"].([]any)[0].(map[string]any)["pointer"]; got != pointer {
			t.Errorf("%s: pointer %v, want %s", query, got, pointer)
		}
	}
	w := request{
		path: "/api/v1/proposed-actions?status=pending&action_type=x&risk_level=3&proposed_by=bot&q=SKU&sort=urgency" +
			"&limit=200&cursor=c", key: "gth_aud"}.send(s)
	if w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	want := gatehouse.ActionFilter{
		Status: "pending", ActionType: "x", RiskLevel: 3, ProposedBy: "bot", Query: "SKU", Sort: "urgency", Limit: 200,
		Cursor: "c",
	}
	if got := f.last(t, "ListActions").args[0]; got != want {
		t.Errorf("filter %+v", got)
	}
	request{path: "/api/v1/proposed-actions?status=&limit=", key: "gth_aud"}.send(s)
	if got := f.last(t, "ListActions").args[0]; got != (gatehouse.ActionFilter{Limit: 50}) {
		t.Errorf("empty values: filter %+v", got)
	}
}

// TestDryRunCreatesNothing: its answer is 200, because nothing was created.
func TestDryRunCreatesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	for body, want := range map[string]int{`{"dry_run":true}`: http.StatusOK, `{}`: http.StatusCreated} {
		r := request{method: "POST", path: "/api/v1/grants", key: "gth_ana", token: "gte_ana", body: body}
		if w := r.send(s); w.Code != want {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

func TestDecisionsAreCheckedBeforeTheState(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.err = gatehouse.E(gatehouse.CodeExpired, "expired")
	s := newServer(t, f)
	long := strings.Repeat("x", gatehouse.MaxNotesBytes+1)
	items := strings.TrimSuffix(strings.Repeat(`{"action_id":"a","digest":"d"},`, gatehouse.MaxBulk+1), ",")
	for _, tt := range []struct{ path, body, pointer string }{
		{decidePath, `{}`, "/decision"},
		{decidePath, `{"decision":"approve","digest":"d"}`, "/decision"},
		{decidePath, `{"decision":"approved"}`, "/digest"},
		{decidePath, `{"decision":"rejected","notes":"` + long + `"}`, "/notes"},
		{"/api/v1/approvals/apr_1/approve", ``, "/digest"},
		{"/api/v1/approvals/apr_1/approve", `{}`, "/digest"},
		{"/api/v1/proposed-actions/bulk-decide", `{"decision":"approved","items":[]}`, "/items"},
		{"/api/v1/proposed-actions/bulk-decide", `{"decision":"approved","items":[` + items + `]}`, "/items"},
		{"/api/v1/proposed-actions/bulk-decide",
			`{"decision":"approved","items":[{"action_id":"a","digest":"d"},{"action_id":"b"}]}`, "/items/1/digest"},
		{"/api/v1/proposed-actions/bulk-decide", `{"decision":"rejected","items":[{}]}`, "/items/0/action_id"},
		{"/api/v1/pushes/psh_1/resolve", `{"outcome":"sent","reason":"x"}`, "/outcome"},
		{"/api/v1/pushes/psh_1/resolve", `{"outcome":"applied"}`, "/reason"},
		{"/api/v1/pushes/drain", `{"limit":1001}`, "/limit"},
		{"/api/v1/dead-letters/replay", `{}`, "/ids"},
		{"/api/v1/dead-letters/replay", `{"ids":["a"],"all":true}`, "/ids"},
		{"/api/v1/dead-letters/replay", `{"filter":{}}`, "/filter"},
		{"/api/v1/dead-letters/replay", `{"filter":{"limit":1001}}`, "/filter/limit"},
		{"/api/v1/dead-letters/discard", `{"ids":["a"]}`, "/reason"},
		{"/api/v1/dead-letters/discard", `{"reason":"x"}`, "/ids"},
		{"/api/v1/dead-letters/discard", `{"reason":"x","ids":["a"],"filter":{"code":"http_400"}}`, "/ids"},
		{"/api/v1/dead-letters/resolve", `{"ids":["a"],"outcome":"sent","reason":"x"}`, "/outcome"},
		{"/api/v1/tenants", `{"id":"a b"}`, "/id"},
		{"/api/v1/policies", `{}`, "/source"},
	} {
		r := request{method: "POST", path: tt.path, key: "gth_root", token: "gte_root", body: tt.body}
		p := wantCode(t, r.send(s), gatehouse.CodeInvalid)
		if got := p["errors"].([]any)[0].(map[string]any)["pointer"]; got != tt.pointer {
			t.Errorf("%s %s: pointer %v, want %s", tt.path, tt.body, got, tt.pointer)
		}
	}
	// A rejection needs no digest, and the short form needs no body.
	wantCode(t, request{method: "POST", path: "/api/v1/approvals/apr_1/reject", key: "gth_ana", token: "gte_ana"}.send(s),
		gatehouse.CodeExpired)
}
