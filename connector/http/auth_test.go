package httpconn_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

const clientSecret = "client s3cret/+"

// idp is an API and its token endpoint. It accepts the newest of the tokens that it has issued.
type idp struct {
	*httptest.Server
	mu     sync.Mutex
	issued int
	form   url.Values // of the newest request for a token
	calls  []string
	refuse int  // the status of the token endpoint, if not 0
	dead   bool // no token is accepted
	life   int
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	s := &idp{life: 3600}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *idp) token() string { return fmt.Sprintf("access-t0ken-%d", s.issued) }

func (s *idp) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/login/" {
		s.form, _ = url.ParseQuery(string(body))
		id, password, _ := r.BasicAuth()
		inBody := s.form.Get("client_id") == "gate house" && s.form.Get("client_secret") == clientSecret
		if s.refuse != 0 || !inBody && (id != "gate+house" || password != url.QueryEscape(clientSecret)) {
			w.WriteHeader(max(s.refuse, http.StatusUnauthorized))
			fmt.Fprintf(w, `{"error":"%s"}`, clientSecret)
			return
		}
		s.issued++
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":%d,"token_type":"Bearer"}`, s.token(), s.life)
		return
	}
	s.calls = append(s.calls, r.Method+" "+r.Header.Get("Authorization"))
	w.Header().Set("X-Request-Id", r.Header.Get("Authorization"))
	if s.dead || r.Header.Get("Authorization") != "Bearer "+s.token() {
		w.WriteHeader(http.StatusUnauthorized)
	}
	seen, _ := json.Marshal(map[string]string{"id": "1", "seen": r.Header.Get("Authorization")})
	fmt.Fprint(w, string(seen))
}

// revoke makes the API refuse the tokens that it has issued.
func (s *idp) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued++
}

func (s *idp) connector(t *testing.T, change func(*httpconn.Config)) *httpconn.Connector {
	t.Helper()
	cfg := httpconn.Config{
		BaseURL: s.URL, AllowPrivate: true,
		Auth: &httpconn.Auth{OAuth2: &httpconn.OAuth2{
			TokenURL: s.URL + "/login/", ClientID: "gate house", ClientSecret: connector.Secret{Secret: "CLIENT"},
			Scopes: []string{"a", "b"}, Audience: "crm",
		}},
		Operations: map[string]httpconn.Operation{"update": {
			Method: "POST", Path: "/x", ReadBack: &httpconn.ReadBack{Path: "/x/{idempotency_key}"},
		}},
	}
	if change != nil {
		change(&cfg)
	}
	c, err := httpconn.New(t.Context(), cfg, func(string) (string, error) { return clientSecret, nil })
	connectortest.Must(t, err)
	return c.(*httpconn.Connector)
}

// TestTokenIsShared: calls at the same time share one token, and receipts do not contain it.
func TestTokenIsShared(t *testing.T) {
	t.Parallel()
	for _, style := range []string{"", "body"} {
		s := newIDP(t)
		c := s.connector(t, func(cfg *httpconn.Config) { cfg.Auth.OAuth2.Style = style })
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				res, err := c.Execute(t.Context(), call(`{}`))
				if err != nil {
					t.Error(err)
				}
				noSecret(t, res, err)
			})
		}
		calls.Wait()
		if s.issued != 1 || len(s.calls) != 8 {
			t.Errorf("%d tokens for %d calls", s.issued, len(s.calls))
		}
		if s.form.Get("scope") != "a b" || s.form.Get("audience") != "crm" ||
			s.form.Has("client_secret") != (style == "body") {
			t.Errorf("style %q: the form is %v", style, s.form)
		}
	}
}

func noSecret(t *testing.T, res connector.Result, err error) {
	t.Helper()
	text := fmt.Sprintf("%+v %v %+v", res, err, failure(t, err))
	if strings.Contains(text, "access-t0ken") || strings.Contains(text, clientSecret) {
		t.Errorf("a secret is in %s", text)
	}
}

// TestTokenIsReplaced: a token is replaced before its expiry, and after an answer 401.
func TestTokenIsReplaced(t *testing.T) {
	t.Parallel()
	s := newIDP(t)
	c := s.connector(t, nil)
	if _, err := c.Execute(t.Context(), call(`{}`)); err != nil {
		t.Fatal(err)
	}
	s.revoke()
	res, err := c.Execute(t.Context(), call(`{}`))
	wantFailure(t, err, connector.Transient, "http_401")
	noSecret(t, res, err)
	if len(s.calls) != 2 {
		t.Errorf("the change was sent again by itself: %q", s.calls)
	}
	if _, err := c.Execute(t.Context(), call(`{}`)); err != nil {
		t.Error(err)
	}
	s.revoke()
	if found, _, err := c.ReadBack(t.Context(), call(`{}`)); err != nil || found != connector.Present {
		t.Errorf("a read is not repeated with another token: %v, %v", found, err)
	}

	s = newIDP(t)
	s.life = 30
	c = s.connector(t, nil)
	for range 2 {
		if _, err := c.Execute(t.Context(), call(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if s.issued != 2 {
		t.Errorf("a token that is about to expire is used again: %d were issued", s.issued)
	}
}

// TestNoToken: without an access token, nothing is sent, and a refusal is final.
func TestNoToken(t *testing.T) {
	t.Parallel()
	for status, kind := range map[int]connector.Kind{
		400: connector.Terminal, 401: connector.Terminal, 429: connector.NotSent, 500: connector.NotSent,
		503: connector.NotSent,
	} {
		s := newIDP(t)
		s.refuse = status
		c := s.connector(t, nil)
		res, err := c.Execute(t.Context(), call(`{}`))
		wantFailure(t, err, kind, "token_refused")
		noSecret(t, res, err)
		if c.Probe(t.Context()) == nil {
			t.Errorf("%d: the probe finds nothing wrong", status)
		}
		if len(s.calls) != 0 {
			t.Errorf("%d: the calls %q were sent", status, s.calls)
		}
	}
	s := newIDP(t)
	s.dead = true
	_, err := s.connector(t, nil).Execute(t.Context(), call(`{}`))
	wantFailure(t, err, connector.Terminal, "http_401")
}

// TestAuthIsChecked: a wrong configuration is refused when the connector is made.
func TestAuthIsChecked(t *testing.T) {
	t.Parallel()
	named := connector.Secret{Secret: "CLIENT"}
	valid := httpconn.OAuth2{TokenURL: "https://login.example/token", ClientID: "x", ClientSecret: named}
	for says, change := range map[string]func(*httpconn.Config, *httpconn.OAuth2){
		"token_url: credentials": func(_ *httpconn.Config, o *httpconn.OAuth2) { o.TokenURL = "http://login.example/token" },
		"internal address":       func(_ *httpconn.Config, o *httpconn.OAuth2) { o.TokenURL = "https://10.0.0.1/token" },
		"client_id":              func(_ *httpconn.Config, o *httpconn.OAuth2) { o.ClientID = "" },
		"client_secret":          func(_ *httpconn.Config, o *httpconn.OAuth2) { o.ClientSecret.Secret = "" },
		"style":                  func(_ *httpconn.Config, o *httpconn.OAuth2) { o.Style = "header" },
		"exactly one":            func(c *httpconn.Config, _ *httpconn.OAuth2) { c.Auth.Bearer = &named },
		"is set by auth": func(c *httpconn.Config, _ *httpconn.OAuth2) {
			c.Headers = map[string]httpconn.Value{"authorization": {Template: "x"}}
		},
		"client_certificate: certificate and key": func(c *httpconn.Config, _ *httpconn.OAuth2) {
			c.ClientCertificate = &httpconn.ClientCertificate{Cert: named, Key: named}
		},
		"ca_file": func(c *httpconn.Config, _ *httpconn.OAuth2) { c.CAFile = "no-such-file.pem" },
	} {
		o := valid
		cfg := httpconn.Config{
			BaseURL: "https://crm.example", Auth: &httpconn.Auth{OAuth2: &o},
			Operations: map[string]httpconn.Operation{"update": {Method: "POST", Path: "/x"}},
		}
		change(&cfg, &o)
		_, err := httpconn.New(t.Context(), cfg, func(string) (string, error) { return clientSecret, nil })
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), clientSecret) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// TestSignedRequests: with OAuth 1.0, each request has a new nonce and signature.
func TestSignedRequests(t *testing.T) {
	t.Parallel()
	s := newCRM(t)
	cfg := s.config()
	named := connector.Secret{Secret: "CRM_TOKEN"}
	cfg.Auth = &httpconn.Auth{OAuth1: &httpconn.OAuth1{
		ConsumerKey: named, ConsumerSecret: named, Token: named, TokenSecret: named, Realm: "R",
	}}
	c := newConnector(t, cfg)
	for range 2 {
		res, err := c.Execute(t.Context(), call(`{}`))
		if err != nil || !strings.Contains(string(res.RequestMetadata), `"Authorization":"[redacted]"`) {
			t.Errorf("%s, %v", res.RequestMetadata, err)
		}
	}
	one, two := s.headers[0].Get("Authorization"), s.headers[1].Get("Authorization")
	if one == two || !strings.HasPrefix(one, `OAuth realm="R", oauth_consumer_key="`+token+`"`) ||
		!strings.Contains(one, "oauth_signature=") {
		t.Errorf("sent %s and %s", one, two)
	}
}

// TestResponseSchema: an answer that does not fit the schema proves nothing.
func TestResponseSchema(t *testing.T) {
	t.Parallel()
	for body, code := range map[string]string{
		`{"id":"crm-1"}`: "", `{"id":1}`: "answer_schema", `{}`: "answer_schema", ``: "answer_schema", `<p>`: "answer_schema",
	} {
		for _, class := range []connector.Class{connector.ClassA, connector.ClassB, connector.ClassC} {
			s := newCRM(t)
			s.breakWith(false, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
			c := s.withClass(t, class, func(op *httpconn.Operation) {
				op.ResponseSchema = `{"properties":{"id":{"type":"string"}},"required":["id"],"type":"object"}`
			})
			_, err := c.Execute(t.Context(), call(`{"status":"won"}`))
			if code == "" && err != nil {
				t.Error(err)
			} else if code != "" {
				wantFailure(t, err, connector.Ambiguous, code)
			}
		}
	}
}
