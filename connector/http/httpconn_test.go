package httpconn_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, class := range []connector.Class{connector.ClassA, connector.ClassB} {
		not := connectortest.Not("a bearer token does not contain the time", connectortest.Skewed)
		if class == connector.ClassB {
			not = connectortest.Not("the fake checks no signatures", connectortest.Expired)
		}
		t.Run(string(class), func(t *testing.T) {
			connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
				s := newCRM(t)
				cfg := s.config()
				op := cfg.Operations["update"]
				op.Outcomes = []httpconn.Rule{
					{Status: []httpconn.StatusRange{{From: 200, To: 299}}, Outcome: "applied", JSON: &httpconn.Match{
						Pointer: "/status", Equals: text(`"{proposed_change.status}"`)}},
					{Status: []httpconn.StatusRange{{From: 200, To: 299}}, Outcome: "ambiguous", Code: "not_as_approved"},
				}
				op.Preview = &httpconn.Preview{Path: op.Path + "?dry_run=1", Before: pointer("/before"),
					After: "/after"}
				cfg.Operations["update"] = op
				if class == connector.ClassB {
					op.Class, op.ReadBack = connector.ClassB,
						&httpconn.ReadBack{Path: "/{entity_type}/{entity_ref}", Change: pointer("/data")}
					op.ExternalID = nil
					cfg.Operations["update"] = op
					secret := connector.Secret{Secret: "CRM_TOKEN"}
					cfg.Auth = &httpconn.Auth{OAuth1: &httpconn.OAuth1{
						ConsumerKey: secret, ConsumerSecret: secret, Token: secret, TokenSecret: secret}}
				}
				return &connectortest.Fixture{
					Connector: newConnector(t, cfg),
					Call:      call(`{"status":"won"}`),
					Disturb: func(*testing.T) {
						s.mu.Lock()
						defer s.mu.Unlock()
						s.fields["42"]["status"] = []byte(`"lost"`)
						s.versions["42"]++
					},
					Read: func(*testing.T) gatehouse.JSON {
						s.mu.Lock()
						defer s.mu.Unlock()
						return gatehouse.MustJSON(s.fields["42"])
					},
					Effects: func(*testing.T) int {
						s.mu.Lock()
						defer s.mu.Unlock()
						return s.effects
					},
					Secrets: []string{token, expired},
					Server:  s.Server, Field: "status", Value: [2]string{"won", "lost"},
					Expired: connectortest.WithSecret(httpconn.New, cfg, expired),
					Skewed:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
				}
			}})
		})
	}
}

// TestBytesArriveAsApproved sends the approved change byte by byte, including the digits of
// numbers.
func TestBytesArriveAsApproved(t *testing.T) {
	t.Parallel()
	s := newCRM(t)
	c := newConnector(t, s.config())
	change := `{"amount":1234567890123456789,"note":"ü \"quoted\" <b>","price":12.50,"zero":-0.0}`
	res, err := c.Execute(t.Context(), call(change))
	connectortest.Must(t, err)
	want := "PATCH /deals/42 " + change
	if got := s.requests(); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
	h := s.headers[0]
	for name, want := range map[string]string{
		"Idempotency-Key": call(change).TargetKey(), "If-Match": `"7"`, "Content-Type": "application/json",
		"Authorization": "Bearer " + token,
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if res.ExternalID != "crm-42" {
		t.Errorf("external id %q", res.ExternalID)
	}
	sum := sha256.Sum256([]byte(change))
	if !strings.Contains(string(res.RequestMetadata), fmt.Sprintf(`"body_sha256":"%x"`, sum)) ||
		!strings.Contains(string(res.RequestMetadata), `"Authorization":"[redacted]"`) {
		t.Errorf("request metadata: %s", res.RequestMetadata)
	}
}

// TestFaults injects every fault of a request, and checks the failure's kind for the classes A and C.
func TestFaults(t *testing.T) {
	t.Parallel()
	status := func(code int, header ...string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
		}
	}
	const (
		applied   = "applied"
		ambiguous = "ambiguous"
		transient = "transient"
		terminal  = "terminal"
	)
	for name, test := range map[string]struct {
		fault func(http.ResponseWriter, *http.Request)
		a, c  string
		code  string
	}{
		"answer lost": {hijack(func(net.Conn, *bufio.ReadWriter) {}), ambiguous, ambiguous, "connection_lost"},
		"reset":       {hijack(func(c net.Conn, _ *bufio.ReadWriter) { reset(c) }), ambiguous, ambiguous, "connection_lost"},
		"status line cut": {hijack(func(_ net.Conn, b *bufio.ReadWriter) { answer(b, "HTTP/1.1 20") }),
			ambiguous, ambiguous, "connection_lost"},
		"no HTTP": {hijack(func(_ net.Conn, b *bufio.ReadWriter) { answer(b, "hello\r\n\r\n") }), ambiguous, ambiguous,
			"connection_lost"},
		"body cut": {hijack(func(_ net.Conn, b *bufio.ReadWriter) {
			answer(b, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\":")
		}), applied, applied, ""},
		"body reset": {hijack(func(c net.Conn, b *bufio.ReadWriter) {
			answer(b, "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{")
			reset(c)
		}), applied, applied, ""},
		"huge body": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 3<<20)) }, applied,
			applied, ""},
		"huge header": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 100<<10)) },
			ambiguous, ambiguous, "connection_lost"},
		"204":            {status(204), applied, applied, ""},
		"301":            {status(301, "Location", "/elsewhere"), terminal, terminal, "redirect"},
		"307":            {status(307, "Location", "/elsewhere"), terminal, terminal, "redirect"},
		"303":            {status(303, "Location", "/result"), ambiguous, ambiguous, "redirect"},
		"400":            {status(400), terminal, terminal, "http_400"},
		"404":            {status(404), terminal, terminal, "http_404"},
		"408":            {status(408), transient, ambiguous, "http_408"},
		"409":            {status(409), terminal, terminal, "http_409"},
		"422":            {status(422), terminal, terminal, "http_422"},
		"425":            {status(425), transient, ambiguous, "http_425"},
		"429":            {status(429, "Retry-After", "7"), transient, transient, "http_429"},
		"500":            {status(500), ambiguous, ambiguous, "http_500"},
		"503":            {status(503), ambiguous, ambiguous, "http_503"},
		"503, try again": {status(503, "Retry-After", "7"), transient, ambiguous, "http_503"},
		"504":            {status(504), ambiguous, ambiguous, "http_504"},
	} {
		for class, want := range map[connector.Class]string{connector.ClassA: test.a, connector.ClassC: test.c} {
			t.Run(name+"/"+string(class), func(t *testing.T) {
				t.Parallel()
				s := newCRM(t)
				s.breakWith(false, test.fault)
				res, err := s.withClass(t, class, nil).Execute(t.Context(), call(`{"status":"won"}`))
				got, e := applied, failure(t, err)
				if e != nil {
					got = e.Kind.String()
					if e.Code != test.code {
						t.Errorf("code %s, want %s", e.Code, test.code)
					}
					if strings.Contains(name, "429") && e.RetryAfter != 7*time.Second {
						t.Errorf("retry after %v", e.RetryAfter)
					}
				}
				if got != want {
					t.Errorf("got %s (%v), want %s", got, err, want)
				}
				if n := len(s.requests()); n != 1 {
					t.Errorf("%d requests have reached the server, want 1: %q", n, s.requests())
				}
				if res.RequestMetadata == "" {
					t.Error("there is no request metadata")
				}
				if strings.HasPrefix(name, "body") || name == "huge body" {
					if !strings.Contains(string(res.ResponseMetadata), `"body_truncated"`) {
						t.Errorf("the receipt does not say that the body is not whole: %s", res.ResponseMetadata)
					}
				}
			})
		}
	}
}

// TestTimeout makes the server slower than the call's time limit.
func TestTimeout(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]string{"no answer": "",
		"slow body": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCRM(t)
			over := make(chan struct{})
			s.breakWith(false, hijack(func(_ net.Conn, b *bufio.ReadWriter) {
				answer(b, start)
				<-over
			}))
			c := s.withClass(t, connector.ClassA, func(op *httpconn.Operation) { op.Timeout = gatehouse.Span(3 * time.Second) })
			_, err := c.Execute(t.Context(), call(`{"status":"won"}`))
			close(over)
			if start != "" {
				if err != nil {
					t.Errorf("got %v, though the status line proves the change", err)
				}
				return
			}
			wantFailure(t, err, connector.Ambiguous, "timeout")
		})
	}
}

// TestNotSent: without a connection, the failure proves that nothing was sent.
func TestNotSent(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	connectortest.Must(t, err)
	closed := "http://" + l.Addr().String()
	connectortest.Must(t, l.Close())
	noHost := "http://" + strings.Repeat("x", 64) + ".invalid" // a label too long to ask a resolver for
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = nil
	t.Cleanup(untrusted.Close)
	for name, base := range map[string]string{
		"refused": closed, "no such host": noHost, "TLS certificate": untrusted.URL,
		"TLS with a plain server": "https://" + strings.TrimPrefix(newCRM(t).URL, "http://"),
	} {
		s := newCRM(t)
		cfg := s.config()
		cfg.BaseURL = base
		for _, class := range []connector.Class{connector.ClassA, connector.ClassC} {
			cfg.Operations = map[string]httpconn.Operation{"update": {Method: "POST", Path: "/x", Class: class}}
			_, err := newConnector(t, cfg).Execute(t.Context(), call(`{}`))
			if e := failure(t, err); e == nil || e.Kind != connector.NotSent {
				t.Errorf("%s, class %s: got %v, want not_sent", name, class, e)
			}
		}
	}
}

// TestInsideAddresses: internal addresses are refused without a request, also after name resolution.
func TestInsideAddresses(t *testing.T) {
	t.Parallel()
	s := newCRM(t)
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	cfg := httpconn.Config{Operations: map[string]httpconn.Operation{"update": {Method: "POST", Path: "/x"}}}
	for _, host := range []string{"localhost", "localhost."} { // resolved while dialing
		cfg.BaseURL = "http://" + host + port
		_, err := newConnector(t, cfg).Execute(t.Context(), call(`{}`))
		e := failure(t, err)
		if e == nil || e.Kind != connector.Terminal && e.Kind != connector.NotSent || host == "localhost" &&
			e.Code != "address_refused" {
			t.Errorf("%s: got %v", host, e)
		}
	}
	for _, host := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
		"[::1]", "[fe80::1]", "[fd00::1]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[64:ff9b::7f00:1]", "224.0.0.1",
		"255.255.255.255",
	} {
		cfg.BaseURL = "http://" + host + port
		if _, err := httpconn.New(t.Context(), cfg, nil); err == nil ||
			!strings.Contains(err.Error(), "internal address") {
			t.Errorf("%s is accepted: %v", host, err)
		}
	}
	// Spellings that only the resolver accepts as an address.
	for _, host := range []string{"127.1", "2130706433", "0x7f000001", "017700000001"} {
		cfg.BaseURL = "http://" + host + port
		c, err := httpconn.New(t.Context(), cfg, nil)
		if err != nil {
			continue
		}
		if _, err := c.Execute(t.Context(), call(`{}`)); err == nil {
			t.Errorf("%s leads inside", host)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests have reached the server", n)
	}
}

// TestRedirectsAreNotFollowed: a redirect must not send credentials or changes to another host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := newCRM(t)
	s := newCRM(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		s.breakWith(false, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.URL+"/deals/42")
			w.WriteHeader(status)
		})
		if _, err := s.withClass(t, connector.ClassA, nil).Execute(t.Context(), call(`{"status":"won"}`)); err == nil {
			t.Errorf("%d counts as applied", status)
		}
	}
	if n := len(elsewhere.requests()); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

func TestOutcomeRules(t *testing.T) {
	t.Parallel()
	rules := []httpconn.Rule{
		{Status: []httpconn.StatusRange{{409, 409}}, JSON: &httpconn.Match{Pointer: "/code", Equals: text("in_progress")},
			Outcome: "transient", Code: "in_progress"},
		{Status: []httpconn.StatusRange{{409, 409}},
			JSON: &httpconn.Match{Pointer: "/key", Equals: text("{idempotency_key}")}, Outcome: "applied"},
		{Status: []httpconn.StatusRange{{200, 299}}, JSON: &httpconn.Match{Pointer: "/errors/0"}, Outcome: "terminal"},
		{Status: []httpconn.StatusRange{{500, 599}}, Outcome: "transient"},
		{JSON: &httpconn.Match{Pointer: "/n", Equals: text("1.0")}, Outcome: "not_sent", Code: "n"},
	}
	for name, test := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"in progress":        {409, `{"code":"in_progress"}`, "transient: in_progress"},
		"done before":        {409, `{"key":"` + call(`{}`).TargetKey() + `"}`, ""},
		"another's":          {409, `{"key":"act_1:1"}`, "terminal: http_409"},
		"error in a 200":     {200, `{"errors":["no"]}`, "terminal: http_200"},
		"no error in a 200":  {200, `{"errors":[]}`, ""},
		"500":                {500, ``, "transient: http_500"},
		"by number":          {400, `{"n":1}`, "not_sent: n"},
		"cut, so not known":  {200, strings.Repeat(" ", 1<<20) + `{"errors":["no"]}`, "ambiguous: answer_cut"},
		"no JSON, no match":  {200, `<html>`, ""},
		"default still hold": {404, `{}`, "terminal: http_404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCRM(t)
			s.breakWith(false, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			})
			c := s.withClass(t, connector.ClassC, func(op *httpconn.Operation) { op.Outcomes = rules })
			_, err := c.Execute(t.Context(), call(`{"status":"won"}`))
			got := ""
			if e := failure(t, err); e != nil {
				got = e.Kind.String() + ": " + e.Code
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

var (
	wantFailure = connectortest.WantFailure
	failure     = connectortest.Failure
)

// TestKeysAreTheTenants: the same idempotency key of two tenants gives two keys at the target; an
// attempt, its repetition and its read-back share one.
func TestKeysAreTheTenants(t *testing.T) {
	t.Parallel()
	s := newCRM(t)
	c := newConnector(t, s.config())
	one, two := call(`{"note":"x"}`), call(`{"note":"x"}`)
	two.Tenant = "acme"
	one.IdempotencyKey, two.IdempotencyKey = "refund-4711", "refund-4711"
	again := one
	again.Attempt, again.ActionID = 2, "act_1"
	for _, attempt := range []connector.Call{one, again, two} {
		_, _ = c.Execute(t.Context(), attempt) // the answer does not matter here
	}
	if _, _, err := c.ReadBack(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	var sent []string
	for _, h := range s.headers {
		sent = append(sent, h.Get("Idempotency-Key"))
	}
	if len(sent) < 3 || sent[0] != one.TargetKey() || sent[1] != sent[0] || sent[2] == sent[0] ||
		sent[2] != two.TargetKey() {
		t.Errorf("sent %q", sent)
	}
	if got := s.requests(); !strings.HasPrefix(got[len(got)-1], "GET /effects/"+one.TargetKey()) {
		t.Errorf("read back by %q", got)
	}
}
