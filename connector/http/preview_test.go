package httpconn_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

func at(p httpconn.Pointer) *httpconn.Pointer { return &p }

// TestPreview compares the preview with the answer to the dry run.
func TestPreview(t *testing.T) {
	t.Parallel()
	declared := httpconn.Preview{
		Path: "/{entity_ref}?validate_only=1", After: "/after", Before: at("/before"), Rows: at("/rows"),
		Failure: at("/errors"),
	}
	refused := func(code, says string) string { return "refused " + code + ": " + says }
	for name, test := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"as proposed": {200, `{"rows":1,"before":{"a":1,"b":1},"after":{"a":2,"b":1},"errors":[]}`,
			"1 rows: as_proposed /a 1 2 "},
		"another value": {200, `{"before":{"a":1},"after":{"a":3}}`, "0 rows, differs: differs /a 1 3 2"},
		"not taken":     {200, `{"before":{"a":1},"after":{"a":1}}`, "0 rows, differs: differs /a 1 1 2"},
		"more than was proposed": {200, `{"before":{"a":1,"b":1},"after":{"a":"2","b":5}}`,
			`0 rows: as_proposed /a 1 "2"  also /b 1 5 `},
		"an error in a success": {200, `{"errors":["no stock"]}`, refused("refused", `["no stock"]`)},
		"refused":               {422, `{"why":"a is too large"}`, refused("http_422", `{"why":"a is too large"}`)},
		"changed meanwhile":     {412, `{}`, refused("target_changed", `{}`)},
		"overloaded":            {429, `{}`, "transient"},
		"broken":                {500, `{}`, "transient"},
		"no JSON":               {200, `<html>`, "transient"},
		"10 MB":                 {200, `{"after":{"a":"` + strings.Repeat("x", 10<<20) + `"}}`, "transient"},
		"hostile": {200, `{"before":{"a":1},"after":{"a":"2","b\u202e":"<script>"}}`,
			"0 rows: as_proposed /a 1 \"2\"  also /b\u202e  \"<script>\" "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var method, path, body string
			var headers http.Header
			target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				method, path, body, headers = r.Method, r.RequestURI, string(b), r.Header
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			}))
			defer target.Close()
			c := newConnector(t, httpconn.Config{BaseURL: target.URL, AllowPrivate: true,
				Operations: map[string]httpconn.Operation{
					"update": {
						Method: "PATCH", Path: "/{entity_ref}", Class: "B", IdempotencyHeader: "Idempotency-Key",
						Conditional: &httpconn.Conditional{}, Preview: &declared,
					},
					"other": {Method: "POST", Path: "/x"},
				}})
			call := connector.Call{
				Tenant: "default", IdempotencyKey: "k", Operation: "update", ProposedChange: `{"a":2}`,
				Target: gatehouse.Target{EntityType: "x", EntityRef: "1", Version: "7"},
			}
			if !c.Previews(call) || c.Previews(connector.Call{Operation: "other"}) || c.Previews(connector.Call{}) {
				t.Error("Previews")
			}
			p, err := c.Preview(t.Context(), call)
			var got string
			switch {
			case err != nil:
				got = failure(t, err).Kind.String()
			case p.Failure != nil:
				got = refused(p.Failure.Code, p.Failure.TargetSays)
			default:
				got = fmt.Sprint(p.Rows, " rows")
				if p.Differs {
					got += ", differs"
				}
				got += ":"
				for _, ch := range p.Changes {
					got += fmt.Sprintf(" %s %s %s %s %s", ch.How, ch.Path, ch.Before, ch.After, ch.Proposed)
				}
			}
			if got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			if method != "PATCH" || path != "/1?validate_only=1" || body != `{"a":2}` ||
				headers.Get("If-Match") != `"7"` {
				t.Errorf("asked %s %s %s %v", method, path, body, headers)
			}
			if key := headers.Get("Idempotency-Key"); key == "" || key == call.TargetKey() {
				t.Errorf("the preview has the key %q of the change", key)
			}
		})
	}
}

// TestPreviewConfig: a preview that would make the change itself is refused, and the fingerprint
// does not cover previews.
func TestPreviewConfig(t *testing.T) {
	t.Parallel()
	config := func(p *httpconn.Preview) httpconn.Config {
		return httpconn.Config{BaseURL: "https://x.example", Operations: map[string]httpconn.Operation{
			"update": {Method: "PATCH", Path: "/{entity_ref}", Preview: p},
		}}
	}
	for want, p := range map[string]httpconn.Preview{
		"operations.update.preview: is the operation's own request": {Path: "/{entity_ref}"},
		"operations.update.preview.method: must be GET":             {Path: "/x", Method: "TRACE"},
		"operations.update.preview.after: must be a JSON pointer":   {Path: "/x", After: "a"},
		"operations.update.preview.rows: must be a JSON pointer":    {Path: "/x", Rows: at("a")},
		"operations.update.preview.before: must be a JSON pointer": {Path: "/x", Before: at("a"), Rows: at("a"),
			Failure: at("a")},
		"operations.update.preview.path:": {Path: "/{nothing}"},
		"operations.update.preview.body:": {Path: "/x", Body: "{"},
	} {
		if _, err := httpconn.New(t.Context(), config(&p), nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	with := newConnector(t, config(&httpconn.Preview{Path: "/{entity_ref}/check", Method: "GET"}))
	if with.Fingerprint() != newConnector(t, config(nil)).Fingerprint() {
		t.Error("the preview changes the fingerprint")
	}
}

// TestPreviewRequest: method, headers and body are the preview's. An omitted method or body is the
// operation's, but a GET has no body.
func TestPreviewRequest(t *testing.T) {
	t.Parallel()
	var got string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header.Get("X-Dry"), r.Header.Get("X-Real"), " ",
			string(b))
		fmt.Fprint(w, `{"a":2,"b":3}`)
	}))
	defer target.Close()
	for want, p := range map[string]httpconn.Preview{
		"GET /1/check  ": {Method: "GET", Path: "/{entity_ref}/check"},
		`PATCH /1 yes {"w":{"a":2}}`: {Path: "/{entity_ref}",
			Headers: map[string]httpconn.Value{"X-Dry": {Template: "yes"}}},
		`POST /1/check  {"try":{"a":2}}`: {Method: "POST", Path: "/{entity_ref}/check",
			Body: `{"try":"{proposed_change}"}`},
	} {
		c := newConnector(t, httpconn.Config{BaseURL: target.URL, AllowPrivate: true,
			Operations: map[string]httpconn.Operation{
				"update": {
					Method: "PATCH", Path: "/{entity_ref}", Body: `{"w":"{proposed_change}"}`, Preview: &p,
					Headers: map[string]httpconn.Value{"X-Real": {Template: "real"}},
				},
			}})
		out, err := c.Preview(t.Context(), connector.Call{
			Tenant: "default", Operation: "update", ProposedChange: `{"a":2}`, CurrentState: `{"a":1,"c":4}`,
			Target: gatehouse.Target{EntityType: "x", EntityRef: "1"},
		})
		if err != nil || got != want {
			t.Errorf("asked %q, want %q (%v)", got, want, err)
		}
		// Without the object before, only the fields of the change are listed.
		only := []gatehouse.PreviewChange{{Path: "/a", Before: "1", After: "2", How: gatehouse.PreviewAsProposed}}
		if diff := cmp.Diff(only, out.Changes); diff != "" {
			t.Error(diff)
		}
	}
}
