package config_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// TestConnectorsOfTheStore: forbidden values in connectors of the store are refused, with their
// place and without the secret; values that only look similar are accepted.
func TestConnectorsOfTheStore(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"type: http, headers: {Authorization: Bearer hush-hush}":           "literal secret",
		"type: http, headers: {X-Api-Key: hush-hush}":                      "literal secret",
		"type: stripe, key: sk_live_hush-hush":                             "literal secret",
		"type: slack, token: hush-hush":                                    "literal secret",
		"type: slack, token: {secret: hush hush}":                          "literal secret",
		"type: netsuite, auth: {token_secret: hush/hush}":                  "literal secret",
		"type: http, base_url: 'https://me:hush-hush@crm.example'":         "literal secret",
		"type: http, base_url: 'https://crm.example/?api_key=hush-hush'":   "literal secret",
		"type: sql, dsn: 'postgres://me:hush-hush@db/x'":                   "literal secret",
		"type: sql, password_secret: 'hush hush'":                          "literal secret",
		"type: github, x: \"-----BEGIN RSA PRIVATE KEY-----\\nhush-hush\"": "literal secret",
		"type: http, base_url: '${HUSH}'":                                  "variable of the environment",
		"type: http, base_url: 'file:/etc/hush-hush'":                      "cannot read a file",
		"type: sql, dsn: 'sqlite:/hush-hush.db'":                           "belongs to one machine",
		"&a type: http":                                                    "without an anchor",
		"type: http, x: &a hush":                                           "no anchors",
		"type: [http]":                                                     "connectors:1:",
	} {
		_, err := config.ParseConnectors([]byte("connectors: {crm: {" + src + "}}"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush-hush") {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
	for _, src := range []string{
		"type: http, auth: {bearer: {secret: CRM}}, token_url: 'https://a.example/token'",
		"type: sql, dsn: 'postgres://me@db/x', password_secret: SHOP",
		"type: http, entities: {user: {fields: {token: 4, password: 5}}}",
	} {
		all, err := config.ParseConnectors([]byte("connectors: {crm: {" + src + "}}"))
		if err != nil || !all["crm"].InStore() {
			t.Errorf("%s: %v", src, err)
		}
	}
	for src, want := range map[string]string{
		"models: {}":                     "there is no key models here",
		"connectors: {a b: {type: x}}":   "cannot name a connector",
		"connectors: {crm: {}, crm: {}}": "already defined",
	} {
		if _, err := config.ParseConnectors([]byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
	for _, src := range []string{"", "# nothing\n", "connectors: {}\n"} {
		if all, err := config.ParseConnectors([]byte(src)); err != nil || len(all) != 0 {
			t.Errorf("%q: %d, %v", src, len(all), err)
		}
	}
}

// TestConnectorsInBoth: a name in the file and in the store is refused, with both places.
func TestConnectorsInBoth(t *testing.T) {
	t.Parallel()
	file, err := config.Parse("g.yaml", []byte("connectors: {erp: {type: worker}}"))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := config.ParseConnectors([]byte("connectors:\n  erp: {type: worker}\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.With(stored)
	const want = "connector erp is in the file (g.yaml:1:19) and in the store (connectors:2:8)"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// TestConnectorForm: an entry survives its form, and other entries stay as they are.
func TestConnectorForm(t *testing.T) {
	t.Parallel()
	const src = `connectors:
  # the customers
  crm:
    type: http
    tenants: [default, acme]
    base_url: "https://crm.example" # ours
    allow_private: true
    timeout: 20s
    auth: {bearer: {secret: CRM}}
    operations: {update: {method: POST, path: /x, class: A}}
  erp: {type: worker, operations: {print: {}}}
`
	e, err := config.EntryOf(src, "crm")
	if err != nil {
		t.Fatal(err)
	}
	if e.Type != "http" || e.Tenants != "default, acme" || e.Values["allow_private"] != "true" ||
		e.Values["timeout"] != "20s" || !strings.Contains(e.Values["auth"], "secret: CRM") {
		t.Errorf("%+v", e)
	}
	e.Values["base_url"] = "yes: \"no\" # text\nsecond"
	text, err := e.Text()
	if err != nil {
		t.Fatal(err)
	}
	edited, err := config.EditConnectors(src, "crm", text)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(edited, "# the customers") || !strings.Contains(edited, "erp: {type: worker") {
		t.Errorf("%s", edited)
	}
	again, err := config.EntryOf(edited, "crm")
	if err != nil || again.Values["base_url"] != e.Values["base_url"] || again.Tenants != e.Tenants ||
		strings.TrimSpace(again.Values["operations"]) != strings.TrimSpace(e.Values["operations"]) {
		t.Errorf("%+v, %v", again, err)
	}
	for _, name := range []string{"crm", "erp"} {
		if edited, err = config.EditConnectors(edited, name, ""); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := config.ParseConnectors([]byte(edited)); err != nil || len(all) != 0 {
		t.Errorf("%s: %v", edited, err)
	}
	if edited, err = config.EditConnectors(edited, "slack", "type: slack\ntoken: {secret: S}\n"); err != nil {
		t.Fatal(err)
	}
	if e, err := config.EntryOf(edited, "slack"); err != nil || e.Values["token"] != "S" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := (config.ConnectorEntry{Type: "none"}).Text(); err == nil {
		t.Error("a type that does not exist")
	}
	bad := config.ConnectorEntry{Type: "http", Values: map[string]string{"operations": "update: {"}}
	if _, err := bad.Text(); err == nil || !strings.Contains(err.Error(), "operations:2:1") {
		t.Error(err)
	}
}

// TestConnectorKeys: each type has keys, and a text that begins with values has choices.
func TestConnectorKeys(t *testing.T) {
	t.Parallel()
	if types := config.ConnectorTypes(); len(types) != 14 {
		t.Errorf("%q", types)
	}
	got := map[string]string{}
	for _, kind := range config.ConnectorTypes() {
		for _, k := range config.ConnectorKeys(kind) {
			if len(k.Choices) > 0 {
				got[kind+"."+k.Name] = strings.Join(k.Choices, " ")
			}
		}
	}
	want := map[string]string{"email.tls": "starttls implicit none", "stripe.mode": "live test"}
	for name, choices := range want {
		if got[name] != choices {
			t.Errorf("%s: %q, want %q", name, got[name], choices)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%q", got)
	}
}
