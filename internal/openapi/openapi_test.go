package openapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
	"github.com/gatehouse-dev/gatehouse/internal/openapi"
)

// document returns an OpenAPI document with these paths and schemas, as YAML in flow style.
func document(version, paths, schemas string) []byte {
	return fmt.Appendf(nil, "openapi: %s\ninfo: {title: T, version: '1'}\npaths: {%s}\ncomponents: {schemas: {%s}}\n",
		version, paths, schemas)
}

func derive(t *testing.T, src []byte) *openapi.API {
	t.Helper()
	api, err := openapi.Derive(t.Context(), src)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	return api
}

const body = `requestBody: {required: true, content: {application/json: {schema: {type: object, properties: {%s}}}}}`

// TestRules: class, level and reasons of each rule.
func TestRules(t *testing.T) {
	t.Parallel()
	const ok = `responses: {'200': {description: ok}}`
	note := fmt.Sprintf(body, "note: {type: string}")
	id := `parameters: [{name: id, in: path, required: true, schema: {type: string}}]`
	header := func(name string) string {
		return `parameters: [{name: ` + name + `, in: header, schema: {type: string}}]`
	}
	for name, test := range map[string]struct {
		path, method, operation string
		class                   connector.Class
		floor                   gatehouse.RiskLevel
		why                     string
	}{
		"a post":                 {"/notes", "post", note, "C", 3, "method POST"},
		"a patch":                {"/notes/{id}", "patch", id + "," + note, "C", 3, "method PATCH"},
		"a delete":               {"/notes/{id}", "delete", id, "C", 4, "method DELETE"},
		"a delete of everything": {"/notes", "delete", "", "C", 5, "bulk: DELETE without a parameter in the path"},
		"a put of everything":    {"/notes", "put", note, "C", 5, "bulk: PUT without a parameter in the path"},
		"a put":                  {"/notes/{id}", "put", id + "," + note, "C", 3, "method PUT"},
		"an array": {"/notes", "post",
			`requestBody: {content: {application/json: {schema: {type: array, items: {type: string}}}}}`,
			"C", 5, "bulk: the body is an array"},
		"a word in the id":   {"/notes", "post", "operationId: grantRoles," + note, "C", 4, "word grant"},
		"a word in the path": {"/api-keys", "post", note, "C", 4, "word key"},
		"a word in a tag":    {"/notes", "post", "tags: [Webhooks]," + note, "C", 4, "word webhook"},
		"a word within one":  {"/monkeys/callers", "post", note, "C", 3, "method POST"},
		"a name as in bulk":  {"/notes", "post", "operationId: notes_bulk," + note, "C", 5, "word bulk"},
		"money": {"/notes", "post", fmt.Sprintf(body, "unitPrice: {type: number}"), "C", 3,
			"money: /unitPrice"},
		"a risk that raises": {"/notes", "post", "x-gatehouse-risk: 5," + note, "C", 5, "x-gatehouse-risk 5"},
		"a risk that lowers": {"/notes/{id}", "delete", "x-gatehouse-risk: 1," + id, "C", 4, "method DELETE"},
		"a risk of nonsense": {"/notes", "post", "x-gatehouse-risk: 9," + note, "C", 3, "method POST"},
		"a key": {"/notes", "post", header("Idempotency-Key") + "," + note, "A", 3,
			"class A: header Idempotency-Key"},
		"a key of its own": {"/notes", "post", header("X-Acme-Idempotency-Key") + "," + note, "A", 3,
			"class A: header X-Acme-Idempotency-Key"},
		"a condition": {"/notes", "post", header("If-Match") + "," + note, "B", 3, "class B: header If-Match"},
		"a date as condition": {"/notes", "post", header("If-Unmodified-Since") + "," + note, "B", 3,
			"class B: header If-Unmodified-Since"},
		"an answer":      {"/notes", "post", note + ", responses: {'412': {description: no}}", "B", 3, "class B: answer 412"},
		"another header": {"/notes", "post", header("X-Request-Id") + "," + note, "C", 3, "method POST"},
	} {
		operation := test.operation
		if !strings.Contains(operation, "responses:") {
			operation = strings.TrimPrefix(operation+", "+ok, ", ")
		}
		api := derive(t, document("3.1.0", `'`+test.path+`': {`+test.method+`: {`+operation+`}}`, ""))
		if len(api.Operations) != 1 {
			t.Fatalf("%s: %+v", name, api)
		}
		for _, op := range api.Operations {
			if op.Class != test.class || op.Floor != test.floor || !slices.Contains(op.Why, test.why) {
				t.Errorf("%s: class %s, level %d, %q", name, op.Class, op.Floor, op.Why)
			}
		}
	}
}

// TestKeyAndCondition: a required condition stays beside an idempotency key, whichever header comes first.
func TestKeyAndCondition(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		api := derive(t, document("3.1.0", `/a: {post: {operationId: op, parameters: [{name: `+key+
			`, in: header, schema: {type: string}}, {name: If-Match, in: header, required: true, schema: {type: string}}], `+
			fmt.Sprintf(body, "note: {type: string}")+`, responses: {'200': {description: ok}}}}`, ""))
		op := api.Operations["op"]
		if op.Class != connector.ClassA || op.Entry["conditional"] == nil || op.Entry["idempotency_header"] != key ||
			!slices.Equal(op.Why, []string{"class A: header " + key, "method POST"}) {
			t.Errorf("%s: class %s, %v, %q", key, op.Class, op.Entry, op.Why)
		}
	}
}

// accepted returns the file of a document with all operations accepted.
func accepted(t *testing.T, src []byte) string {
	t.Helper()
	f, err := openapi.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Import(derive(t, src), nil, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	text, err := f.Text()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func schemaOf(t *testing.T, src []byte, operation string) string {
	t.Helper()
	c, err := httpconn.New(t.Context(), httpconn.Config{BaseURL: "https://api.example", Import: accepted(t, src)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := c.(*httpconn.Connector).Schema(operation, "")
	if !ok {
		t.Fatalf("no operation %s", operation)
	}
	return string(s)
}

// TestSchemas: references are resolved; members that cannot be sent, and members that the document does
// not name, are refused.
func TestSchemas(t *testing.T) {
	t.Parallel()
	post := func(schema string) string {
		return `/a: {post: {operationId: op, requestBody: {content: {application/json: {schema: ` + schema +
			`}}}, responses: {'200': {description: ok}}}}`
	}
	for name, test := range map[string]struct{ version, schema, schemas, want string }{
		"closed": {"3.1.0", `{type: object, properties: {a: {type: string}}}`, "",
			`{"additionalProperties":false,"properties":{"a":{"type":"string"}},"type":"object"}`},
		"open by its own word": {"3.1.0", `{type: object, additionalProperties: {type: integer}}`, "",
			`{"additionalProperties":{"type":"integer"},"type":"object"}`},
		"a reference": {"3.1.0", `{$ref: '#/components/schemas/A'}`,
			`A: {type: object, properties: {a: {$ref: '#/components/schemas/B'}}}, B: {type: number, maximum: 1.50}`,
			`{"additionalProperties":false,"properties":{"a":{"maximum":1.50,"type":"number"}},"type":"object"}`},
		"a reference with siblings": {"3.1.0", `{$ref: '#/components/schemas/A', title: T, required: [a]}`,
			`A: {type: object, properties: {a: {type: string}}}`,
			`{"allOf":[{"properties":{"a":{"type":"string"}},"type":"object"}],"required":["a"],"title":"T",` +
				`"type":"object","unevaluatedProperties":false}`},
		"a member with siblings": {"3.1.0",
			`{type: object, required: [id], properties: {id: {$ref: '#/components/schemas/A', readOnly: true}, ` +
				`p: {$ref: '#/components/schemas/A', format: password}, ` +
				`c: {$ref: '#/components/schemas/A', pattern: '^x'}}}`,
			`A: {type: string}`,
			`{"additionalProperties":false,"properties":{"c":{"allOf":[{"type":"string"}],"pattern":"^x"},` +
				`"id":false,"p":false},"type":"object"}`},
		"a cycle": {"3.1.0", `{$ref: '#/components/schemas/A'}`,
			`A: {type: object, properties: {a: {$ref: '#/components/schemas/A'}}}`,
			`{"additionalProperties":false,"properties":{"a":{"type":"object"}},"type":"object"}`},
		"composed": {"3.1.0", `{allOf: [{$ref: '#/components/schemas/A'}, {type: object, properties: {b: {type: string}}}]}`,
			`A: {type: object, properties: {a: {type: string}}}`,
			`{"allOf":[{"properties":{"a":{"type":"string"}},"type":"object"},{"properties":{"b":{"type":"string"}},` +
				`"type":"object"}],"type":"object","unevaluatedProperties":false}`},
		"read only": {"3.1.0",
			`{type: object, required: [id, a], properties: {id: {type: string, readOnly: true}, a: {type: string}}}`, "",
			`{"additionalProperties":false,"properties":{"a":{"type":"string"},"id":false},"required":["a"],"type":"object"}`},
		"a password": {"3.1.0", `{type: object, properties: {p: {type: string, format: password}}}`, "",
			`{"additionalProperties":false,"properties":{"p":false},"type":"object"}`},
		"a password or null": {"3.1.0", `{type: object, properties: {` +
			`a: {anyOf: [{type: string, format: password}, {type: 'null'}]}, ` +
			`b: {oneOf: [{type: 'null'}, {$ref: '#/components/schemas/P'}]}, ` +
			`c: {type: [string, 'null'], format: password}, d: {anyOf: [{type: string}, {type: 'null'}]}}}`,
			`P: {type: string, format: password}`,
			`{"additionalProperties":false,"properties":{"a":false,"b":false,"c":false,` +
				`"d":{"anyOf":[{"type":"string"},{"type":"null"}]}},"type":"object"}`},
		"parts that are passwords": {"3.1.0", `{type: object, properties: {` +
			`a: {type: array, items: {$ref: '#/components/schemas/P'}}, ` +
			`b: {type: object, additionalProperties: {$ref: '#/components/schemas/P'}}}}`,
			`P: {type: string, format: password}`,
			`{"additionalProperties":false,"properties":{"a":false,"b":false},"type":"object"}`},
		"what a property brings along": {"3.1.0", `{type: object, properties: {a: {type: string}}, ` +
			`dependentSchemas: {a: {required: [b], properties: {b: {type: object, properties: {c: {type: string}}}}}}}`, "",
			`{"dependentSchemas":{"a":{"properties":{"b":{"additionalProperties":false,` +
				`"properties":{"c":{"type":"string"}},"type":"object"}},"required":["b"]}},` +
				`"properties":{"a":{"type":"string"}},"type":"object","unevaluatedProperties":false}`},
		"a condition": {"3.1.0", `{type: object, properties: {a: {type: string}}, if: {required: [a]}, ` +
			`then: {properties: {b: {type: string}}}}`, "",
			`{"if":{"required":["a"]},"properties":{"a":{"type":"string"}},"then":{"properties":{"b":{"type":"string"}}},` +
				`"type":"object","unevaluatedProperties":false}`},
		"elements of a part": {"3.1.0",
			`{type: object, properties: {l: {allOf: [{type: array, prefixItems: [{properties: {a: {type: string}}}]}]}}}`, "",
			`{"additionalProperties":false,"properties":{"l":{"allOf":[{"prefixItems":[{"additionalProperties":false,` +
				`"properties":{"a":{"type":"string"}}}],"type":"array"}],"unevaluatedProperties":false}},"type":"object"}`},
		"allOf of 3.0": {"3.0.3",
			`{type: object, required: [id, a], properties: {id: {readOnly: true, allOf: [{$ref: '#/components/schemas/A'}]}, ` +
				`r: {allOf: [{$ref: '#/components/schemas/R'}]}, a: {allOf: [{$ref: '#/components/schemas/A'}]}, ` +
				`p: {description: the PIN, allOf: [{$ref: '#/components/schemas/P'}]}, ` +
				`q: {allOf: [{allOf: [{type: string}, {format: password}]}]}, c: {allOf: [{$ref: '#/components/schemas/C'}]}}}`,
			`A: {type: string}, R: {type: string, readOnly: true}, P: {type: string, format: password}, ` +
				`C: {allOf: [{$ref: '#/components/schemas/C'}, {$ref: '#/components/schemas/C'}]}`,
			`{"additionalProperties":false,"properties":{"a":{"allOf":[{"type":"string"}]},` +
				`"c":{"allOf":[{"allOf":[true,true]}]},` +
				`"id":false,"p":false,"q":false,"r":false},"required":["a"],"type":"object"}`},
		"null of 3.0": {"3.0.3",
			`{type: object, properties: {a: {type: string, nullable: true, enum: [x]}, b: {type: number, maximum: 5, ` +
				`exclusiveMaximum: true}}}`, "",
			`{"additionalProperties":false,"properties":{"a":{"enum":["x",null],"type":["string","null"]},` +
				`"b":{"exclusiveMaximum":5,"type":"number"}},"type":"object"}`},
		"null of 3.1": {"3.1.0", `{type: object, properties: {a: {type: [string, 'null'], const: x}}}`, "",
			`{"additionalProperties":false,"properties":{"a":{"const":"x","type":["string","null"]}},"type":"object"}`},
		"texts that look like numbers": {"3.1.0",
			`{type: object, properties: {a: {enum: ['012', 'no', '1e3', '2026-01-01', null, 012]}}}`, "",
			`{"additionalProperties":false,"properties":{"a":{"enum":["012","no","1e3","2026-01-01",null,10]}},"type":"object"}`},
		"a pattern that Go does not know": {"3.1.0", `{type: object, properties: {a: {type: string, pattern: '^(?=x)'}}}`, "",
			`{"additionalProperties":false,"properties":{"a":{"type":"string"}},"type":"object"}`},
		"an array": {"3.1.0", `{type: array, items: {type: string}}`, "",
			`{"additionalProperties":false,"properties":{"body":{"items":{"type":"string"},"type":"array"}},` +
				`"required":["body"],"type":"object"}`},
	} {
		if got := schemaOf(t, document(test.version, post(test.schema), test.schemas), "op"); got != test.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, test.want)
		}
	}
}

// TestRequests: the derived operation makes the request that the document describes.
func TestRequests(t *testing.T) {
	t.Parallel()
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		got = fmt.Sprintf("%s %s [%s] key=%v match=%s type=%s mode=%s", r.Method, r.URL, b,
			r.Header.Get("X-Idempotency-Key") != "",
			r.Header.Get("If-Match"), r.Header.Get("Content-Type"), r.Header.Get("X-Mode"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"n-1"}`)
	}))
	t.Cleanup(s.Close)
	src := document("3.1.0", `
		'/accounts/{account}/notes/{id}': {
			parameters: [{name: account, in: path, required: true, schema: {type: string}}, {name: id, in: path,
				required: true, schema: {type: string}}],
			patch: {operationId: patch, parameters: [{name: 'dry run', in: query, required: true, schema: {type: boolean}},
				{name: 'a+b%', in: query, required: true, schema: {type: string}},
				{name: X-Mode, in: header, required: true, schema: {type: string}},
				{name: If-Match, in: header, schema: {type: string}}, {name: optional, in: query, schema: {type: string}}],
				requestBody: {content: {application/merge-patch+json: {schema: {type: object,
					properties: {note: {type: string}}}}}}, responses: {'200': {description: ok}}}},
		'/notes/{id}': {parameters: [{name: id, in: path, required: true, schema: {type: string}}],
			post: {operationId: post, parameters: [{name: X-Idempotency-Key, in: header, schema: {type: string}}],
				requestBody: {content: {application/json: {schema: {type: object, properties: {note: {type: string}}}}}},
				responses: {'201': {description: ok, content: {application/json: {schema: {type: object,
					properties: {id: {type: string}}}}}}}},
			delete: {operationId: remove, responses: {'204': {description: ok}}}},
		/publish: {post: {operationId: publish, responses: {'204': {description: ok}}}}`, "")
	made, err := httpconn.New(t.Context(), httpconn.Config{BaseURL: s.URL, AllowPrivate: true, Import: accepted(t, src)},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	c := made.(*httpconn.Connector)
	for _, test := range []struct {
		operation, ref, version string
		change                  gatehouse.JSON
		want                    string
	}{
		{"post", "n/1", "", `{"note":"x"}`, ""},
		{"post", "n1", "", `{"note":"x"}`, `POST /notes/n1 [{"note":"x"}] key=true match= type=application/json mode=`},
		{"remove", "n1", "", `{}`, `DELETE /notes/n1 [] key=false match= type= mode=`},
		{"remove", "n1", "", `{"note":"x"}`, ""},
		{"publish", "all", "", `{}`, `POST /publish [] key=false match= type= mode=`},
		{"publish", "all", "", `{"note":"x"}`, ""},
		{"patch", "n1", "v7", `{"X-Mode":"live","account":"a&b","a+b%":"1","body":{"note":"x"},"dry run":true}`,
			`PATCH /accounts/a&b/notes/n1?a%2Bb%25=1&dry%20run=true [{"note":"x"}] key=false match="v7" ` +
				`type=application/merge-patch+json mode=live`},
		{"patch", "n1", "", `{"X-Mode":"live","account":"a","a+b%":"1","body":{"note":"x"},"dry run":true}`, ""},
		{"patch", "n1", "v7", `{"X-Mode":"live","account":"../b","a+b%":"1","body":{"note":"x"},"dry run":true}`, ""},
		{"patch", "n1", "v7", `{"X-Mode":"live\r\nX: y","account":"a","a+b%":"1","body":{"note":"x"},"dry run":true}`, ""},
	} {
		got = ""
		call := connector.Call{
			Tenant: "default", ActionID: "act_1", IdempotencyKey: "k", Attempt: 1, Operation: test.operation,
			ProposedChange: test.change,
			Target:         gatehouse.Target{EntityType: "note", EntityRef: test.ref, Version: test.version},
		}
		res, err := c.Execute(t.Context(), call)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s %s: %v, sent\n%s, want\n%s", test.operation, test.change, err, got, test.want)
		}
		if test.operation == "post" && err == nil && res.ExternalID != "n-1" {
			t.Errorf("external id %q", res.ExternalID)
		}
	}
}

// TestLeftOut: operations that cannot be imported are listed with the reason.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	const rest = `responses: {'200': {description: ok}}`
	deep := strings.Repeat(`{type: object, properties: {a: `, 40) + `{type: string}` + strings.Repeat(`}}`, 40)
	for want, operation := range map[string]string{
		"its body is text/csv": `requestBody: {content: {text/csv: {schema: {type: string}}}},` + rest,
		"it needs the password pin": `requestBody: {content: {application/json: {schema: ` +
			`{type: object, required: [pin], properties: {pin: {type: string, format: password}}}}}},` + rest,
		"it needs the cookie sid": `parameters: [{name: sid, in: cookie, required: true, schema: {type: string}}],` + rest,
		`its parameter "body"`:    `parameters: [{name: body, in: query, required: true, schema: {type: string}}],` + rest,
		`it has two parameters that are called "a"`: `parameters: [{name: a, in: query, required: true, ` +
			`schema: {type: string}}, {name: a, in: header, required: true, schema: {type: string}}],` + rest,
		"its schema ": `requestBody: {content: {application/json: {schema: ` + deep + `}}},` + rest,
	} {
		api := derive(t,
			document("3.1.0", `/a: {post: {operationId: bad, `+operation+`}}, /b: {post: {operationId: good, `+rest+`}}`, ""))
		if got := api.LeftOut["bad"]; !strings.HasPrefix(got, want) || len(api.Operations) != 1 {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestArrays: a body that may be an array has the level 5, also beside parameters; one without a type is an object.
func TestArrays(t *testing.T) {
	t.Parallel()
	const query = `parameters: [{name: q, in: query, required: true, schema: {type: string}}],`
	const schemas = `A: {type: array, items: {type: string}}, O: {type: object, properties: {a: {type: string}}}`
	for about, array := range map[string]bool{
		``:           false,
		`schema: {}`: false,
		`schema: {properties: {a: {type: string}}}`:                              false,
		`schema: {oneOf: [{type: array, items: {}}, {type: object}]}`:            false,
		`schema: {$ref: '#/components/schemas/O', title: T}`:                     false,
		`schema: {items: {type: string}}`:                                        true,
		`schema: {$ref: '#/components/schemas/A', title: T}`:                     true,
		`schema: {type: [array, object], items: {}}`:                             true,
		`schema: {allOf: [{minItems: 1}, {$ref: '#/components/schemas/A'}]}`:     true,
		`schema: {allOf: [{allOf: [{prefixItems: [{type: string}]}]}]}`:          true,
		`schema: {type: object, properties: {a: {type: array, items: {}}}}`:      false,
		`schema: {allOf: [{type: object, properties: {a: {type: [array]}}}]}`:    false,
		`schema: {type: object, allOf: [{$ref: '#/components/schemas/O'}]}`:      false,
		`schema: {allOf: [{anyOf: [{type: array, items: {}}, {type: string}]}]}`: false,
	} {
		for _, parameters := range []string{"", query} {
			src := document("3.1.0", `/a: {post: {operationId: op, `+parameters+
				`requestBody: {content: {application/json: {`+about+`}}}, responses: {'200': {description: ok}}}}`, schemas)
			op := derive(t, src).Operations["op"]
			if want := "bulk: the body is an array"; slices.Contains(op.Why, want) != array || (op.Floor == 5) != array {
				t.Errorf("%s %s: level %d, %q", parameters, about, op.Floor, op.Why)
			}
			body, _ := op.Entry["schema"].(map[string]any)
			if properties, _ := body["properties"].(map[string]any); parameters != "" {
				body, _ = properties["body"].(map[string]any)
			}
			if !array && body["type"] != "object" {
				t.Errorf("%s %s: the body is %v", parameters, about, body)
			}
		}
	}
}

// TestParametersWithSecrets: no parameter brings a password or a credential into the proposals. The connector sends the
// headers with credentials; other parameters leave the operation out.
func TestParametersWithSecrets(t *testing.T) {
	t.Parallel()
	const scheme = `}, securitySchemes: {h: {type: apiKey, in: header, name: x-acme-sign}, ` +
		`q: {$ref: '#/components/securitySchemes/r'}, r: {type: apiKey, in: query, name: sig}`
	derived := func(path, in, name, about string) *openapi.API {
		if strings.Contains(path, "{id}") {
			about += `}, {name: id, in: path, required: true, schema: {type: string}`
		}
		return derive(t, document("3.1.0", `'`+path+`': {post: {operationId: op, parameters: [{name: `+name+`, in: `+in+
			`, required: true, `+about+`}], responses: {'200': {description: ok}}}}, `+
			`/b: {post: {operationId: good, responses: {'200': {description: ok}}}}`, scheme))
	}
	const text, password = `schema: {type: string}`, `schema: {type: string, format: password}`
	for _, test := range []struct{ path, in, name, about string }{
		{"/a", "query", "pin", password},
		{"/a", "query", "pin", `schema: {anyOf: [{type: string, format: password}, {type: 'null'}]}`},
		{"/a", "header", "X-Pin", password},
		{"/a/{pin}/x/{id}", "path", "pin", password},
		{"/a/{pin}", "path", "pin", password},
		{"/a", "query", "sig", text},
		{"/a", "query", "pin", `content: {text/plain: {` + password + `}}`},
	} {
		api := derived(test.path, test.in, test.name, test.about)
		want := "it needs the password " + test.name + ", which proposals would contain"
		if got := api.LeftOut["op"]; got != want {
			t.Errorf("%v: left out because %q, want %q", test, got, want)
		}
	}
	for _, name := range []string{"X-Api-Key", "apikey", "X-Auth-Token", "Proxy-Authorization", "X-Acme-Sign"} {
		api := derived("/a", "header", name, text)
		op := api.Operations["op"]
		if op.Entry["headers"] != nil || strings.Contains(fmt.Sprint(op.Entry["schema"]), name) ||
			!slices.Contains(op.Why, "header "+name+" is a credential, which the connector must send, and was left out") {
			t.Errorf("%s: %v, %q, %q", name, op.Entry, op.Why, api.LeftOut)
		}
	}
	for in, name := range map[string]string{"query": "x-acme-sign", "header": "sig", "path": "sig"} {
		path := "/a"
		if in == "path" {
			path = "/a/{sig}/x/{id}"
		}
		api := derived(path, in, name, text)
		if op := api.Operations["op"]; !strings.Contains(fmt.Sprint(op.Entry["schema"]), name) {
			t.Errorf("%s in %s: %v, %q", name, in, op.Entry, api.LeftOut)
		}
	}
}

// TestStates: what an import says of operations that are in the file already.
func TestStates(t *testing.T) {
	t.Parallel()
	post := func(path, properties string) string {
		return path + `: {post: {operationId: ` + path[1:] + `, ` + fmt.Sprintf(body, properties) +
			`, responses: {'200': {description: ok}}}}`
	}
	many := func(prefix, kind string) string {
		var all []string
		for i := range 25 {
			all = append(all, fmt.Sprintf("%s%d: {type: %s}", prefix, i, kind))
		}
		return strings.Join(all, ", ")
	}
	file := func(text string) *openapi.File {
		f, err := openapi.Open([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	imported := func(f *openapi.File, src []byte, only ...string) map[string]openapi.Line {
		lines, err := f.Import(derive(t, src), only, func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string]openapi.Line, len(lines))
		for _, l := range lines {
			if _, twice := all[l.Name]; twice {
				t.Errorf("two lines for %s", l.Name)
			}
			all[l.Name] = l
		}
		return all
	}

	before := accepted(t, document("3.1.0", post("/a", "n: {type: string}")+", "+post("/b", "")+", "+post("/c", ""), ""))
	got := imported(file(before), document("3.1.0", post("/a", "n: {type: string}")+
		`, /b: {post: {operationId: b, requestBody: {content: {text/csv: {schema: {type: string}}}}, `+
		`responses: {'200': {description: ok}}}}`, ""))
	if got["a"].State != openapi.Accepted || got["b"].State != openapi.LeftOut || !got["b"].Updated ||
		got["c"].State != openapi.Gone {
		t.Errorf("%+v", got)
	}
	got = imported(file(before), document("3.1.0", post("/a", "n: {type: string}")+", "+post("/b", ""), ""), "a")
	if b := got["b"]; b.State != openapi.LeftOut || !b.Updated || got["c"].State != openapi.Gone {
		t.Errorf("%+v", got)
	}

	// A person has changed the entry to what the document says now.
	edited := strings.Replace(accepted(t, document("3.1.0", post("/a", "n: {title: Old}"), "")), "Old", "New", 1)
	got = imported(file(edited), document("3.1.0", post("/a", "n: {title: New}"), ""))
	if a := got["a"]; a.State != openapi.Accepted || !a.Updated {
		t.Errorf("%+v", a)
	}

	// The listed differences are bounded, and say that there are more.
	f := file(accepted(t, document("3.1.0", post("/a", many("x", "string")), "")))
	for _, properties := range []string{many("x", "integer"), many("y", "string"), many("z", "string")} {
		got = imported(f, document("3.1.0", post("/a", properties), ""))
		if a := got["a"]; a.State != openapi.Changed || len(a.Differs) != 21 || a.Differs[20] != "…" {
			t.Errorf("%s: %d %q", a.State, len(a.Differs), a.Differs)
		}
	}
}

// TestRefusals: documents that are broken, too large or malicious are refused with an error of one line.
func TestRefusals(t *testing.T) {
	t.Parallel()
	post := `/a: {post: {operationId: op, responses: {'200': {description: ok}}}}`
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1,
			c-1, c-1, c-1)
	}
	for name, test := range map[string]struct{ src, want string }{
		"nothing":         {"", "is empty"},
		"no map":          {"- a", "is not a map"},
		"a text":          {"\x00\xff", "is neither JSON nor YAML"},
		"half a document": {`{"openapi": "3.1.0", `, "is neither JSON nor YAML"},
		"twice":           {"openapi: 3.1.0\nopenapi: 3.0.0", "twice"},
		"old":             {"swagger: '2.0'", "is Swagger 2.0"},
		"another":         {"openapi: 4.0.0", "is not an OpenAPI 3 document"},
		"a number":        {"openapi: 3.1", "is not an OpenAPI 3 document"},
		"a bomb":          {bomb + "openapi: 3.1.0", "values, with those that aliases repeat"},
		"many values": {
			`{"openapi": "3.1.0", "x": [` + strings.Repeat("0,", 500_000) + `0]}`, "has more than 500000 values"},
		"a loop":  {"openapi: 3.1.0\nx: &x [*x]", "is nested deeper than 100"},
		"deep":    {"openapi: 3.1.0\nx: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "is nested deeper than 100"},
		"large":   {"openapi: 3.1.0\n# " + strings.Repeat("x", openapi.MaxBytes), "is larger than 5 MiB"},
		"outside": {string(document("3.1.0", post, `A: {$ref: 'file:///etc/passwd'}`)), "refers to another document"},
		"nowhere": {string(document("3.1.0", post, `A: {$ref: '#/components/schemas/B'}`)), "is not valid"},
		"itself":  {string(document("3.1.0", post, `A: {$ref: '#/components/schemas/A'}`)), "is not valid"},
		"two of a name": {
			string(document("3.1.0",
				`/a: {post: {operationId: a b, responses: {'200': {description: ok}}}}, /b: {post: {operationId: a_b, `+
					`responses: {'200': {description: ok}}}}`, "")),
			"has two operations that are called"},
		"a text for a map": {
			"openapi: 3.1.0\ninfo: {title: a, version: '1'}\npaths: {/a: {post: {responses: x}}}",
			"is not valid: Operation.responses cannot be text"},
		"a lost part": {
			string(document("3.1.0", `/a: {post: {requestBody: {$ref: '#/components/x'}}}`, "")),
			`it refers to "#/components/x", which does not exist`},
		"a tab":    {"openapi: 3.1.0\n\tx: 1", "is neither JSON nor YAML: line 2, column 1: found a tab"},
		"infinity": {"openapi: 3.1.0\nx: .inf", "is not a JSON number"},
		"a merge":  {"openapi: 3.1.0\nx: {<<: {a: b}}", "merge keys (<<) are not supported"},
	} {
		_, err := openapi.Derive(t.Context(), []byte(test.src))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDerive: whatever a document says, nothing panics, and what was derived can be
// written, read and used.
func FuzzDerive(f *testing.F) {
	f.Add(document("3.1.0",
		`/a/{id}: {parameters: [{name: id, in: path, required: true, schema: {type: string}}], `+
			`put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/A'}}}}, `+
			`responses: {'412': {description: no}}}}`, `A: {type: object, properties: {a: {$ref: '#/components/schemas/A'}}}`))
	f.Add([]byte(
		`{"openapi":"3.0.3","info":{"title":"T","version":"1"},"paths":{"/a":{"delete":{"responses":{"204":` +
			`{"description":"x"}}}}}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		api, err := openapi.Derive(t.Context(), src)
		if err != nil {
			return
		}
		file, err := openapi.Open(nil)
		if err == nil {
			_, err = file.Import(api, nil, func(string) bool { return true })
		}
		var text []byte
		if err == nil {
			text, err = file.Text()
		}
		if err == nil {
			_, err = httpconn.New(t.Context(), httpconn.Config{BaseURL: "https://api.example", Import: string(text)}, nil)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		again, err := openapi.Open(text)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := again.Import(api, nil, func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			if l.Updated || l.State != openapi.Accepted && l.State != openapi.LeftOut {
				t.Errorf("%+v", l)
			}
		}
	})
}
