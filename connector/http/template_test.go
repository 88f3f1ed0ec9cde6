package httpconn_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

// operation makes a connector with one operation, named "update".
func (s *crm) operation(t testing.TB, op httpconn.Operation) *httpconn.Connector {
	t.Helper()
	if op.Method == "" {
		op.Method = "POST"
	}
	return newConnector(t, httpconn.Config{
		BaseURL: s.URL + "/api", AllowPrivate: true, Operations: map[string]httpconn.Operation{"update": op},
	})
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	hostile := call(`{"note":"\"}, \"admin\": true, \"x\": \"","n":12345678901234567890.10,"deep":{"a":[1.0]}}`)
	hostile.Target.EntityRef = `a b?c#d&e=%2F"'é`
	hostile.Target.EntityRefs = nil
	for name, test := range map[string]struct {
		op   httpconn.Operation
		want string
	}{
		"path is one segment": {httpconn.Operation{Path: "/x/{entity_ref}/y"},
			`POST /api/x/a%20b%3Fc%23d&e=%252F%22%27%C3%A9/y ` + string(hostile.ProposedChange)},
		"query is one value": {httpconn.Operation{Path: "/x?ref={entity_ref}&v={version}", Body: "none"},
			`POST /api/x?ref=a+b%3Fc%23d%26e%3D%252F%22%27%C3%A9&v=7 `},
		"body takes values": {
			httpconn.Operation{Path: "/x",
				Body: `{"fields": "{proposed_change}", "was": "{current_state.status}", "n": "{proposed_change.n}", ` +
					`"say": "{action_id} says {proposed_change.note}"}`},
			`POST /api/x {"fields":` + string(hostile.ProposedChange) +
				`,"n":12345678901234567890.10,"say":"act_1 says \"}, \"admin\": true, \"x\": \"","was":"open"}`,
		},
		"body is an array": {httpconn.Operation{Path: "/x", Body: `["{tenant}", 1.50, null, true, {"d": "{digest}"}]`},
			`POST /api/x ["default",1.50,null,true,{"d":"` + string(hostile.Digest) + `"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCRM(t)
			s.breakWith(false, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })
			c := s.operation(t, test.op)
			connectortest.Must(t, c.Validate(hostile))
			if _, err := c.Execute(t.Context(), hostile); err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(test.want, `says "}, "admin": true, "x": "`, `says \"}, \"admin\": true, \"x\": \"`)
			if got := s.requests(); len(got) != 1 || got[0] != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// TestInjection puts arbitrary refs into a path, a query, a header and a body: each is refused, or
// arrives as one value in the path, the query, the header and the body.
func TestInjection(t *testing.T) {
	t.Parallel()
	s := newCRM(t)
	var got *http.Request
	var body map[string]string
	s.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got, body = r, nil
		_ = json.NewDecoder(r.Body).Decode(&body)
	})
	c := s.operation(t, httpconn.Operation{
		Path: "/fix/{entity_ref}/end?q={entity_ref}&last=1", EncodeSlashes: true,
		Headers: map[string]httpconn.Value{"X-Ref": {Template: "<{entity_ref}>"}},
		Body:    `{"a": "{entity_ref}", "b": "-{entity_ref}-"}`,
	})
	alphabet := rapid.SampledFrom([]rune("ab./\\%2eF?#&=;:@\"'{}[]\r\n\x00\t é\u2028"))
	rapid.Check(t, func(t *rapid.T) {
		ref := rapid.StringOfN(alphabet, 1, 12, -1).Draw(t, "ref")
		update := call(`{}`)
		update.Target.EntityRef = ref
		got = nil
		refused := c.Validate(update)
		_, err := c.Execute(t.Context(), update)
		if refused != nil {
			if got != nil || gatehouse.CodeOf(refused) != gatehouse.CodeInvalid {
				t.Fatalf("%q is refused with %v, and sent: %v", ref, refused, got)
			}
			return
		}
		if err != nil || got == nil {
			t.Fatalf("%q: %v", ref, err)
		}
		segments := strings.Split(got.URL.EscapedPath(), "/")
		if len(segments) != 5 || segments[2] != "fix" || segments[4] != "end" || got.URL.Path != "/api/fix/"+ref+"/end" {
			t.Fatalf("%q makes the path %q", ref, got.URL.EscapedPath())
		}
		for _, s := range strings.FieldsFunc(ref, func(r rune) bool { return r == '/' || r == '\\' }) {
			if s == "." || s == ".." {
				t.Fatalf("%q has a dot segment and is sent", ref)
			}
		}
		if q := got.URL.Query(); len(q) != 2 || q.Get("q") != ref || q.Get("last") != "1" {
			t.Fatalf("%q makes the query %q", ref, got.URL.RawQuery)
		}
		if h := got.Header["X-Ref"]; len(h) != 1 || h[0] != "<"+ref+">" {
			t.Fatalf("%q makes the header %q", ref, h)
		}
		if len(body) != 2 || body["a"] != ref || body["b"] != "-"+ref+"-" {
			t.Fatalf("%q makes the body %q", ref, body)
		}
	})
}

func TestValidate(t *testing.T) {
	t.Parallel()
	s := newCRM(t)
	with := func(change func(*connector.Call)) connector.Call {
		c := call(`{"a":"x"}`)
		change(&c)
		return c
	}
	ifMatch := httpconn.Operation{Path: "/x", Conditional: &httpconn.Conditional{}}
	path := httpconn.Operation{Path: "/{entity_type}/{entity_ref}"}
	for name, test := range map[string]struct {
		op      httpconn.Operation
		call    connector.Call
		pointer string // "" when it is accepted
	}{
		"fine": {path, call(`{}`), ""},
		"not named yet": {
			httpconn.Operation{Path: "/{action_id}/{idempotency_key}", Class: connector.ClassA,
				ReadBack: &httpconn.ReadBack{Path: "/{idempotency_key}"}},
			with(func(c *connector.Call) { c.ActionID, c.IdempotencyKey, c.Digest = "", "", "" }), ""},
		"unknown operation": {path, with(func(c *connector.Call) { c.Operation = "other" }), "/operation"},
		"no ref":            {path, with(func(c *connector.Call) { c.Target.EntityRef = "" }), "/target/entity_ref"},
		"slash": {path, with(func(c *connector.Call) { c.Target.EntityRef = "1/delete" }),
			"/target/entity_ref"},
		"backslash": {path, with(func(c *connector.Call) { c.Target.EntityRef = `1\delete` }),
			"/target/entity_ref"},
		"dots":        {path, with(func(c *connector.Call) { c.Target.EntityRef = ".." }), "/target/entity_ref"},
		"dot in type": {path, with(func(c *connector.Call) { c.Target.EntityType = "." }), "/target/entity_type"},
		"dots, encoded slashes": {httpconn.Operation{Path: "/{entity_ref}", EncodeSlashes: true},
			with(func(c *connector.Call) { c.Target.EntityRef = "a/../b" }), "/target/entity_ref"},
		"dots with a literal": {httpconn.Operation{Path: "/.{entity_ref}"},
			with(func(c *connector.Call) { c.Target.EntityRef = "." }), "/target/entity_ref"},
		"dots with a literal, encoded slashes": {httpconn.Operation{Path: "/..{proposed_change.a}", EncodeSlashes: true},
			call(`{"a":"/x"}`), "/proposed_change/a"},
		"member missing":      {httpconn.Operation{Path: "/{proposed_change.b}"}, call(`{"a":1}`), "/proposed_change/b"},
		"member is null":      {httpconn.Operation{Path: "/{proposed_change.a}"}, call(`{"a":null}`), "/proposed_change/a"},
		"member is an object": {httpconn.Operation{Path: "/{proposed_change.a}"}, call(`{"a":{}}`), "/proposed_change/a"},
		"no pre-image": {httpconn.Operation{Path: "/x", Body: `"{current_state}"`},
			with(func(c *connector.Call) { c.CurrentState = "" }), "/current_state"},
		"header line break": {
			httpconn.Operation{Path: "/x", Headers: map[string]httpconn.Value{"X-A": {Template: "{proposed_change.a}"}}},
			call(`{"a":"b\r\nHost: evil"}`), "/proposed_change/a"},
		// The key may be any text, because its hash is sent.
		"idempotency key": {httpconn.Operation{Path: "/x", Class: connector.ClassA},
			with(func(c *connector.Call) { c.IdempotencyKey = "a\nb" }), ""},
		"no version":           {ifMatch, with(func(c *connector.Call) { c.Target.Version = "" }), "/target/version"},
		"a list of tags":       {ifMatch, with(func(c *connector.Call) { c.Target.Version = `"1", "2"` }), "/target/version"},
		"a tag":                {ifMatch, with(func(c *connector.Call) { c.Target.Version = `W/"1"` }), ""},
		"delete with a change": {httpconn.Operation{Method: "DELETE", Path: "/x"}, call(`{"a":1}`), "/proposed_change"},
		"delete":               {httpconn.Operation{Method: "DELETE", Path: "/x"}, call(`{"deleted":true}`), ""},
		"check": {httpconn.Operation{Path: "/x", Check: &httpconn.Check{Path: "/{entity_ref}"}},
			with(func(c *connector.Call) { c.Target.EntityRef = ".." }), "/target/entity_ref"},
	} {
		c := s.operation(t, test.op)
		err := c.Validate(test.call)
		var e *gatehouse.Error
		switch {
		case test.pointer == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.pointer != "" &&
			(!errors.As(err, &e) || e.Code != gatehouse.CodeInvalid || e.Violations[0].Pointer != test.pointer):
			t.Errorf("%s: got %v, want %s", name, err, test.pointer)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("Validate has sent %d requests", n)
	}
}

// TestStarIsNoVersion: the version * is sent as the entity-tag "*", which matches nothing, instead
// of the wildcard that matches everything.
func TestStarIsNoVersion(t *testing.T) {
	t.Parallel()
	s := newCRM(t)
	c := s.withClass(t, connector.ClassB, nil)
	update := call(`{"status":"won"}`)
	update.Target.Version = "*"
	_, err := c.Execute(t.Context(), update)
	wantFailure(t, err, connector.Terminal, "target_changed")
	if got := s.headers[0].Get("If-Match"); got != `"*"` {
		t.Errorf("If-Match: %s", got)
	}
}

// TestOneRequestPerCall builds the case in which net/http would resend a request by itself: a
// request without a body, with an idempotency key, on a reused connection that breaks before the
// answer.
func TestOneRequestPerCall(t *testing.T) {
	t.Parallel()
	s := newCRM(t)
	c := s.operation(t, httpconn.Operation{Method: "DELETE", Path: "/{entity_ref}", Class: connector.ClassA})
	for i := range 10 {
		s.breakWith(false, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
		if _, err := c.Execute(t.Context(), call(`{}`)); err != nil {
			t.Fatal(err)
		}
		s.breakWith(false, hijack(func(net.Conn, *bufio.ReadWriter) {}))
		_, err := c.Execute(t.Context(), call(`{}`))
		wantFailure(t, err, connector.Ambiguous, "connection_lost")
		if n := len(s.requests()); n != 2*i+2 {
			t.Fatalf("%d calls made %d requests", 2*i+2, n)
		}
	}
}

// TestCheck reads versions and pre-images.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := newCRM(t)
	check := func(k *httpconn.Check, version, state string) (connector.State, error) {
		update := call(`{"status":"won"}`)
		update.Target.Version, update.CurrentState = version, gatehouse.JSON(state)
		return s.withClass(t, connector.ClassC, func(op *httpconn.Operation) { op.Check = k }).Check(t.Context(), update)
	}
	byTag := &httpconn.Check{Path: "/{entity_type}/{entity_ref}", Version: "header etag", State: "/data"}
	byMember := &httpconn.Check{Path: "/{entity_type}/{entity_ref}", Version: "/version", State: "/data"}
	for _, test := range []struct {
		check            *httpconn.Check
		version, state   string
		expected, actual gatehouse.JSON
	}{
		{byTag, "7", "", "", ""},
		{byTag, `"7"`, "", "", ""},
		{byTag, "6", "", `"6"`, `"\"7\""`},
		{byMember, "7", "", "", ""},
		{byMember, "8", "", `"8"`, `"7"`},
		{byMember, "", `{"status":"open","total":9007199254740993}`, "", ""},
		{byMember, "7", `{"status":"open","total":9007199254740992}`, `{"total":9007199254740992}`,
			`{"total":9007199254740993}`},
		{byMember, "", `{"gone":1}`, `{"gone":1}`, `{"gone":null}`},
		{byMember, "", `{"gone":null}`, "", ""},
	} {
		got, err := check(test.check, test.version, test.state)
		if err != nil || got.Matches != (test.expected == "") || got.Expected != test.expected || got.Actual != test.actual ||
			got.Unchecked {
			t.Errorf("version %q, state %s: %+v, %v", test.version, test.state, got, err)
		}
	}
	if got, err := check(nil, "6", ""); err != nil || !got.Matches || !got.Unchecked {
		t.Errorf("without check: %+v, %v", got, err)
	}
	noVersion := &httpconn.Check{Path: "/{entity_type}/{entity_ref}", State: "/data"}
	if got, err := check(noVersion, "6", ""); err != nil || !got.Matches || !got.Unchecked {
		t.Errorf("a version that the check does not read: %+v, %v", got, err)
	}
	if got, err := check(&httpconn.Check{Path: "/deals/none", Version: "/version"}, "7", ""); err != nil || got.Matches ||
		got.Actual != "null" {
		t.Errorf("a missing entity: %+v, %v", got, err)
	}
	s.Close()
	if _, err := check(byTag, "7", ""); failure(t, err) == nil {
		t.Errorf("a closed server: %v", err)
	}
}

func TestReverse(t *testing.T) {
	t.Parallel()
	s := newCRM(t)
	s.breakWith(false, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id":77,"rev":{"n":3}}`) })
	run := func(r *httpconn.Reverse, change connector.Call) *gatehouse.Reversal {
		t.Helper()
		cfg := s.config()
		cfg.Operations = map[string]httpconn.Operation{
			"update": {Method: "POST", Path: "/x", ExternalID: pointer("/id"), Reverse: r},
			"remove": {Method: "DELETE", Path: "/x/{entity_ref}"},
		}
		// A reversal gets these values only when it is proposed.
		cfg.Headers = map[string]httpconn.Value{"X-Named": {Template: "{tenant} {action_id} {idempotency_key} {digest}"},
			"X-Digest": {Template: "{digest}"}}
		c := newConnector(t, cfg)
		res, err := c.Execute(t.Context(), change)
		connectortest.Must(t, err)
		// Operation says whether the configuration has a reverse.
		update, _ := c.Operation("update")
		remove, _ := c.Operation("remove")
		if !update.Reverses || remove.Reverses {
			t.Errorf("with a reverse: %v, without: %v", update.Reverses, remove.Reverses)
		}
		return res.Reversal
	}
	got := run(&httpconn.Reverse{Operation: "remove", EntityRef: "{external_id}", Change: `{}`, Version: "/rev/n"},
		call(`{"status":"won"}`))
	if got == nil || got.Operation != "remove" || got.Target.EntityRef != "77" || got.Target.Version != "3" ||
		got.ProposedChange != `{}` {
		t.Errorf("%+v", got)
	}
	got = run(&httpconn.Reverse{Operation: "update"}, call(`{"status":"won"}`))
	if got == nil || got.ProposedChange != `{"status":"open"}` || got.CurrentState != `{"status":"won"}` ||
		got.Target.EntityRef != "42" {
		t.Errorf("%+v", got)
	}
	if got = run(&httpconn.Reverse{Operation: "update"}, call(`{"status":"won","total":1}`)); got != nil {
		t.Errorf("a reversal without the total's old value: %+v", got)
	}
	if got = run(&httpconn.Reverse{Operation: "update", Version: "header ETag"}, call(`{"status":"won"}`)); got != nil {
		t.Errorf("a reversal without the new version: %+v", got)
	}
	s.breakWith(false, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id":"7/7"}`) })
	got = run(&httpconn.Reverse{Operation: "remove", EntityRef: "{external_id}", Change: `{}`}, call(`{"status":"won"}`))
	if got != nil {
		t.Errorf("a reversal whose target has no place in the path: %+v", got)
	}
	s.breakWith(false, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })
	got = run(&httpconn.Reverse{Operation: "remove", EntityRef: "{external_id}", Change: `{}`}, call(`{"":"78"}`))
	if got != nil {
		t.Errorf("a reversal without an external id: %+v", got)
	}
}

func TestConfigIsStrict(t *testing.T) {
	t.Parallel()
	const head = "base_url: https://crm.example\n"
	for want, src := range map[string]string{
		"type": "type: sql\n" + head +
			"operations: {a: {method: POST, path: /x}}",
		"base_url":               "operations: {a: {method: POST, path: /x}}",
		"base_url: must be http": "base_url: ftp://x\noperations: {a: {method: POST, path: /x}}",
		"base_url: cannot hold credentials": "base_url: https://u:p@x\noperations: {a: {method: POST, path: " +
			"/x}}",
		"base_url: cannot have a query": "base_url: https://x?a=b\noperations: {a: {method: POST, path: " +
			"/x}}",
		"base_url: credentials would go": "base_url: http://crm.example\nauth: {bearer: {secret: " +
			"CRM_TOKEN}}\noperations: {a: {method: POST, path: /x}}",
		"base_url: credentials": "base_url: http://crm.example\nheaders: {X-Token: {secret: CRM_TOKEN, prefix: 'T '}}\n" +
			"operations: {a: {method: POST, path: /x}}",
		"base_url: credentials would go over": "base_url: http://crm.example\n" +
			"operations: {a: {method: POST, path: /x, headers: {X-Token: {secret: CRM_TOKEN}}}}",
		"operations":                       head,
		"operations.a.method":              head + "operations: {a: {method: GET, path: /x}}",
		"operations.a.path":                head + "operations: {a: {method: POST, path: x}}",
		"operations.a.path: has a segment": head + "operations: {a: {method: POST, path: /x/../y}}",
		"operations.a.path: {nothing}":     head + "operations: {a: {method: POST, path: '/{nothing}'}}",
		"operations.a.path: {proposed": head +
			"operations: {a: {method: POST, path: '/{proposed_change}'}}",
		"operations.a.path: a brace": head + "operations: {a: {method: POST, path: '/{entity ref}'}}",
		"operations.a.class":         head + "operations: {a: {method: POST, path: /x, class: D}}",
		"operations.a.conditional":   head + "operations: {a: {method: POST, path: /x, class: B}}",
		"operations.a.conditional.from": head +
			"operations: {a: {method: POST, path: /x, conditional: {from: x}}}",
		"operations.a.body": head + "operations: {a: {method: POST, path: /x, body: '{'}}",
		"operations.a.body: the name": head +
			`operations: {a: {method: POST, path: /x, body: '{"{entity_ref}": 1}'}}`,
		"operations.a.headers.Host": head +
			"operations: {a: {method: POST, path: /x, headers: {Host: x}}}",
		"operations.a.headers.X-A": head +
			"operations: {a: {method: POST, path: /x, headers: {X-A: {secret: NONE}}}}",
		"operations.a.idempotency_header": head +
			"operations: {a: {method: POST, path: /x, idempotency_header: 'a b'}}",
		"operations.a.external_id": head +
			"operations: {a: {method: POST, path: /x, external_id: id}}",
		"operations.a.outcomes[0]": head +
			"operations: {a: {method: POST, path: /x, outcomes: [{outcome: applied}]}}",
		"operations.a.outcomes[0].outcome": head +
			"operations: {a: {method: POST, path: /x, outcomes: [{status: [409], outcome: fine}]}}",
		"operations.a.floor": head +
			"operations: {a: {method: POST, path: /x, floor: 9}}",
		"operations.a.fields: levels.x": head +
			"operations: {a: {method: POST, path: /x, fields: {x: 0}}}",
		"operations.a.fields: does not apply to a DELETE": head +
			"operations: {a: {method: DELETE, path: /x, fields: {x: 1}}}",
		"operations.a.fields: does not apply to an operation that does not send": head +
			"operations: {a: {method: POST, path: /x, body: none, fields: {x: 1}}}",
		"operations.a.fields: does not apply: this operation sends parts of current_state": head +
			"operations: {a: {method: POST, path: '/{current_state.x}', fields: {x: 1}}}",
		"operations.a.fields: does not apply: this operation sends parts of current_state, which fields do not cover": head +
			`operations: {a: {method: POST, path: /x, body: '{"a": ["{current_state}"]}', fields: {x: 1}}}`,
		"operations.bulk_a.fields: only floor": head + "operations: {bulk_a: {method: POST, path: /x, fields: {x: 1}}}",
		"entities.deal.fields.x": head +
			"operations: {a: {method: POST, path: /x}}\nentities: {deal: {fields: {x: 6}}}",
		"entities.deal: differs": head +
			"operations: {a: {method: POST, path: /x}}\nentities: {deal: {}, Deal: {}}",
		"operations.a.read_back":         head + "operations: {a: {method: POST, path: /x, read_back: {path: /y}}}",
		"operations.a.reverse.operation": head + "operations: {a: {method: POST, path: /x, reverse: {operation: b}}}",
		"operations.a.reverse.change": head +
			"operations: {a: {method: POST, path: /x, reverse: {operation: a, change: '[]'}}}",
		"auth":        head + "auth: {}\noperations: {a: {method: POST, path: /x}}",
		"auth.bearer": head + "auth: {bearer: {}}\noperations: {a: {method: POST, path: /x}}",
		"auth.basic.username": head +
			"auth: {basic: {username: 'a:b', password: {secret: CRM_TOKEN}}}\noperations: {a: {method: POST, path: /x}}",
		"headers.X-A":                        head + "headers: {X-A: \"a\\nb\"}\noperations: {a: {method: POST, path: /x}}",
		"load: operations.a.success":         head + "operations: {a: {method: POST, path: /x, success: [99]}}",
		"load: operations.a.methd":           head + "operations: {a: {methd: POST}}",
		"load: operations.a.headers.X.value": head + "operations: {a: {method: POST, path: /x, headers: {X: {value: y}}}}",
	} {
		var cfg httpconn.Config
		err := yaml.Load([]byte(src), &cfg, yaml.WithKnownFields())
		if strings.HasPrefix(want, "load: ") {
			if err == nil {
				t.Errorf("%s is accepted", want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		_, err = httpconn.New(t.Context(), cfg, secrets)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	of := func(change func(*httpconn.Operation)) func(*httpconn.Config) {
		return func(c *httpconn.Config) {
			op := c.Operations["update"]
			change(&op)
			c.Operations["update"] = op
		}
	}
	connectortest.Fingerprint(t, httpconn.New, newCRM(t).config, secrets, map[string]func(*httpconn.Config){
		"path":    of(func(op *httpconn.Operation) { op.Path = "/v2/{entity_ref}" }),
		"body":    of(func(op *httpconn.Operation) { op.Body = `{"a":1}` }),
		"success": of(func(op *httpconn.Operation) { op.Success = []httpconn.StatusRange{{202, 202}} }),
		"address": func(c *httpconn.Config) { c.BaseURL += "/v2" },
		"header":  func(c *httpconn.Config) { c.Headers = map[string]httpconn.Value{"X-A": {Template: "b"}} },
		"secret's name": func(c *httpconn.Config) {
			c.Auth = &httpconn.Auth{Header: &httpconn.SecretHeader{Name: "X-Key", Secret: "CRM_TOKEN"}}
		},
	}, map[string]func(*httpconn.Config){
		"timeout":  of(func(op *httpconn.Operation) { op.Timeout = 1e9 }),
		"floor":    of(func(op *httpconn.Operation) { op.Floor = 4 }),
		"fields":   of(func(op *httpconn.Operation) { op.Fields = connector.FieldLevels{"note": 1} }),
		"entities": func(c *httpconn.Config) { c.Entities = map[string]httpconn.Entity{"deal": {}} },
		"tenants":  func(c *httpconn.Config) { c.Tenants = []string{"a"} },
	})
}
