package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gatehouse-dev/gatehouse"
)

type openAPI struct {
	OpenAPI string `json:"openapi"`
	Info    struct{ Title, Version string }
	Paths   map[string]map[string]struct {
		OperationID   string   `json:"operationId"`
		Roles         []string `json:"x-roles"`
		ChangesRights bool     `json:"x-changes-rights"`
		Summary       string
		Tags          []string
		Parameters    []struct {
			Name, In string
			Required bool
		}
		RequestBody *struct {
			Required bool
			Content  map[string]struct{ Schema json.RawMessage }
		} `json:"requestBody"`
		Security  []map[string][]string
		Responses map[string]struct {
			Description string
			Codes       []string `json:"x-codes"`
			Content     map[string]struct{ Schema json.RawMessage }
		}
	}
	Components struct {
		Schemas map[string]struct {
			Properties           map[string]struct{ Enum []string }
			Required             []string
			AdditionalProperties any `json:"additionalProperties"`
		}
		SecuritySchemes map[string]any `json:"securitySchemes"`
	}
	Tags []struct{ Name string }
}

func readDocument(t *testing.T, s *Server) (doc openAPI, raw []byte) {
	t.Helper()
	w := request{path: "/openapi.json"}.send(s)
	if w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &doc))
	return doc, w.Body.Bytes()
}

func TestDocumentHasEveryRoute(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	doc, _ := readDocument(t, s)
	if doc.OpenAPI != "3.1.0" || doc.Info.Title == "" || doc.Info.Version != "test" {
		t.Errorf("head: %s %+v", doc.OpenAPI, doc.Info)
	}
	tags := make(map[string]bool)
	for _, tag := range doc.Tags {
		tags[tag.Name] = true
	}
	names := make(map[string]bool)
	for i := range s.routes {
		rt := &s.routes[i]
		op, ok := doc.Paths[Prefix+rt.path][strings.ToLower(rt.method)]
		if !ok {
			t.Errorf("%s %s is not in the document", rt.method, rt.path)
			continue
		}
		if names[op.OperationID] || op.OperationID == "" || op.Summary == "" || rt.doc == "" || len(op.Tags) != 1 ||
			!tags[op.Tags[0]] {
			t.Errorf("%s: id %q, summary %q, tags %v", rt.name, op.OperationID, op.Summary, op.Tags)
		}
		names[op.OperationID] = true
		if len(op.Roles) != len(rt.roles) {
			t.Errorf("%s: roles %v", rt.name, op.Roles)
		}
		if (op.RequestBody != nil) != (rt.in != nil) {
			t.Errorf("%s: request body %v", rt.name, op.RequestBody)
		}
		if rt.in != nil && !rt.optional && rt.example == "" {
			t.Errorf("%s: needs an example of its body", rt.name)
		}
		in := make(map[string]bool)
		for _, p := range op.Parameters {
			in[p.In+" "+p.Name] = true
		}
		if strings.Contains(rt.path, "{id}") != in["path id"] || rt.idempotent != in["header Idempotency-Key"] {
			t.Errorf("%s: parameters %v", rt.name, in)
		}
		for _, p := range rt.query {
			if !in["query "+p.name] {
				t.Errorf("%s: lacks the parameter %s", rt.name, p.name)
			}
		}
		_, token := slices.Concat(op.Security, []map[string][]string{{}})[0]["editToken"]
		if token != (rt.token == tokenRequired) {
			t.Errorf("%s: security %v", rt.name, op.Security)
		}
		for status, r := range op.Responses {
			for _, code := range r.Codes {
				if got := gatehouse.StatusOf(gatehouse.Code(code)); !strings.HasPrefix(status, string(rune('0'+got/100))) {
					t.Errorf("%s: %s under %s", rt.name, code, status)
				}
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if doc.Paths[path]["get"].OperationID == "" {
			t.Errorf("%s is not in the document", path)
		}
	}
	for path, status := range map[string]string{"/readyz": "503", "/metrics": "401"} {
		if len(doc.Paths[path]["get"].Responses[status].Codes) != 1 {
			t.Errorf("%s does not have status %s in the document", path, status)
		}
	}
}

// TestMuxAndDocumentAgree sends a request to every path of the document.
func TestMuxAndDocumentAgree(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	doc, _ := readDocument(t, s)
	for path, item := range doc.Paths {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			_, documented := item[method]
			r := request{method: strings.ToUpper(method), path: strings.Replace(path, "{id}", "act_1", 1) + "?unknown=1",
				key: "gth_all", token: "gte_all"}
			w := r.send(s)
			if served := w.Code != http.StatusMethodNotAllowed; served != documented {
				t.Errorf("%s %s: documented %v, answered %d", method, path, documented, w.Code)
			}
		}
	}
}

func TestDocumentHasEveryCode(t *testing.T) {
	t.Parallel()
	doc, _ := readDocument(t, newServer(t, newFake()))
	listed := doc.Components.Schemas["Problem"].Properties["code"].Enum
	for _, code := range gatehouse.Codes() {
		if !slices.Contains(listed, string(code)) {
			t.Errorf("the document lacks %s", code)
		}
	}
	if len(listed) != len(gatehouse.Codes()) {
		t.Errorf("%d codes in the document, %d in the table", len(listed), len(gatehouse.Codes()))
	}
	if _, ok := doc.Components.Schemas["Problem"].Properties["Context"]; ok {
		t.Error("the context is documented as a member")
	}
	// Every code is documented where it can occur, except method_not_allowed,
	// which has no operation, and step_up_required, which requests with a key
	// never get.
	where := make(map[string]bool)
	for _, item := range doc.Paths {
		for _, op := range item {
			for _, r := range op.Responses {
				for _, code := range r.Codes {
					where[code] = true
				}
			}
		}
	}
	for _, code := range gatehouse.Codes() {
		if !where[string(code)] && code != gatehouse.CodeMethodNotAllowed && code != gatehouse.CodeStepUpRequired {
			t.Errorf("no operation answers with %s", code)
		}
	}
}

func TestEveryReferenceResolves(t *testing.T) {
	t.Parallel()
	doc, raw := readDocument(t, newServer(t, newFake()))
	var tree any
	must(t, json.Unmarshal(raw, &tree))
	seen := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				seen++
				if _, ok := doc.Components.Schemas[strings.TrimPrefix(ref, schemaPrefix)]; !ok {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, w := range v {
				walk(w)
			}
		case []any:
			for _, w := range v {
				walk(w)
			}
		}
	}
	walk(tree)
	if seen < 100 {
		t.Errorf("only %d references", seen)
	}
	for name, closed := range map[string]bool{"Proposal": true, "Decision": true, "Target": true, "Action": false,
		"Answer": false} {
		if got := doc.Components.Schemas[name].AdditionalProperties == false; got != closed {
			t.Errorf("%s: closed %v, want %v", name, got, closed)
		}
	}
	want := []string{"action_type", "connector", "operation", "proposed_change", "target"}
	got := slices.Sorted(slices.Values(doc.Components.Schemas["Proposal"].Required))
	if !slices.Equal(got, want) {
		t.Errorf("a proposal must have %v, want %v", got, want)
	}
}

// TestAnswersFitTheDocument validates each route's actual requests and answers,
// including errors, against the document's schemas.
func TestAnswersFitTheDocument(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake(), func(c *Config) { c.BulkPerMinute = 1000 })
	_, raw := readDocument(t, s)
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	must(t, err)
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("mem:///openapi.json", parsed))
	validate := func(t *testing.T, pointer string, body []byte) {
		t.Helper()
		schema, err := c.Compile("mem:///openapi.json#" + pointer)
		must(t, err)
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		must(t, err)
		if err := schema.Validate(instance); err != nil {
			t.Errorf("%s\n%s\n%v", pointer, body, err)
		}
	}
	at := func(path string) string { return strings.ReplaceAll(strings.ReplaceAll(path, "~", "~0"), "/", "~1") }
	for i := range s.routes {
		rt := &s.routes[i]
		op := "/paths/" + at(Prefix+rt.path) + "/" + strings.ToLower(rt.method)
		path := rt.url()
		if rt.media != "" && rt.out != nil {
			path += "?format=manifest" // an answer that is not JSON has no schema
		}
		w := request{method: rt.method, path: path, key: "gth_all", token: "gte_all", body: rt.example}.send(s)
		if w.Code != rt.status {
			t.Fatalf("%s: %d %s", rt.name, w.Code, w.Body)
		}
		if rt.out != nil {
			validate(t, op+"/responses/"+itoa(w.Code)+"/content/application~1json/schema", w.Body.Bytes())
		}
		if body := rt.example; body != "" {
			validate(t, op+"/requestBody/content/application~1json/schema", []byte(body))
		}
		w = request{method: rt.method, path: rt.url() + "?unknown=1", key: "gth_all", token: "gte_all"}.send(s)
		validate(t, op+"/responses/"+itoa(w.Code)+"/content/application~1problem+json/schema", w.Body.Bytes())
	}
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// TestEveryScalarIsDescribed: the document has the schema of each of the domain's scalar types.
func TestEveryScalarIsDescribed(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	for typ, schema := range scalars {
		got, err := json.Marshal(r.Schema(typ, true, ""))
		must(t, err)
		want, err := json.Marshal(schema())
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %s, want %s", typ, got, want)
		}
	}
}
