package serve

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// vault is a server whose connector crm has its token in the store. The target accepts one token at
// a time, and echoes it.
type vault struct {
	*Server
	t              *testing.T
	token          atomic.Value
	root, bot, ana *client.Client
	proposed       int
}

func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{t: t}
	cfg := v.target()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, masterKeyFile), []byte(ring.NewMasterKey()), 0o600))
	n, err := Open(t.Context(), dir, cfg, slog.New(slog.DiscardHandler))
	must(t, err)
	v.start(n)
	return v
}

// target starts the target, and returns the configuration that names it.
func (v *vault) target() *config.Config {
	t := v.t
	t.Helper()
	v.token.Store("")
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if got != v.token.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id": %q, "echo": %q}`, got, base64.StdEncoding.EncodeToString([]byte(got)))
	}))
	t.Cleanup(target.Close)
	return servetest.Config(t, fmt.Sprintf(`
secrets: {CRM: "store:crm-token"}
connectors:
  crm:
    type: http
    base_url: %q
    allow_private: true
    auth: {bearer: {secret: CRM}}
    operations: {update: {method: POST, path: "/x", class: A, external_id: /echo}}
dispatch: {hold: 0s, retries: 1, backoff: [20ms], patience: 1ms}`, target.URL))
}

// start starts the server, and creates its users.
func (v *vault) start(n *Node) *gatehouse.Credentials {
	t := v.t
	t.Helper()
	creds := servetest.Bootstrap(t, n.Gate)
	v.Server = startServer(t, n)
	v.root = servetest.MustClient(t, v.URL, *creds)
	v.bot = servetest.NewClient(t, v.Gate, v.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	v.ana = servetest.NewClient(t, v.Gate, v.URL, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	return creds
}

func (v *vault) propose() *gatehouse.Action {
	v.t.Helper()
	v.proposed++
	return servetest.Propose(v.t, v.bot, fmt.Sprint(v.proposed))
}

// settled approves an action and waits until it has ended.
func (v *vault) settled(a *gatehouse.Action) *gatehouse.Action {
	v.t.Helper()
	if n := servetest.DecideAtOnce(v.t, a, []*client.Client{v.ana}); n != 1 {
		v.t.Fatalf("%d decisions", n)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		now, err := v.ana.FindAction(v.t.Context(), a.ID)
		must(v.t, err)
		if now.Status == gatehouse.StatusApplied || now.Status == gatehouse.StatusFailed ||
			now.Status == gatehouse.StatusUnknown {
			return now
		}
	}
	v.t.Fatalf("%s has not ended", a.ID)
	return nil
}

func (v *vault) applied(what string, a *gatehouse.Action) {
	v.t.Helper()
	if now := v.settled(a); now.Status != gatehouse.StatusApplied {
		v.t.Fatalf("%s: %s, %+v", what, now.Status, now.Failure)
	}
	evidence, err := v.root.Evidence(v.t.Context(), a.ID)
	if err != nil || len(evidence.Receipts) == 0 {
		v.t.Fatalf("%s: %v", what, err)
	}
	for _, r := range evidence.Receipts {
		text := string(r.ResponseMetadata) + string(r.RequestMetadata) + r.ExternalID
		token := v.token.Load().(string)
		if strings.Contains(text, token) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(token))) ||
			!strings.Contains(text, "[redacted]") {
			v.t.Errorf("%s: the receipt holds %s", what, text)
		}
	}
}

// ready waits until the server has a value of the secret, or, unless want is set, until it has none.
func (v *vault) ready(want bool) {
	v.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := v.secrets.Value(gatehouse.DefaultTenant, "crm-token"); (err == nil) == want {
			return
		}
	}
	v.t.Fatal("the server does not see the change of the secret")
}

// finding is doctor's check of the connector.
func (v *vault) finding() string {
	v.t.Helper()
	l := &ConfigChecker{Offline: true, stored: v.secrets}
	l.All(v.t.Context(), v.config)
	for _, c := range l.Checks {
		if c.Name == "connector crm" {
			return c.Result + ": " + c.Detail
		}
	}
	v.t.Fatal("doctor does not check the connector")
	return ""
}

// TestSecretsOfTheStore has a connector use a secret before it is set, and after it
// was set, rotated and revoked, in one server that is not restarted.
func TestSecretsOfTheStore(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	early, waiting, late := v.propose(), v.propose(), v.propose()
	missing := v.settled(v.propose())
	if missing.Failure == nil || missing.Failure.Code != "secret_missing" ||
		!strings.Contains(missing.Failure.Detail, "secret crm-token is not set") {
		t.Fatalf("not set: %s, %+v", missing.Status, missing.Failure)
	}
	if got := v.finding(); !strings.HasPrefix(got, term.CheckFail+": secret crm-token is not set") {
		t.Errorf("not set: doctor says %s", got)
	}

	v.token.Store("first token value")
	set := gatehouse.NewSecret{Name: "crm-token", Value: "first token value"}
	if _, err := v.root.SetSecret(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	v.ready(true)
	v.applied("set", early)
	if got := v.finding(); strings.HasPrefix(got, term.CheckFail) {
		t.Errorf("set: doctor says %s", got)
	}

	// An action that was proposed before a rotation is carried out after it.
	v.token.Store("second token value")
	set.Value = "second token value"
	if _, err := v.root.RotateSecret(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	holds(t, v.Server, set.Value)
	v.applied("rotated", waiting)
	other := gatehouse.NewSecret{Name: "unused", Value: "paid"}
	if _, err := v.root.SetSecret(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	must(t, v.secrets.refresh(t.Context()))
	if values := v.secrets.SecretValues(); slices.Contains(values, other.Value) {
		t.Error("the value of a secret that no connector uses is redacted")
	}
	for _, old := range []string{"first token value", "second token value"} {
		if got := v.Registry.RedactText(gatehouse.DefaultTenant, "you sent "+old); got != "you sent [redacted]" {
			t.Errorf("an echo: %s", got)
		}
	}

	if _, err := v.root.RevokeSecret(t.Context(), "crm-token"); err != nil {
		t.Fatal(err)
	}
	v.ready(false)
	revoked := v.settled(late)
	if revoked.Failure == nil || revoked.Failure.Code != "secret_missing" ||
		!strings.Contains(revoked.Failure.Detail, "secret crm-token was revoked") {
		t.Errorf("revoked: %s, %+v", revoked.Status, revoked.Failure)
	}
	must(t, v.secrets.storeLastUses(t.Context()))
	list, err := v.root.ListSecrets(t.Context())
	if err != nil || len(list) != 2 || list[0].Version != 2 || list[0].State != gatehouse.SecretRevoked ||
		list[0].LastUsedAt == nil || len(list[0].UsedBy) != 1 || list[0].UsedBy[0] != "crm" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestSecretsOfTwoReplicas: a secret that is set and rotated at one replica is used by the other,
// which is not restarted and carries out earlier proposals.
func TestSecretsOfTwoReplicas(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	v := &vault{t: t}
	cfg := v.target()
	cfg.Links.MasterKey = ring.NewMasterKey()
	other := replica(t, dsn, cfg)
	creds := v.start(replicaNode(t, dsn, cfg))
	waiting := v.propose()
	store := v.root.SetSecret
	for _, value := range []string{"first token value", "second token value"} {
		v.token.Store(value)
		if _, err := store(t.Context(), gatehouse.NewSecret{Name: "crm-token", Value: value}); err != nil {
			t.Fatal(err)
		}
		store = v.root.RotateSecret
		for _, at := range []*Server{v.Server, other} {
			holds(t, at, value)
		}
	}

	ben := servetest.NewClient(t, other.Gate, other.URL, creds, "ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	if err := v.Close(); err != nil { // the other replica is left
		t.Fatal(err)
	}
	v.Server, v.ana, v.root = other, ben, servetest.MustClient(t, other.URL, *creds)
	v.applied("rotated at the other replica", waiting)
	for _, old := range []string{"first token value", "second token value"} {
		if got := other.Registry.RedactText(gatehouse.DefaultTenant, "you sent "+old); got != "you sent [redacted]" {
			t.Errorf("an echo: %s", got)
		}
	}
}

// holds waits until a server has the value of the secret.
func holds(t *testing.T, s *Server, value string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if got, _ := s.secrets.Value(gatehouse.DefaultTenant, "crm-token"); got == value {
			return
		}
	}
	t.Fatal("the server does not see the change of the secret")
}

// TestSecretsOfOneTenant: a connector that would use the secrets of several tenants is refused.
func TestSecretsOfOneTenant(t *testing.T) {
	t.Parallel()
	for tenants, fails := range map[string]bool{"[acme]": false, "[acme, default]": true, `["*"]`: true} {
		cfg := servetest.Config(t, fmt.Sprintf(`
secrets: {CRM: "store:crm-token"}
connectors: {crm: {type: http, tenants: %s, base_url: "https://crm.example", auth: {bearer: {secret: CRM}},
  operations: {update: {method: POST, path: /x, class: C}}}}`, tenants))
		asked := ""
		b, err := BuildConnector(t.Context(), cfg, cfg.Connectors["crm"], func(tenant, _ string) (string, error) {
			asked = tenant
			return "value", nil
		})
		if (err != nil) != fails || !fails && (asked != "acme" || b.Unready != nil) {
			t.Errorf("%s: asks %q, %v", tenants, asked, err)
		}
	}
}

// TestOldValuesOfSecrets: the values of a secret are redacted in the data of its tenant alone, and only the last
// ones.
func TestOldValuesOfSecrets(t *testing.T) {
	t.Parallel()
	cfg := servetest.Config(t, `secrets: {FILE: value-of-the-file}`)
	s := newStoreSecrets(cfg, slog.New(slog.DiscardHandler))
	rotate := func(tenant, value string) {
		t.Helper()
		s.found = map[secretKey]gate.OpenedSecret{{tenant, "token"}: {Value: value}}
		if got, err := s.value(tenant, "token"); got != value || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	rotate("other", "critical")
	for n := range 10 {
		rotate("acme", fmt.Sprintf("value %d", n))
	}
	for range 2 {
		rotate("acme", "value 7") // as before, and not a fifth value
	}
	got := s.redacted()
	if want := []string{"value 6", "value 8", "value 9", "value 7"}; !slices.Equal(got["acme"], want) {
		t.Errorf("acme: %q, want %q", got["acme"], want)
	}
	if !slices.Equal(got["other"], []string{"critical"}) || len(got) != 3 ||
		!slices.Equal(got[dispatch.AllTenants], cfg.SecretValues()) {
		t.Errorf("%q", got)
	}
	if all := s.SecretValues(); len(all) != len(cfg.SecretValues())+5 {
		t.Errorf("all values: %q", all)
	}
}

// TestPlaceholders makes connectors whose key or certificate is not set: each is made, and is not
// ready.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	cfg := servetest.Config(t, `
secrets: {S: "store:s"}
connectors:
  stripe: {type: stripe, key: {secret: S}, operations: {refund: {}}}
  github: {type: github, auth: {app: {client_id: Iv1.1, installation_id: 1, private_key: {secret: S}}},
    repositories: {a/b: {}}}
  kubernetes:
    type: kubernetes
    server: https://kube.example:6443
    auth: {certificate: {secret: S}, key: {secret: S}}
    resources: {configmaps: {kind: ConfigMap, namespaces: [shop]}}
`)
	for name, entry := range cfg.Connectors {
		b, err := BuildConnector(t.Context(), cfg, entry, NoStoredSecret)
		if err != nil || b.Connector == nil || b.Unready == nil || len(b.Stored) != 1 {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}
