package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// formSource has each kind of value, comments, and what the form has no fields for.
const formSource = `connectors:
  # the customers
  crm:
    type: http
    tenants: [default, acme]
    base_url: "https://crm.example" # ours
    allow_private: true
    timeout: 20s
    # how it signs in
    auth: {bearer: {secret: CRM}}
    headers:
      X-Trace: 'on' # kept
      X-Key: {secret: KEY}
      X-Odd: {secret: KEY, prefix: "Token "}
    entities:
      person: {fields: {name: 2, note: 1}}
    operations:
      update:
        method: POST
        path: /x
        class: B
        conditional: {}
        success: [200, 201-204]
        outcomes:
        - status: [409] # taken
          outcome: terminal
          code: taken
        - status: [500-599]
          outcome: transient
        body: |
          {"a": "{version}"}
        schema: {type: object, properties: {a: {type: string}}}
        amounts: [{field: /total, currency: EUR, minor: true}]
        preview: [not, an, object]
        later: {a: 1} # a key of another version
      create: {method: PUT, path: /y}
    later: "a, b"
  erp: {type: worker, operations: {print: {}}}
`

func entryOf(t *testing.T, src, name string) config.ConnectorEntry {
	t.Helper()
	e, err := config.EntryOf(src, name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func edit(t *testing.T, src string, e config.ConnectorEntry) string {
	t.Helper()
	out, err := config.EditConnectors(src, e)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestConnectorFormValues: each nested value is a text of its own.
func TestConnectorFormValues(t *testing.T) {
	t.Parallel()
	e := entryOf(t, formSource, "crm")
	want := map[string]string{
		"base_url": "https://crm.example", "allow_private": "true", "timeout": "20s", "auth.bearer": "CRM",
		"headers.0": "X-Trace", "headers.0.value": "on", "headers.1": "X-Key", "headers.1.value.secret": "KEY",
		"headers.2": "X-Odd", "headers.2.value!": "{secret: KEY, prefix: \"Token \"}\n",
		"entities.0": "person", "entities.0.fields.0": "name", "entities.0.fields.0.value": "2",
		"entities.0.fields.1": "note", "entities.0.fields.1.value": "1",
		"operations.0": "update", "operations.0.method": "POST", "operations.0.path": "/x", "operations.0.class": "B",
		"operations.0.conditional.{}": "true", "operations.0.success": "200\n201-204",
		"operations.0.outcomes.0": "item", "operations.0.outcomes.0.status": "409",
		"operations.0.outcomes.0.outcome": "terminal", "operations.0.outcomes.0.code": "taken",
		"operations.0.outcomes.1": "item", "operations.0.outcomes.1.status": "500-599",
		"operations.0.outcomes.1.outcome": "transient",
		"operations.0.body":               "{\"a\": \"{version}\"}\n",
		"operations.0.schema":             "{type: object, properties: {a: {type: string}}}\n",
		"operations.0.amounts.0":          "item", "operations.0.amounts.0.field": "/total",
		"operations.0.amounts.0.currency": "EUR", "operations.0.amounts.0.minor": "true",
		"operations.0.preview!": "[not, an, object]\n",
		"operations.0.*":        "later: {a: 1} # a key of another version\n",
		"operations.1":          "create", "operations.1.method": "PUT", "operations.1.path": "/y",
		"*": "later: \"a, b\"\n",
	}
	if diff := cmp.Diff(want, e.Values); diff != "" || e.Type != "http" || e.Tenants != "default, acme" {
		t.Errorf("%s, %s, %s", e.Type, e.Tenants, diff)
	}
	if same := edit(t, formSource, e); same != formSource {
		t.Errorf("nothing is changed:\n%s", cmp.Diff(formSource, same))
	}
}

// TestConnectorFormEdits: an edit changes its own lines; all others stay byte for byte.
func TestConnectorFormEdits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values   map[string]string
		old, new string
	}{
		"a text": {map[string]string{"operations.0.path": "/z"}, "path: /x\n", "path: /z\n"},
		"a text like YAML": {
			map[string]string{"base_url": "yes: \"no\" # text"}, `"https://crm.example" #`, `'yes: "no" # text' #`,
		},
		"a secret": {
			map[string]string{"headers.1.value.secret": "NEW"}, "X-Key: {secret: KEY}", "X-Key: {secret: NEW}",
		},
		"another member": {
			map[string]string{"auth.bearer": "", "auth.basic.password": "P"},
			"{bearer: {secret: CRM}}", "{basic: {password: {secret: P}}}",
		},
		"a level":      {map[string]string{"entities.0.fields.1.value": "3"}, "note: 1}", "note: 3}"},
		"a row's name": {map[string]string{"operations.0": "put"}, "      update:\n", "      put:\n"},
		"a row less": {
			map[string]string{"operations.1": "", "operations.1.method": "", "operations.1.path": ""},
			"      create: {method: PUT, path: /y}\n", "",
		},
		"a row more": {map[string]string{"entities.7": "place"}, "note: 1}}\n", "note: 1}}\n      place: {}\n"},
		"an item less": {
			map[string]string{
				"operations.0.outcomes.1": "", "operations.0.outcomes.1.status": "",
				"operations.0.outcomes.1.outcome": "",
			}, "        - status: [500-599]\n          outcome: transient\n", "",
		},
		"a list": {map[string]string{"operations.0.success": "200\n 204 \n\n"}, "[200, 201-204]", "[200, '204']"},
		"an empty object": {
			map[string]string{"operations.0.conditional.{}": ""}, "        conditional: {}\n", "",
		},
		"what has no field": {
			map[string]string{"operations.0.preview!": "path: /p\n"}, " [not, an, object]", "\n          path: /p",
		},
		"other keys": {map[string]string{"*": ""}, "    later: \"a, b\"\n", ""},
	} {
		e := entryOf(t, formSource, "crm")
		for path, value := range test.values {
			e.Values[path] = value
		}
		want := strings.Replace(formSource, test.old, test.new, 1)
		if diff := cmp.Diff(want, edit(t, formSource, e)); diff != "" || want == formSource {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestConnectorFormFaults: a fault names its field.
func TestConnectorFormFaults(t *testing.T) {
	t.Parallel()
	for want, values := range map[string]map[string]string{
		"operations: row 1 has no name":                  {"operations.0": " "},
		`operations: the name "create" appears twice`:    {"operations.0": "create"},
		`operations.0.floor: "much" is not a number`:     {"operations.0.floor": "much"},
		"operations.0.schema:2:1:":                       {"operations.0.schema": "a: {"},
		"headers.0.value: has both a value and a secret": {"headers.0.value.secret": "S"},
		"entities.0.fields.0: has no value":              {"entities.0.fields.0.value": ""},
		"*: must be a mapping":                           {"*": "later"},
		"operations.0.*: must be a mapping":              {"operations.0.*": "[later]"},
	} {
		e := entryOf(t, formSource, "crm")
		for path, value := range values {
			e.Values[path] = value
		}
		if _, err := config.EditConnectors(formSource, e); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := config.EditConnectors("", config.ConnectorEntry{Name: "x", Type: "none"}); err == nil {
		t.Error("a type that does not exist")
	}
}

// TestConnectorFormEntries: entries are added, and removed one by one.
func TestConnectorFormEntries(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"token": "S", "channels.0": "C1", "channels.0.operations.0": "post", "channels.0.operations.0.floor": "2",
	}
	src := edit(t, formSource, config.ConnectorEntry{Name: "chat", Type: "slack", Tenants: "acme", Values: values})
	want := formSource + `  chat:
    type: slack
    tenants: [acme]
    token: {secret: S}
    channels:
      C1:
        operations:
          post:
            floor: 2
`
	if diff := cmp.Diff(want, src); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"chat", "crm", "erp"} {
		src = edit(t, src, config.ConnectorEntry{Name: name})
	}
	if all, err := config.ParseConnectors([]byte(src)); err != nil || len(all) != 0 {
		t.Errorf("%s: %v", src, err)
	}
}
