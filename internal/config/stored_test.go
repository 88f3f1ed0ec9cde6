package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// TestConnectorsOfTheStore: what a text of the store must not hold is refused, with its
// place and without the secret; what only looks like it is not.
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

// TestConnectorKeys: each type has keys, and a text that begins with values has choices.
func TestConnectorKeys(t *testing.T) {
	t.Parallel()
	if types := config.ConnectorTypes(); len(types) != 14 {
		t.Errorf("%q", types)
	}
	got := map[string]string{}
	var walk func(path string, keys []config.ConnectorKey)
	walk = func(path string, keys []config.ConnectorKey) {
		for _, k := range keys {
			at := path + "." + k.Name
			if len(k.Choices) > 0 {
				got[at] = strings.Join(k.Choices, " ")
			}
			if k.MayBeEmpty() {
				got[at] = "may be empty"
			}
			walk(at, k.Keys)
		}
	}
	for _, kind := range config.ConnectorTypes() {
		walk(kind, config.ConnectorKeys(kind))
	}
	const netsuiteTypes = "text integer decimal money boolean date reference choice lines"
	want := map[string]string{
		"email.tls": "starttls implicit none", "stripe.mode": "live test", "servicenow.condition": "may be empty",
		"http.auth.oauth2.style": "basic body", "http.operations.class": "A B C",
		"http.operations.method": "POST PUT PATCH DELETE", "http.operations.conditional": "may be empty",
		"http.operations.outcomes.outcome": "applied transient terminal ambiguous not_sent",
		"http.operations.preview.method":   "GET POST PUT PATCH DELETE", "netsuite.operations.via": "rest restlet",
		"netsuite.entities.fields.type":       netsuiteTypes,
		"netsuite.entities.fields.lines.type": netsuiteTypes, "sql.entities.preview": "true false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
