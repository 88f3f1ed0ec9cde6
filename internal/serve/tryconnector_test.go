package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// ears is a target that remembers what it was sent, and answers with it.
type ears struct {
	*httptest.Server
	mu     sync.Mutex
	heard  []string
	status int
}

func newEars(t *testing.T) *ears {
	t.Helper()
	e := &ears{status: http.StatusOK}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard = append(e.heard, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(e.status)
		_, _ = fmt.Fprintf(w, `{"error": %q}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(e.Close)
	return e
}

// takes returns what was heard, and forgets it.
func (e *ears) takes() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	heard := strings.Join(e.heard, ", ")
	e.heard = nil
	return heard
}

// TestTryConnector: a connector is tested before it is approved, but with a secret only at the place to which a
// connector in use sends that secret, and inside the network only at a place that a connector in use calls.
func TestTryConnector(t *testing.T) {
	t.Parallel()
	s, target, other := newStored(t), newEars(t), newEars(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, masterKeyFile), []byte(ring.NewMasterKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := s.open(dir, s.configuration())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	s.people(server)
	for _, name := range []string{"KEY", "OTHER"} {
		if _, err := s.root.SetSecret(t.Context(), gatehouse.NewSecret{Name: name, Value: "hush-hush-" + name}); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(more ...string) string {
		text := fmt.Sprintf("{type: http, base_url: %q, allow_private: true, auth: {bearer: {secret: KEY}}, "+
			"probe: {path: /me}, operations: {update: {method: POST, path: /x}}}", target.URL)
		for i := 0; i < len(more); i += 2 {
			if text = strings.Replace(text, more[i], more[i+1], 1); more[i+1] != "" && !strings.Contains(text, more[i+1]) {
				t.Fatal(text)
			}
		}
		return text
	}
	root := servetest.CallerContext(t, server.Gate, s.creds)
	pages := connectorPages{server.Node}
	base := 0
	try := func(entry string) (shown, problem, untested string) {
		t.Helper()
		got, err := pages.TryConnector(root, "connectors: {web: "+entry+"}", base, "web")
		if err != nil {
			t.Errorf("%s: %v", entry, err)
		}
		if strings.Contains(fmt.Sprint(got), "hush") {
			t.Errorf("%s shows a secret: %+v", entry, got)
		}
		return got.Shown, got.Problem, got.Untested
	}

	if _, _, untested := try(entry()); !strings.Contains(untested, "secret KEY") || target.takes() != "" {
		t.Errorf("before approval: %q", untested)
	}
	s.apply("connectors: {crm: " + entry() + "}")
	s.runs(server, 1)
	_, err = pages.TryConnector(root, "connectors: {web: "+entry()+"}", base, "web")
	if gatehouse.CodeOf(err) != gatehouse.CodeTargetChanged {
		t.Errorf("a form from a version that was replaced: %v", err)
	}
	base = 1
	for _, entry := range []string{entry(), entry("update: {method: POST, path: /x}", "put: {method: PUT, path: /y}")} {
		shown, problem, untested := try(entry)
		if heard := target.takes(); shown != "its target answers and accepts the credentials" ||
			heard != "GET /me Bearer hush-hush-KEY" {
			t.Errorf("%s: %q, %q, %q, heard %q", entry, shown, problem, untested, heard)
		}
	}
	target.status = http.StatusInternalServerError
	if _, problem, _ := try(entry()); problem == "" || target.takes() == "" {
		t.Error("a target that fails is no problem")
	}

	for what, entry := range map[string]string{
		"another host":       entry(target.URL, other.URL),
		"another path":       entry("/me", "/other"),
		"another secret":     entry("KEY", "OTHER"),
		"one more secret":    entry("probe:", "headers: {X-Key: {secret: OTHER}}, probe:"),
		"a secret elsewhere": entry("bearer: {secret: KEY}", "header: {name: X-Key, secret: KEY}"),
		"a token server": entry("bearer: {secret: KEY}", "oauth2: {token_url: '"+other.URL+
			"/t', client_id: x, client_secret: {secret: KEY}}"),
		"another tenant": entry("type: http,", "type: http, tenants: [acme],"),
		"a vendor's new place": fmt.Sprintf("{type: slack, token: {secret: KEY}, base_url: %q, allow_private: true, "+
			"channels: {C0123ABC: {}}}", other.URL),
		"inside, merged in": entry(target.URL, other.URL, "allow_private: true, auth: {bearer: {secret: KEY}}, ",
			"<<: {allow_private: true}, "),
		"inside, no secret": entry(target.URL, other.URL, "auth: {bearer: {secret: KEY}}, ", ""),
		"a database": "{type: sql, dsn: 'postgres://me@127.0.0.1:5432/x', entities: {item: {table: items, " +
			"key: sku}}}",
		"what cannot be tested": "{type: worker, operations: {print: {}}}",
	} {
		shown, problem, untested := try(entry)
		if heard := target.takes() + other.takes(); heard != "" || untested == "" {
			t.Errorf("%s: %q, %q, %q, heard %q", what, shown, problem, untested, heard)
		}
	}
	// Without a permission for internal addresses, it is the connector that refuses one.
	_, port, _ := strings.Cut(strings.TrimPrefix(other.URL, "http://"), ":")
	outside := entry(target.URL, "https://localhost:"+port,
		"allow_private: true, auth: {bearer: {secret: KEY}}, ", "")
	said := strings.Replace(outside, "type: http,", "type: http, allow_private: false,", 1)
	for _, text := range []string{outside, said} {
		if _, problem, _ := try(text); !strings.Contains(problem, "internal") || other.takes() != "" {
			t.Errorf("an internal address: %q", problem)
		}
	}

	s.apply("connectors: {}")
	s.runs(server, 2)
	base = 2
	if _, _, untested := try(entry()); untested == "" || target.takes() != "" {
		t.Error("a removed connector counts")
	}

	for name, role := range map[string]gatehouse.Role{"olga": gatehouse.RoleOperator, "art": gatehouse.RoleApprover} {
		creds, err := server.Gate.CreatePrincipal(root, gatehouse.NewPrincipal{
			Name: name, Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{role},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx := servetest.CallerContext(t, server.Gate, creds)
		_, err = pages.TryConnector(ctx, "connectors: {web: "+outside+"}", base, "web")
		if gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
			t.Errorf("as %s: %v", role, err)
		}
	}
}
