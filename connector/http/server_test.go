package httpconn_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

// crm is a real HTTP server with one kind of entity. It honours Idempotency-Key and If-Match, and
// logs every request.
type crm struct {
	*httptest.Server
	mu       sync.Mutex
	log      []string // method, path, body
	headers  []http.Header
	fields   map[string]map[string]json.RawMessage
	versions map[string]int
	answers  map[string]string // by idempotency key
	effects  int
	refusal  int // the status of /me without the right token
	// fault, when set, handles the request after it was read completely and, with applied, after it
	// took effect.
	fault   func(w http.ResponseWriter, r *http.Request)
	applied bool
}

func newCRM(t *testing.T) *crm {
	t.Helper()
	s := &crm{
		fields: map[string]map[string]json.RawMessage{
			"42": {"status": json.RawMessage(`"open"`), "total": json.RawMessage(`9007199254740993`)}},
		versions: map[string]int{"42": 7},
		answers:  map[string]string{},
		refusal:  http.StatusUnauthorized,
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *crm) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, r.Method+" "+r.RequestURI+" "+string(body))
	s.headers = append(s.headers, r.Header.Clone())
	if s.fault != nil && !s.applied && r.Method != http.MethodGet {
		s.fault(w, r)
		return
	}
	status, answer := s.handle(r, body)
	if s.fault != nil && r.Method != http.MethodGet {
		s.fault(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if v, ok := s.versions[ref(r)]; ok {
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, v))
	}
	w.WriteHeader(status)
	fmt.Fprint(w, answer)
}

func ref(r *http.Request) string { return r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:] }

func (s *crm) handle(r *http.Request, body []byte) (status int, answer string) {
	id := ref(r)
	if r.Header.Get("Authorization") == "Bearer "+expired {
		return 401, `{}`
	}
	if r.URL.Path == "/me" {
		if r.Header.Get("Authorization") != "Bearer "+token {
			return s.refusal, `{"code":"no_such_user"}`
		}
		return 200, `{}`
	}
	if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/effects/") {
		if answer, ok := s.answers[id]; ok {
			return 200, answer
		}
		return 404, `{}`
	}
	entity, ok := s.fields[id]
	switch {
	case !ok:
		return 404, `{"code":"no_such_entity"}`
	case r.Method == http.MethodGet:
		b, _ := json.Marshal(map[string]any{"data": entity, "version": s.versions[id]})
		return 200, string(b)
	}
	key := r.Header.Get("Idempotency-Key")
	if answer, ok := s.answers[key]; ok {
		return 200, answer
	}
	if match := r.Header.Get("If-Match"); match != "" && match != fmt.Sprintf(`"%d"`, s.versions[id]) {
		return 412, `{"code":"version"}`
	}
	var change map[string]json.RawMessage
	if err := json.Unmarshal(body, &change); err != nil {
		return 400, `{"code":"json"}`
	}
	if r.URL.Query().Get("dry_run") != "" {
		b, _ := json.Marshal(map[string]any{"before": entity, "after": merged(entity, change)})
		return 200, string(b)
	}
	maps.Copy(entity, change)
	s.versions[id]++
	s.effects++
	answer = fmt.Sprintf(`{"id":"crm-%s","status":%s,"version":%d}`, id, entity["status"], s.versions[id])
	if key != "" {
		s.answers[key] = answer
	}
	return 200, answer
}

func merged(entity, change map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(entity)
	maps.Copy(out, change)
	return out
}

// requests returns the log of all requests.
func (s *crm) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

func (s *crm) breakWith(applied bool, fault func(w http.ResponseWriter, r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.applied = fault, applied
}

// hijack gives a fault the raw connection.
func hijack(fault func(c net.Conn, b *bufio.ReadWriter)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, b, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		fault(c, b)
	}
}

// answer writes to a hijacked connection.
func answer(b *bufio.ReadWriter, s string) {
	_, _ = b.WriteString(s)
	_ = b.Flush()
}

// reset ends a TCP connection with RST instead of FIN.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
}

func pointer(p httpconn.Pointer) *httpconn.Pointer { return &p }

func text(s string) *string { return &s }

// config is the configuration of most tests: a conditional update of class A.
func (s *crm) config() httpconn.Config {
	return httpconn.Config{
		BaseURL: s.URL, AllowPrivate: true,
		Auth: &httpconn.Auth{Bearer: &connector.Secret{Secret: "CRM_TOKEN"}},
		Operations: map[string]httpconn.Operation{"update": {
			Method: "PATCH", Path: "/{entity_type}/{entity_ref}", Class: connector.ClassA,
			Conditional: &httpconn.Conditional{},
			ExternalID:  pointer("/id"),
			Check:       &httpconn.Check{Path: "/{entity_type}/{entity_ref}", Version: "header ETag", State: "/data"},
			ReadBack:    &httpconn.ReadBack{Path: "/effects/{idempotency_key}", ExternalID: pointer("/id")},
			Reverse:     &httpconn.Reverse{Operation: "update", Version: "/version"},
		}},
	}
}

const (
	token   = "s3cret-token-of-the-crm"
	expired = "s3cret-that-has-expired"
)

var secrets = connectortest.Named(map[string]string{"CRM_TOKEN": token})

func newConnector(t testing.TB, cfg httpconn.Config) *httpconn.Connector {
	t.Helper()
	return connectortest.Build[*httpconn.Connector](t, httpconn.New, cfg, secrets)
}

// withClass returns a connector to the crm with a plain update of the given class; change may add options.
func (s *crm) withClass(t testing.TB, class connector.Class, change func(*httpconn.Operation)) *httpconn.Connector {
	cfg := s.config()
	op := httpconn.Operation{Method: "PATCH", Path: "/{entity_type}/{entity_ref}", Class: class}
	if class == connector.ClassB {
		op.Conditional = &httpconn.Conditional{}
	}
	if change != nil {
		change(&op)
	}
	cfg.Operations = map[string]httpconn.Operation{"update": op}
	return newConnector(t, cfg)
}

func call(change string) connector.Call {
	j, err := gatehouse.Canonicalize([]byte(change))
	if err != nil {
		panic(err)
	}
	return connector.Call{
		Tenant: "default", ActionID: "act_1", IdempotencyKey: "act_1:1", Digest: gatehouse.NewDigest(j), Attempt: 1,
		Operation:    "update",
		Target:       gatehouse.Target{EntityType: "deals", EntityRef: "42", Version: "7"},
		CurrentState: `{"status":"open"}`, ProposedChange: j,
	}
}
