package httpconn_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

const imported = `
openapi: {title: Billing, version: "2", sha256: "%"}
operations:
  refund:
    method: POST
    path: /refunds
    class: A
    floor: 4
    schema:
      type: object
      required: [amount]
      additionalProperties: false
      properties: {amount: {type: number, exclusiveMinimum: 0, maximum: 100.50}}
    imported: {digest: x, why: [a POST], money: [/amount]}
set_aside:
  purge: {method: DELETE, path: /all, floor: 5}
left_out: {upload: its body is not JSON}
`

func parse(t *testing.T, text string) httpconn.Config {
	t.Helper()
	var cfg httpconn.Config
	connectortest.Must(t, yaml.Load([]byte(text), &cfg, yaml.WithKnownFields()))
	cfg.BaseURL, cfg.Import = "https://billing.example", strings.ReplaceAll(imported, "%", strings.Repeat("a", 64))
	return cfg
}

func TestImported(t *testing.T) {
	t.Parallel()
	c := newConnector(t, parse(t, `operations: {note: {method: POST, path: /notes}, purge: {floor: 3}}`))
	if names := c.List(); len(names) != 2 { // operations that are set aside are not listed
		t.Errorf("operations: %+v", names)
	}
	call := connector.Call{
		Tenant: "default", Operation: "refund", Target: gatehouse.Target{EntityType: "refund", EntityRef: "new"},
		ProposedChange: `{"amount":12.50}`,
	}
	if err := c.Validate(call); err != nil || c.Floor(call) != 4 {
		t.Errorf("%v, floor %v", err, c.Floor(call))
	}
	for _, change := range []gatehouse.JSON{`{}`, `{"amount":0}`, `{"amount":100.51}`, `{"amount":1,"to":"me"}`,
		`{"amount":"1"}`} {
		call.ProposedChange = change
		if code := gatehouse.CodeOf(c.Validate(call)); code != gatehouse.CodeInvalid {
			t.Errorf("%s: code %q", change, code)
		}
		if _, err := c.Execute(t.Context(), call); err == nil || !strings.Contains(err.Error(), "terminal: invalid") {
			t.Errorf("%s: %v", change, err)
		}
	}
	if s, ok := c.Schema("refund", ""); !ok || !strings.Contains(string(s), `"maximum":100.50`) {
		t.Errorf("the schema is %s", s)
	}
	if s, ok := c.Schema("note", ""); !ok || s != `{"type":"object"}` {
		t.Errorf("the schema of any change is %s", s)
	}

	low := newConnector(t, parse(t, `operations: {refund: {floor: 2, key_retention: 24h}}`))
	call.ProposedChange = `{"amount":1}`
	if op, _ := low.Operation("refund"); low.Floor(call) != 2 || op.KeyRetention.Hours() != 24 ||
		op.Class != connector.ClassA {
		t.Errorf("what the operator declares: floor %v, %+v", low.Floor(call), op)
	}
	if low.Fingerprint() == c.Fingerprint() {
		t.Error("another operation has the same fingerprint")
	}
	other := parse(t, `operations: {refund: {floor: 2}}`)
	other.Import = strings.ReplaceAll(other.Import, "aaaa", "bbbb")
	if newConnector(t, other).Fingerprint() == low.Fingerprint() {
		t.Error("another document has the same fingerprint")
	}
}

func TestImportedRefusals(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*httpconn.Config){
		"operations.refund: is imported": func(c *httpconn.Config) {
			c.Operations = map[string]httpconn.Operation{"refund": {Method: "POST", Path: "/free"}}
		},
		"operations.purge.method": func(
			c *httpconn.Config) {
			c.Operations = map[string]httpconn.Operation{"purge": {Path: "/x"}}
		},
		"import: was not written by": func(c *httpconn.Config) { c.Import = "operations: {}" },
		"import: ":                   func(c *httpconn.Config) { c.Import = "a: {" },
		"operations.refund.schema: $ref is": func(
			c *httpconn.Config) {
			c.Import = strings.Replace(c.Import, "type: number", "$ref: x", 1)
		},
		"operations.refund.schema: /properties": func(
			c *httpconn.Config) {
			c.Import = strings.Replace(c.Import, "type: number", "type: money", 1)
		},
	} {
		cfg := parse(t, "{}")
		change(&cfg)
		if _, err := httpconn.New(t.Context(), cfg, nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestFingerprintOfOldConfigurations: a newer program that knows more keys computes the same
// fingerprint, so actions approved under the older one stay valid.
func TestFingerprintOfOldConfigurations(t *testing.T) {
	t.Parallel()
	c := newConnector(t, httpconn.Config{
		BaseURL:    "https://crm.example/api",
		Operations: map[string]httpconn.Operation{"update": {Method: "PATCH", Path: "/{entity_type}/{entity_ref}"}},
	})
	if got := c.Fingerprint(); got != "614bb0013a9577506a287700421d76690372ad4300941685ca46c1c579f211a9" {
		t.Errorf("the fingerprint is %s", got)
	}
}
