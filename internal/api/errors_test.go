package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

// TestEveryCode sends every code of the table through a route.
func TestEveryCode(t *testing.T) {
	t.Parallel()
	for _, code := range gatehouse.Codes() {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			f := newFake()
			e := gatehouse.E(code, "the %s", "detail").With("current_status", "applied").With("status", 200).
				With("expected", gatehouse.JSON(`{"n":1234567890123456789}`)).With("decided_at", testTime).
				Because(errors.New("secret cause"))
			e.Violations = gatehouse.Violations{{Pointer: "/a", Detail: "b"}}
			e.RetryAfter = 7
			f.err = fmt.Errorf("wrapped: %w", e)
			w := decideRequest().send(newServer(t, f))
			p := wantCode(t, w, code)
			if p["title"] == "" || p["instance"] != decidePath || p["type"] != "/docs#"+string(code) {
				t.Errorf("members: %v", p)
			}
			if p["retryable"] != code.Retryable() {
				t.Errorf("retryable %v", p["retryable"])
			}
			if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), "wrapped") {
				t.Errorf("the cause leaked: %s", w.Body)
			}
			if code == gatehouse.CodeInternal {
				if strings.Contains(w.Body.String(), "the detail") || p["current_status"] != nil {
					t.Errorf("internals leaked: %s", w.Body)
				}
				return
			}
			if got := w.Header().Get("Retry-After"); got != "7" {
				t.Errorf("Retry-After %q", got)
			}
			if !strings.Contains(w.Body.String(), `"expected":{"n":1234567890123456789}`) {
				t.Errorf("context: %s", w.Body)
			}
			if p["detail"] != "the detail" || p["current_status"] != "applied" ||
				p["decided_at"] != "2026-11-20T12:00:00.123456Z" {
				t.Errorf("members: %v", p)
			}
			if v := p["errors"].([]any)[0].(map[string]any); v["pointer"] != "/a" || v["detail"] != "b" {
				t.Errorf("errors: %v", v)
			}
		})
	}
}

func TestOtherErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		code gatehouse.Code
	}{
		"unknown":      {errors.New("sql: secret table"), gatehouse.CodeInternal},
		"unknown code": {gatehouse.E("made_up", "secret"), gatehouse.CodeInternal},
		"conflict":     {gatehouse.ErrConflict, gatehouse.CodeInternal},
		"busy":         {fmt.Errorf("secret: %w", gatehouse.ErrBusy), gatehouse.CodeBusy},
		"deadline":     {context.DeadlineExceeded, gatehouse.CodeBusy},
		"not found":    {fmt.Errorf("secret: %w", gatehouse.ErrNotFound), gatehouse.CodeNotFound},
		"bad context":  {gatehouse.E(gatehouse.CodeTooLate, "late").With("f", func() {}), gatehouse.CodeTooLate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.err = tt.err
			w := decideRequest().send(newServer(t, f))
			wantCode(t, w, tt.code)
			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("leaked: %s", w.Body)
			}
			if tt.code == gatehouse.CodeBusy && w.Header().Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
			}
		})
	}
}

func TestPanicIsInternal(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.hook = func(context.Context, string) { panic("secret panic") }
	var log bytes.Buffer
	s := newServer(t, f, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	r := decideRequest()
	r.header = map[string]string{"Idempotency-Key": "k", "X-Request-Id": "req-7"}
	w := r.send(s)
	wantCode(t, w, gatehouse.CodeInternal)
	if strings.Contains(w.Body.String(), "secret") {
		t.Errorf("leaked: %s", w.Body)
	}
	if !strings.Contains(log.String(), "secret panic") || !strings.Contains(log.String(), "req-7") {
		t.Errorf("log: %s", log.String())
	}
	// The failed request has released its key.
	f.hook = nil
	if w := r.send(s); w.Code != http.StatusOK {
		t.Errorf("after the panic: %d %s", w.Code, w.Body)
	}
}

func TestInternalErrorsAreLoggedWithTheRequest(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.err = gatehouse.E(gatehouse.CodeInternal, "x").Because(errors.New("disk on fire"))
	var log bytes.Buffer
	s := newServer(t, f, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	r := decideRequest()
	r.header = map[string]string{"X-Request-Id": "req-9"}
	wantCode(t, r.send(s), gatehouse.CodeInternal)
	for _, want := range []string{"disk on fire", "req-9", decidePath} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "gth_ana") || strings.Contains(log.String(), "gte_ana") {
		t.Errorf("a secret is in the log: %s", log.String())
	}
}

func TestPathsAndMethods(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	wantCode(t, request{path: "/api/v1/nothing", key: "gth_ana"}.send(s), gatehouse.CodeNotFound)
	wantCode(t, request{path: "/api/v1/nothing"}.send(s), gatehouse.CodeUnauthenticated)
	wantCode(t, request{path: "/api/v2/whoami", key: "gth_ana"}.send(s), gatehouse.CodeNotFound)
	wantCode(t, request{path: "/elsewhere"}.send(s), gatehouse.CodeNotFound)
	wantCode(t, request{method: "DELETE", path: decidePath}.send(s), gatehouse.CodeUnauthenticated)
	for _, tt := range []struct{ method, path, allow string }{
		{"GET", decidePath, "POST"},
		{"GET", "/api/v1/proposed-actions/bulk-decide", "POST"},
		{"PUT", "/api/v1/proposed-actions", "GET, HEAD, POST"},
		{"TRACE", "/api/v1/principals/prn_1", "GET, HEAD, PATCH"},
		{"POST", "/healthz", "GET, HEAD"},
		{"DELETE", "/openapi.json", "GET, HEAD"},
	} {
		w := request{method: tt.method, path: tt.path, key: "gth_all"}.send(s)
		wantCode(t, w, gatehouse.CodeMethodNotAllowed)
		if got := w.Header().Get("Allow"); got != tt.allow {
			t.Errorf("%s %s: Allow %q, want %q", tt.method, tt.path, got, tt.allow)
		}
	}
	if w := (request{method: "HEAD", path: "/api/v1/whoami", key: "gth_ana"}).send(s); w.Code != http.StatusOK {
		t.Errorf("HEAD: %d", w.Code)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	for _, header := range []string{"", "gth_ana", "Basic gth_ana", "Bearer", "Bearer ", "Bearer  gth_ana",
		"Bearer gth_ana x", "Bearer " + strings.Repeat("x", 600)} {
		w := request{path: "/api/v1/whoami", header: map[string]string{"Authorization": header}}.send(s)
		wantCode(t, w, gatehouse.CodeUnauthenticated)
		if !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("WWW-Authenticate %q", w.Header().Get("WWW-Authenticate"))
		}
	}
	req := request{path: "/api/v1/whoami", key: "gth_ana"}.http()
	req.Header.Add("Authorization", "Bearer gth_bot")
	w := newRecorder()
	s.ServeHTTP(w, req)
	wantCode(t, w, gatehouse.CodeUnauthenticated)
	if w := (request{path: "/api/v1/whoami", header: map[string]string{"Authorization": "bearer gth_ana"}}).send(
		s); w.Code != http.StatusOK {
		t.Errorf("the scheme's case matters: %d", w.Code)
	}
	// Only the key identifies the caller.
	r := decideRequest()
	r.header = map[string]string{"X-Tenant": "other", "X-User": "root", "X-Forwarded-User": "root"}
	r.send(s)
	if got := f.last(t, "Decide").caller.Principal.ID; got != "prn_ana" {
		t.Errorf("the caller is %s", got)
	}
}

// TestDisabledPrincipals are refused even if the authenticator accepts them.
func TestDisabledPrincipals(t *testing.T) {
	t.Parallel()
	f := newFake()
	gone := *people["gth_root"]
	gone.Disabled = true
	s := newServer(t, f, func(c *Config) { c.Auth = twoKeys{f, &gone} })
	// The body is broken too, which shows that this check refuses, and not the
	// use case.
	wantCode(t, request{method: "POST", path: "/api/v1/policies", key: "gth_root_2", body: "{"}.send(s),
		gatehouse.CodeUnauthenticated)
	s = newServer(t, f, func(c *Config) { c.Auth = twoKeys{f, nil} })
	wantCode(t, request{path: "/api/v1/policies", key: "gth_root_2"}.send(s), gatehouse.CodeUnauthenticated)
}

func TestCaller(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	r := decideRequest()
	r.header = map[string]string{"X-Request-Id": "req-1"}
	r.send(s)
	c := f.last(t, "Decide").caller
	if !c.StepUp || c.Via != gatehouse.ViaAPI || c.RequestID != "req-1" || c.Idempotency != nil {
		t.Errorf("caller %+v", c)
	}
	r.header = map[string]string{"X-Gatehouse-Channel": "cli"}
	r.send(s)
	if via := f.last(t, "Decide").caller.Via; via != gatehouse.ViaClient {
		t.Errorf("via %s", via)
	}
	r.header = map[string]string{"X-Gatehouse-Channel": "policy"}
	r.send(s)
	if via := f.last(t, "Decide").caller.Via; via != gatehouse.ViaClient {
		t.Errorf("via %s", via)
	}
	bulk := r
	bulk.path, bulk.body = "/api/v1/proposed-actions/bulk-decide", `{"decision":"rejected","items":[{"action_id":"a"}]}`
	bulk.header = map[string]string{"X-Gatehouse-Channel": "cli"}
	bulk.send(s)
	if via := f.last(t, "BulkDecide").caller.Via; via != gatehouse.ViaBulk {
		t.Errorf("via %s", via)
	}
	// Cancel accepts the token without requiring it.
	cancel := request{method: "POST", path: "/api/v1/proposed-actions/act_1/cancel", key: "gth_ana"}
	for token, want := range map[string]bool{"": false, "gte_wrong": false, "gte_ana": true} {
		cancel.token = token
		if w := cancel.send(s); w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
		if got := f.last(t, "Cancel").caller.StepUp; got != want {
			t.Errorf("token %q: step-up %v", token, got)
		}
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	for _, path := range []string{"/api/v1/whoami", "/api/v1/nothing", "/elsewhere", "/healthz", "/readyz", "/metrics",
		"/docs", "/openapi.json"} {
		first := request{path: path}.send(s).Header().Get("X-Request-Id")
		second := request{path: path}.send(s).Header().Get("X-Request-Id")
		if first == "" || first == second {
			t.Errorf("%s: ids %q and %q", path, first, second)
		}
	}
	for id, kept := range map[string]bool{"abc-1.2:3_X": true, "a b": false, "a\"b": false,
		strings.Repeat("x", 129): false} {
		got := request{path: "/healthz", header: map[string]string{"X-Request-Id": id}}.send(s).Header().Get("X-Request-Id")
		if (got == id) != kept {
			t.Errorf("%q became %q", id, got)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	ready := errors.New("secret: the store is not open")
	s := newServer(t, newFake(), func(c *Config) { c.Ready = func(context.Context) error { return ready } })
	if w := (request{path: "/healthz"}).send(s); w.Code != http.StatusOK {
		t.Error(w.Code)
	}
	w := request{path: "/readyz"}.send(s)
	wantCode(t, w, gatehouse.CodeBusy)
	if strings.Contains(w.Body.String(), "secret") {
		t.Errorf("leaked: %s", w.Body)
	}
	ready = nil
	if w := (request{path: "/readyz"}).send(s); w.Code != http.StatusOK {
		t.Error(w.Code)
	}
}

// TestWaitQuery: what a query asks to wait for, and for how long.
func TestWaitQuery(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	for query, want := range map[string][]any{
		"wait=60s":                {"act_1", time.Minute, gatehouse.UntilDecided},
		"wait=1m&until=finished":  {"act_1", time.Minute, gatehouse.UntilFinished},
		"until=decided&wait=30ms": {"act_1", 30 * time.Millisecond, gatehouse.UntilDecided},
	} {
		if w := (request{path: "/api/v1/proposed-actions/act_1?" + query, key: "gth_view"}).send(s); w.Code != http.StatusOK {
			t.Errorf("%s: %d", query, w.Code)
		}
		if got := fmt.Sprint(f.last(t, "WaitAction").args); got != fmt.Sprint(want) {
			t.Errorf("%s: waited %v, want %v", query, got, want)
		}
	}
	for _, query := range []string{"wait=61s", "wait=-1s", "wait=30", "until=applied"} {
		wantCode(t, request{path: "/api/v1/proposed-actions/act_1?" + query, key: "gth_view"}.send(s), gatehouse.CodeInvalid)
	}
}

// TestErrorsQuoteHostileTextReadably quotes an agent's text in an error. People
// read details in terminals and logs, so every character must be visible.
func TestErrorsQuoteHostileTextReadably(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"no \u202etxet":        "no <U+202E>txet",
		"no \x1b[2J\x00":       "no <U+001B>[2J<U+0000>",
		"one\r\ntwo":           "one<U+000D>\ntwo",
		"1\u200b0 \u0661":      "1<U+200B>0 <U+0661>",
		"p\u0430ypal":          "p<U+0430>ypal",
		"Preis\u00e4nderung ✓": "Preis\u00e4nderung ✓",
	} {
		f := newFake()
		e := gatehouse.E(gatehouse.CodeInvalid, "%s", text).With("expected", text)
		e.Violations = gatehouse.Violations{{Pointer: "/" + text, Detail: text}}
		f.err = e
		p := wantCode(t, decideRequest().send(newServer(t, f)), gatehouse.CodeInvalid)
		v := p["errors"].([]any)[0].(map[string]any)
		if p["detail"] != want || v["detail"] != want || v["pointer"] != "/"+text {
			t.Errorf("%q is %q, %v", text, p["detail"], v)
		}
		if p["expected"] != text {
			t.Errorf("a member for programs became %q", p["expected"])
		}
	}
}

// TestAMissingVersionIsNamedInWords: the detail says "connector version", not "connector_version".
func TestAMissingVersionIsNamedInWords(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		ObjectPolicy: "no such policy", ObjectConnectorVersion: "no such connector version",
	} {
		if _, err := numberOf("x", kind); err == nil || err.Error() != "not_found: "+want {
			t.Errorf("%s: %v, want %q", kind, err, want)
		}
	}
}
