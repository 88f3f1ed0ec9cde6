package cli

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// storedSecret is the part of a Secret that the test reads and returns.
type storedSecret struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	StringData map[string]string `json:"stringData"`
	Data       map[string]string `json:"data"`
}

// TestInitHandsTheSecretsOver fakes the Kubernetes API as its reference describes it: the rights are tried before
// the store is made, the Secret is filled once even if a call fails in between, and not changed when the job runs
// again, also after somebody has moved the secrets and deleted or emptied it. Lost secrets are reported.
func TestInitHandsTheSecretsOver(t *testing.T) { // not parallel: it sets the environment
	var secret map[string]string   // nil: there is none
	var reserved map[string]string // what it held before it was filled
	allowed, mayFill, failures := false, false, 0
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent storedSecret
		if r.Method != http.MethodGet {
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || sent.Kind != "Secret" || sent.APIVersion != "v1" ||
				sent.Metadata.Name != "admin" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
		}
		const all = "/api/v1/namespaces/gate/secrets"
		switch {
		case r.Header.Get("Authorization") != "Bearer tok" || !allowed:
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodPost && r.URL.Path == all && secret != nil:
			w.WriteHeader(http.StatusConflict)
		case r.Method == http.MethodPost && r.URL.Path == all:
			w.WriteHeader(http.StatusCreated)
			if r.URL.RawQuery != "dryRun=All" {
				secret = encoded(sent.StringData)
				reserved = secret
			}
		case r.Method == http.MethodPut && !mayFill:
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodPut && r.URL.Path == all+"/admin" && secret == nil:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodPut && r.URL.RawQuery == "dryRun=All" && r.URL.Path == all+"/admin":
		case r.Method == http.MethodPut && r.URL.Path == all+"/admin" && failures > 0:
			failures--
			w.WriteHeader(http.StatusInternalServerError)
		case r.Method == http.MethodPut && r.URL.Path == all+"/admin":
			secret = encoded(sent.StringData)
		case r.Method == http.MethodGet && r.URL.Path == all+"/admin":
			_ = json.NewEncoder(w).Encode(storedSecret{Data: secret})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer api.Close()
	at, err := url.Parse(api.URL)
	must(t, err)
	t.Setenv("KUBERNETES_SERVICE_HOST", at.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", at.Port())
	account := t.TempDir()
	for name, content := range map[string]string{
		"token": "tok\n", "namespace": "gate",
		"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})),
	} {
		must(t, os.WriteFile(filepath.Join(account, name), []byte(content), 0o600))
	}
	data := filepath.Join(t.TempDir(), "data")
	initialize := func() (int, string) {
		g, out, words := testGlobals(t)
		code := run(*g, []string{"init", "--data", data, "--kubernetes-secret", "admin", "--service-account", account})
		if out.Len() > 0 {
			t.Errorf("it prints %s", out)
		}
		return code, words.String()
	}

	// No store is created while a right is missing: first all of them, then the right to fill a new Secret,
	// then the right to fill the one that exists.
	for _, present := range []map[string]string{nil, nil, {}} {
		secret = present
		if code, words := initialize(); code != term.ExitError || !strings.Contains(words, "403") {
			t.Fatalf("exit code %d: %s", code, words)
		}
		if _, err := os.Stat(data); err == nil {
			t.Fatal("a store was created, and its secrets are lost")
		}
		if len(secret) != len(present) || (secret == nil) != (present == nil) {
			t.Errorf("the Secret is changed: %v", secret)
		}
		allowed = true
	}
	// Nor is an administrator made if the Secret cannot be reserved.
	mayFill, failures = true, 1
	if code, words := initialize(); code != term.ExitError || !strings.Contains(words, "500") {
		t.Errorf("exit code %d: %s", code, words)
	}
	secret, failures = nil, 2
	if code, words := initialize(); code != term.ExitDone {
		t.Fatalf("exit code %d: %s", code, words)
	}
	key, err := base64.StdEncoding.DecodeString(secret["admin_key"])
	if err != nil || secret["edit_token"] == "" || secret["setup_url"] == "" {
		t.Fatalf("handed over: %v, %v", secret, err)
	}
	before := secret["admin_key"]
	if code, words := initialize(); code != term.ExitDone || secret["admin_key"] != before {
		t.Errorf("again: exit code %d: %s", code, words)
	}

	n := openNode(t, data, &config.Config{})
	_, err = n.Gate.Authenticate(t.Context(), string(key))
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Errorf("the key is not the administrator's: %v", err)
	}
	// A Secret that lacks only the key, or was never filled, is reported: its values cannot be recovered.
	delete(secret, "admin_key")
	for _, lost := range []map[string]string{secret, reserved} {
		secret = lost
		if code, words := initialize(); code == term.ExitDone || !strings.Contains(words, "has an administrator already") {
			t.Errorf("the Secret has %v: exit code %d: %s", lost, code, words)
		}
	}
	// After somebody has moved the secrets and deleted or emptied the Secret, there is nothing to do.
	for _, moved := range []map[string]string{nil, {}} {
		secret = moved
		if code, words := initialize(); code != term.ExitDone || !strings.Contains(words, "has an administrator already") {
			t.Errorf("the Secret has %v: exit code %d: %s", moved, code, words)
		}
		if len(secret) > 0 || (secret == nil) != (moved == nil) {
			t.Errorf("the Secret had %v, and has %v", moved, secret)
		}
	}

	g, _, words := testGlobals(t)
	if code := run(*g, []string{"init", "--data", data, "--kubernetes-secret", "admin", "--service-account",
		t.TempDir()}); code != term.ExitError || !strings.Contains(words.String(), "in a pod") {
		t.Errorf("outside of a pod: exit code %d: %s", code, words)
	}
}

// encoded is the data of a Secret that was written with these strings.
func encoded(values map[string]string) map[string]string {
	data := make(map[string]string, len(values))
	for name, value := range values {
		data[name] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return data
}
