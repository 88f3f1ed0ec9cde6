package kubernetes_test

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/kubernetes"
)

const (
	token = "token-of-the-gate"
	// page, given as the reason of a failure, stands for the answer of a proxy.
	page = "<html>no such page</html>"
)

// cluster is an API server behind a recording proxy, which counts writes and drops answers. It has
// a namespace for the test with the deployment web; Gatehouse has applied its replicas, and kubectl
// its other fields.
type cluster struct {
	t         testing.TB
	backend   http.Handler
	real      bool
	url, ca   string
	namespace string

	mu      sync.Mutex
	writes  []string
	lose    bool
	server  *httptest.Server
	fail    func(r *http.Request) (int, string)
	pause   func()
	queries []string
}

// newCluster uses the server named by GATEHOUSE_TEST_KUBERNETES (with its certificates in the file
// _CA, and an administrator's token in _TOKEN), else a fake.
func newCluster(t testing.TB) *cluster {
	c := &cluster{t: t, namespace: "t-" + strings.ToLower(rand.Text()[:12])}
	if address := os.Getenv("GATEHOUSE_TEST_KUBERNETES"); address != "" {
		c.backend, c.real = realServer(t, address), true
	} else {
		c.backend = &fake{objects: map[string]*stored{}}
	}
	s := httptest.NewUnstartedServer(c)
	cert, key := certificate(t)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key)) // httptest's RSA key took half of the tests' CPU time
	connectortest.Must(t, err)
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	t.Cleanup(s.Close)
	c.url, c.server = s.URL, s
	c.ca = filepath.Join(t.TempDir(), "ca.pem")
	connectortest.Must(t, os.WriteFile(c.ca, []byte(cert), 0o600))
	c.do("POST", "/api/v1/namespaces", "kubectl", `{"metadata":{"name":"`+c.namespace+`"}}`)
	c.do("POST", c.deployments(), "kubectl", `{"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":1,
		"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
		"spec":{"containers":[{"name":"app","image":"nginx:1"},{"name":"log","image":"fluent:1"}]}}}}`)
	c.do("APPLY", c.deployments()+"/web?force=true", "gatehouse",
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2}}`)
	return c
}

func realServer(t testing.TB, address string) http.Handler {
	u, err := url.Parse(address)
	connectortest.Must(t, err)
	text, err := os.ReadFile(os.Getenv("GATEHOUSE_TEST_KUBERNETES_CA"))
	connectortest.Must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	admin := os.Getenv("GATEHOUSE_TEST_KUBERNETES_TOKEN")
	return &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			if r.In.Header.Get("Authorization") == "Bearer "+token {
				r.Out.Header.Set("Authorization", "Bearer "+admin)
			}
		},
	}
}

func (c *cluster) deployments() string {
	return "/apis/apps/v1/namespaces/" + c.namespace + "/deployments"
}

// do sends a request to the server, past the proxy, as the given manager; APPLY and MERGE are
// patches.
func (c *cluster) do(method, path, manager, body string) gatehouse.JSON {
	c.t.Helper()
	kind := "application/json"
	switch method {
	case "APPLY":
		method, kind = "PATCH", "application/apply-patch+yaml"
	case "MERGE":
		method, kind = "PATCH", "application/merge-patch+json"
	}
	if method != "GET" {
		path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "fieldManager=" + manager
	}
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	c.backend.ServeHTTP(w, r)
	if w.Code == http.StatusNotFound {
		return "null"
	}
	if w.Code > 299 {
		c.t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	j, err := gatehouse.Canonicalize(w.Body.Bytes())
	if err != nil {
		c.t.Error(err)
	}
	return j
}

// web is a part of the deployment.
func (c *cluster) web(path ...string) gatehouse.JSON {
	j := c.do("GET", c.deployments()+"/web", "", "")
	for _, name := range path {
		j, _ = j.Get(name)
	}
	return j
}

func (c *cluster) effects() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.writes)
}

// behave changes how the proxy behaves from now on.
func (c *cluster) behave(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// isChange reports whether a request changes something. It reads the body.
func (c *cluster) isChange(r *http.Request) bool {
	body, _ := io.ReadAll(r.Body)
	dry := r.URL.Query().Get("dryRun") != "" && (r.Method != "DELETE" || len(body) == 0) ||
		bytes.Contains(body, []byte(`"dryRun":["All"]`))
	return r.Method != http.MethodGet && !dry
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	writes := c.isChange(r)
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.mu.Lock()
	fail, pause, lose := c.fail, c.pause, c.lose
	c.queries = append(c.queries, r.Method+" "+r.URL.String())
	c.mu.Unlock()
	if writes && pause != nil {
		pause()
	}
	if fail != nil {
		switch code, reason := fail(r); {
		case code != 0 && reason == page:
			w.WriteHeader(code)
			fmt.Fprint(w, page)
			return
		case code != 0:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","status":"Failure","reason":%q,"message":"no","code":%d}`, reason, code)
			return
		}
	}
	answer := httptest.NewRecorder()
	c.backend.ServeHTTP(answer, r)
	if writes && answer.Code < 300 {
		c.mu.Lock()
		c.writes = append(c.writes, r.Method+" "+r.URL.Path)
		c.mu.Unlock()
		if lose {
			panic(http.ErrAbortHandler)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func (c *cluster) config() kubernetes.Config {
	return kubernetes.Config{
		Server: c.url, AllowPrivate: true, CAFile: c.ca, Auth: kubernetes.Auth{Token: &connector.Secret{Secret: "TOKEN"}},
		Resources: map[string]kubernetes.Resource{
			"deployments.apps": {Kind: "Deployment", Namespaces: []string{c.namespace}},
			"configmaps":       {Kind: "ConfigMap", Namespaces: []string{c.namespace}},
			"namespaces":       {Kind: "Namespace"},
		},
	}
}

var secrets = connectortest.Named(map[string]string{"TOKEN": token + "\n"})

func (c *cluster) connector(change func(*kubernetes.Config)) *kubernetes.Connector {
	c.t.Helper()
	cfg := c.config()
	if change != nil {
		change(&cfg)
	}
	return connectortest.Build[*kubernetes.Connector](c.t, kubernetes.New, cfg, secrets)
}

func force(cfg *kubernetes.Config) {
	r := cfg.Resources["deployments.apps"]
	r.Force = true
	cfg.Resources["deployments.apps"] = r
}

func (c *cluster) call(operation string, change, pre gatehouse.JSON) connector.Call {
	return connectortest.Call(operation, "deployments.apps", c.namespace+"/web", pre, change)
}

// create is the call that creates the config map "settings".
func (c *cluster) create(change gatehouse.JSON) connector.Call {
	call := c.call("create", change, "")
	call.Target = gatehouse.Target{EntityType: "configmaps", EntityRef: c.namespace + "/settings"}
	return call
}

func (c *cluster) settings() gatehouse.JSON {
	return c.do("GET", "/api/v1/namespaces/"+c.namespace+"/configmaps/settings", "", "")
}

func wantFailure(t *testing.T, err error, kind connector.Kind, code string) (detail string) {
	t.Helper()
	var e *connector.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Code != code {
		t.Errorf("got %v, want %s: %s", err, kind, code)
		return ""
	}
	return e.Detail
}
