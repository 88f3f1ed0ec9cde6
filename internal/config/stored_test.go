package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// TestConnectorsOfTheStore: forbidden values in connectors of the store are refused, and the error does
// not quote the secret; values that only look similar are accepted.
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
		"type: http, ca_file: /etc/hush-hush":                              "cannot name a file of the server",
		"type: kubernetes, ca_file: /etc/hush-hush":                        "cannot name a file of the server",
		"type: sql, dsn: 'mysql://me@db/x?ca=/hush-hush'":                  "cannot name a file of the server",
		"type: sql, dsn: 'mysql://me@db/x?tls=verify&%6bey=/hush-hush'":    "cannot name a file of the server",
		"type: sql, dsn: 'sqlserver://me@db/x?ca=/hush-hush'":              "cannot name a file of the server",
		"type: sql, dsn: 'postgres://me@db/x?sslrootcert=/hush-hush'":      "cannot name a file of the server",
		"type: sql, dsn: 'postgres://me@db/x?sslcert=hush-hush'":           "cannot name a file of the server",
		"type: sql, dsn: 'postgres://me@db/x?sslkey=hush-hush'":            "cannot name a file of the server",
		"&a type: http":          "without an anchor",
		"type: http, x: &a hush": "cannot have anchors",
		"type: [http]":           "connectors:1:26: must be text, not a list",
	} {
		_, err := config.ParseConnectors([]byte("connectors: {crm: {" + src + "}}"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
	for _, src := range []string{
		"type: http, auth: {bearer: {secret: CRM}}, token_url: 'https://a.example/token'",
		"type: sql, dsn: 'postgres://me@db/x', password_secret: SHOP",
		"type: sql, dsn: 'postgres://me@db/x?sslmode=verify-full&sslrootcert=system'",
		"type: http, entities: {user: {fields: {token: 4, password: 5}}}",
	} {
		all, err := config.ParseConnectors([]byte("connectors: {crm: {" + src + "}}"))
		if err != nil || !all["crm"].InStore() {
			t.Errorf("%s: %v", src, err)
		}
	}
	for src, want := range map[string]string{
		"models: {}":                             "connectors:1:1: unknown key models",
		"x":                                      "connectors:1:1: cannot be `x`",
		"connectors: 5":                          "connectors:1:13: must be a mapping, not `5`",
		"connectors: {crm: [a]}":                 "connectors:1:19: must be a mapping, not a list",
		"connectors: {gatehouse: {}}":            "connectors:1:25: the name gatehouse is reserved",
		"connectors: {a: {tenants: []}}":         "tenants: the list is empty",
		"connectors: {a: {tenants: [acme, '']}}": `tenants: "" cannot name a tenant`,
		"connectors: {a: {type: http, operations: {b: {floor: 0}}}}":                 "1:54: floor: must be 1 to 5",
		"connectors: {a: {type: sql, entities: {b: {operations: {d: {floor: 0}}}}}}": "floor: must be 1 to 5",
		"connectors: {a: {type: mcp, workers: }}":                                    "1:38: workers: the list is empty",
		"connectors: {a b: {type: x}}":                                               "cannot name a connector",
		"connectors: {crm: {}, crm: {}}":                                             "already defined",
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

// TestDisguisedInTheStore: a secret and a file of the server are found also if the value is a number, has a tag, or is
// an address that only the driver can read.
func TestDisguisedInTheStore(t *testing.T) {
	t.Parallel()
	const secret, file = "holds a literal secret", "cannot name a file of the server"
	for src, want := range map[string]string{
		"type: http, headers: {X-Api-Key: 841209375}":                               secret,
		"type: http, headers: {X-Api-Key: 2026-01-02}":                              secret,
		"type: http, headers: {X-Api-Key: '5'}":                                     secret,
		"type: http, headers: {Authorization: !x hush-hush}":                        "cannot have tags",
		"type: http, headers: !x {Authorization: hush-hush}":                        "cannot have tags",
		"type: sql, dsn: !!binary c3FsaXRlOi9odXNoLmRi":                             "cannot have tags", // sqlite:/hush.db
		"type: http, ? !!binary Y2FfZmlsZQ== : /etc/hush":                           "without an anchor or a tag",
		"type: http, base_url: 'https://me:hush^hush@crm.example'":                  secret,
		"type: sql, dsn: 'mysql://me:hush#hush@db/x'":                               secret,
		"type: sql, dsn: 'postgres://me@db/x?password=hush&password='":              secret,
		"type: sql, dsn: 'postgres://me:hush/hush@db/x'":                            "address cannot be read",
		"type: sql, dsn: 'host=db user=me password=hush-hush'":                      "address cannot be read",
		"type: sql, dsn: 'postgres:host=db password=hush-hush'":                     "address cannot be read",
		"type: sql, dsn: 'postgres://me@[a?sslkey=&b=]/x?sslkey=/hush'":             "address cannot be read",
		"type: sql, dsn: 'postgres://a?sslkey=&b@db/x?sslkey=/hush'":                file,
		"type: sql, dsn: 'postgres://me@db/x?sslkey=&sslkey=/hush'":                 file,
		"type: sql, dsn: 'postgres://me@db/x?a=b& sslkey=/hush'":                    file,
		"type: sql, dsn: 'postgres://me@db/x?a=b;c&ssl%6bey=/hush'":                 file,
		"type: sql, dsn: 'postgres://me@db/x?sslrootcert=system&sslrootcert=/hush'": file,
	} {
		_, err := config.ParseConnectors([]byte("connectors: {crm: {" + src + "}}"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
	for _, between := range []string{"?", "#", "^", "[", "]", "\"", "<", "ä", ":", "%40"} {
		src := "connectors: {crm: {type: sql, dsn: 'postgres://me:hush" + between + "hush@db/x'}}"
		_, err := config.ParseConnectors([]byte(src))
		if err == nil || !strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", src, err)
		}
	}
	for _, src := range []string{
		"type: sql, dsn: 'postgres://me@a:1,[::1]:2/x?sslkey=&search_path=a'",
		"type: sql, dsn: 'mysql://me@/x?socket=/run/db'",
		"type: http, entities: {user: {fields: {token: 4, api_key: null}}}, base_url: !!str 5",
	} {
		if _, err := config.ParseConnectors([]byte("connectors: {crm: {" + src + "}}")); err != nil {
			t.Errorf("%s: %v", src, err)
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

// TestConnectorKeys: a key whose text begins with its values has them as choices. The test lists all
// keys that have choices or may be empty.
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
		"netsuite.restlet.protocol":           "plain gatehouse",
		"netsuite.entities.fields.type":       netsuiteTypes,
		"netsuite.entities.fields.lines.type": netsuiteTypes, "sql.entities.preview": "true false",
		"worker.operations.class": "A B C",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestImportedInTheStore: an import changes the operations of one connector, and nothing else.
func TestImportedInTheStore(t *testing.T) {
	t.Parallel()
	const src = "connectors:\n  erp: {type: worker} # ours\n  crm: {type: http, base_url: 'https://crm.example'}\n"
	const operations = "openapi: {title: CRM}\noperations: {}\n"
	if known, old, err := config.ImportOf(src, "crm"); err != nil || !known || old != "" {
		t.Errorf("%v, %q, %v", known, old, err)
	}
	if known, _, err := config.ImportOf(src, "web"); err != nil || known {
		t.Errorf("%v, %v", known, err)
	}
	if _, _, err := config.ImportOf(src, "erp"); err == nil {
		t.Error("a worker has no imported operations")
	}
	for _, name := range []string{"crm", "web"} {
		edited, err := config.EditImport(src, name, "https://web.example", operations)
		if err != nil || !strings.Contains(edited, "erp: {type: worker} # ours") {
			t.Fatalf("%s, %v", edited, err)
		}
		if known, got, err := config.ImportOf(edited, name); err != nil || !known || got != operations {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if _, err := config.ParseConnectors([]byte(edited)); err != nil {
			t.Error(err)
		}
		e, err := config.EntryOf(edited, name) // as the console's form
		if err != nil {
			t.Fatal(err)
		}
		again, err := config.EditConnectors(edited, e)
		if err != nil || !strings.Contains(again, "import: |\n") || !strings.Contains(again, "operations: {}\n") {
			t.Errorf("%s, %v", again, err)
		}
		if n := strings.Count(edited, "https://crm.example"); n != 1 {
			t.Errorf("%s", edited)
		}
	}
	for operations, want := range map[string]string{
		"a: &x 1\nb: *x\n":              "connectors:6:4: a connector in the store cannot have anchors",
		"a: 1\nb: ${HUSH}\n":            "connectors:7:4: a connector in the store cannot use a variable",
		"a:\n  X-Api-Key: hush-hush\n":  "holds a literal secret",
		"a: [\n":                        "import is not YAML",
		"a: sk_live_hush-hush\nb: 1\n":  "holds a literal secret",
		"a: 'file:/etc/passwd'\nb: 1\n": "cannot read a file",
	} {
		edited, err := config.EditImport("", "crm", "https://crm.example", operations)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = config.ParseConnectors([]byte(edited)); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want %q", operations, err, want)
		}
	}
}

// TestImportOfOneLine: imported operations are checked also if a scalar of one line holds them.
func TestImportOfOneLine(t *testing.T) {
	t.Parallel()
	const head = "connectors:\n  crm:\n    type: http\n    import: "
	for value, want := range map[string]string{
		"'{openapi: {}, operations: {u: {headers: {Authorization: hush-hush}}}}'": "connectors:4:",
		`"{operations: {u: {headers: {X-Api-Key: 841209375}}}}"`:                  "holds a literal secret",
		"'${HUSH}'":      "cannot use a variable",
		"'['":            "import is not YAML",
		"file:hush.yaml": "gatehouse connector import --propose",
	} {
		_, err := config.ParseConnectors([]byte(head + value))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
	for _, value := range []string{"''", "'{operations: {u: {headers: {Authorization: {secret: CRM}}}}}'"} {
		if _, err := config.ParseConnectors([]byte(head + value)); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestConcurrency: every type whose calls this program makes has the limit, and no type sees the
// key.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	for _, kind := range config.ConnectorTypes() {
		src := "connectors: {crm: {concurrency: 3, type: " + kind + "}}"
		cfg, err := config.Parse("g.yaml", []byte(src))
		if kind == "worker" || kind == "mcp" {
			if err == nil || !strings.Contains(err.Error(), "concurrency: is not for the type "+kind) {
				t.Errorf("%s: %v", kind, err)
			}
			continue
		}
		if err != nil || cfg.Connectors["crm"].CallLimit() != 3 {
			t.Fatalf("%s: %v", kind, err)
		}
		var only struct {
			Type string `yaml:"type"`
		}
		if err := cfg.Connectors["crm"].Decode(&only); err != nil || only.Type != kind {
			t.Errorf("%s: %+v, %v", kind, only, err)
		}
	}
	for limit, want := range map[string]string{
		"0": "leave the key out", "-1": "must be 1 to 1000", "1001": "must be 1 to 1000", "many": "g.yaml:1:",
	} {
		_, err := config.Parse("g.yaml", []byte("connectors: {crm: {type: http, concurrency: "+limit+"}}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", limit, err, want)
		}
	}
	cfg, err := config.Parse("g.yaml", []byte("connectors: {a: {type: netsuite}, b: {type: http}}"))
	if err != nil || cfg.Connectors["a"].CallLimit() != 2 || cfg.Connectors["b"].CallLimit() != 0 {
		t.Error(err)
	}
}
