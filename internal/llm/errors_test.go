package llm_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/llm"
	"github.com/gatehouse-dev/gatehouse/internal/llm/llmtest"
)

// TestErrorsAreClassified has the statuses and types of both documentations.
func TestErrorsAreClassified(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reply     llmtest.Reply
		code      string
		retryable bool
		after     time.Duration
	}{
		"400": {llmtest.Reply{Status: 400, Kind: "invalid_request_error"}, llm.CodeInvalid, false, 0},
		"401": {llmtest.Reply{Status: 401, Kind: "authentication_error"}, llm.CodeUnauthenticated, false, 0},
		"402": {llmtest.Reply{Status: 402, Kind: "billing_error"}, llm.CodeQuota, false, 0},
		"403": {llmtest.Reply{Status: 403, Kind: "permission_error"}, llm.CodeForbidden, false, 0},
		"404": {llmtest.Reply{Status: 404, Kind: "not_found_error"}, llm.CodeNotFound, false, 0},
		"408": {llmtest.Reply{Status: 408}, llm.CodeUnavailable, true, 0},
		"409": {llmtest.Reply{Status: 409, Kind: "conflict_error"}, llm.CodeUnavailable, true, 0},
		"413": {llmtest.Reply{Status: 413, Kind: "request_too_large"}, llm.CodeTooLarge, false, 0},
		"422": {llmtest.Reply{Status: 422}, llm.CodeInvalid, false, 0},
		"429": {llmtest.Reply{Status: 429, Kind: "rate_limit_error", Header: after("17")},
			llm.CodeRateLimited, true, 17 * time.Second},
		"429 for long": {llmtest.Reply{Status: 429, Header: after("1e30")}, llm.CodeRateLimited, true, time.Hour},
		"429 by a past date": {llmtest.Reply{Status: 429, Header: after("Fri, 31 Dec 1999 23:59:59 GMT")},
			llm.CodeRateLimited, true, 0},
		"429 by a far date": {llmtest.Reply{Status: 429, Header: after("Fri, 31 Dec 2199 23:59:59 GMT")},
			llm.CodeRateLimited, true, time.Hour},
		"429 nonsense": {llmtest.Reply{Status: 429, Header: after("NaN")}, llm.CodeRateLimited, true, 0},
		"429 negative": {llmtest.Reply{Status: 429, Header: after("-5")}, llm.CodeRateLimited, true, 0},
		"429 no quota": {
			llmtest.Reply{Status: 429, Kind: "insufficient_quota", Code: "insufficient_quota", Header: after("17")},
			llm.CodeQuota, false, 0},
		"429 spend limit": {llmtest.Reply{Status: 429, Kind: "rate_limit_error", Code: "enforced_spend_limit_reached"},
			llm.CodeQuota, false, 0},
		"500":                 {llmtest.Reply{Status: 500, Kind: "api_error"}, llm.CodeUnavailable, true, 0},
		"503":                 {llmtest.Reply{Status: 503, Header: after("3")}, llm.CodeOverloaded, true, 3 * time.Second},
		"504":                 {llmtest.Reply{Status: 504, Kind: "timeout_error"}, llm.CodeUnavailable, true, 0},
		"529":                 {llmtest.Reply{Status: 529, Kind: "overloaded_error"}, llm.CodeOverloaded, true, 0},
		"a body of no JSON":   {llmtest.Reply{Status: 502, Raw: []byte("<html>")}, llm.CodeUnavailable, true, 0},
		"an accepted request": {llmtest.Reply{Status: 202, Raw: []byte("{}")}, llm.CodeBadAnswer, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(llmtest.Call) llmtest.Reply { return tc.reply }, func(t *testing.T, w *world, p llm.Provider) {
				a, err := p.Complete(t.Context(), llm.Request{Model: "m", Prompt: "x"})
				e := errorOf(t, err)
				if e.Code != tc.code || e.Retryable != tc.retryable || e.RetryAfter != tc.after || e.Status != tc.reply.Status ||
					e.RequestID != "req_fake_1" {
					t.Errorf("err = %+v", e)
				}
				if a.InputTokens != 0 || len(w.fake.Calls()) != 1 {
					t.Errorf("tokens of an error, or %d calls", len(w.fake.Calls()))
				}
			})
		})
	}
}

func after(s string) http.Header { return http.Header{"Retry-After": {s}} }

func TestMessagesOfProviders(t *testing.T) {
	t.Parallel()
	reply := func(llmtest.Call) llmtest.Reply {
		return llmtest.Reply{Status: 400, Kind: "invalid_request_error",
			Message: "max_tokens:\n\x1b[31mtoo large\u202e " + strings.Repeat("x", 1000)}
	}
	each(t, reply, func(t *testing.T, _ *world, p llm.Provider) {
		_, err := p.Complete(t.Context(), llm.Request{Model: "m", Prompt: "x"})
		e := errorOf(t, err)
		if !strings.HasPrefix(e.Detail, "the provider answered 400: max_tokens: [31mtoo large xxx") || len(e.Detail) > 400 {
			t.Errorf("detail = %q", e.Detail)
		}
	})
}

// TestKeysDoNotLeak has providers that repeat the key wherever they can.
func TestKeysDoNotLeak(t *testing.T) {
	t.Parallel()
	shown := func(t *testing.T, err error) {
		t.Helper()
		e := errorOf(t, err)
		for _, s := range []string{key, key[:12], key[len(key)-8:], "sk-fake"} {
			if strings.Contains(e.Error(), s) || strings.Contains(e.RequestID, s) {
				t.Errorf("%s, request %s: has %s", e, e.RequestID, s)
			}
		}
	}
	for name, reply := range map[string]llmtest.Reply{
		"plain":      {Status: 400, Message: "you sent " + key + "!"},
		"in a quote": {Status: 400, Message: `you sent "sk-fake-012/345+6\"789="`},
		"in a query": {Status: 400, Message: "?key=sk-fake-012%2F345%2B6%22789%3D"},
		"of a 401":   {Status: 401, Message: "Incorrect API key provided: sk-fake-0*****789=."},
		"split":      {Status: 500, Message: "you sent " + key[:9] + "\x00" + key[9:]},
		"at the cut": {Status: 500, Message: strings.Repeat("x", 295) + key},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(llmtest.Call) llmtest.Reply { return reply }, func(t *testing.T, _ *world, p llm.Provider) {
				_, err := p.Complete(t.Context(), llm.Request{Model: "m", Prompt: "x"})
				shown(t, err)
			})
		})
	}
	t.Run("in a header", func(t *testing.T) {
		t.Parallel()
		reply := llmtest.Reply{Status: 500, Header: http.Header{"X-Request-Id": {key}, "Request-Id": {key}}}
		each(t, func(llmtest.Call) llmtest.Reply { return reply }, func(t *testing.T, _ *world, p llm.Provider) {
			_, err := p.Complete(t.Context(), llm.Request{Model: "m", Prompt: "x"})
			shown(t, err)
		})
	})
}

func TestWrongKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, say("so"))
	for protocol, c := range w.configs() {
		c.Key = "sk-wrong-000"
		p, err := llm.New(c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Complete(t.Context(), llm.Request{Model: "m", Prompt: "x"})
		if e := errorOf(t, err); e.Code != llm.CodeUnauthenticated || strings.Contains(e.Error(), "sk-wrong") {
			t.Errorf("%s: %v", protocol, e)
		}
	}
}

// TestBadAnswers has answers with status 200 that are not the protocol's.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	html := http.Header{"Content-Type": {"text/html"}}
	for name, reply := range map[string]llmtest.Reply{
		"a page":        {Raw: []byte("<html>"), Header: html},
		"no JSON":       {Raw: []byte("{")},
		"nothing in it": {Raw: []byte("{}")},
		"no usage":      {Raw: []byte(`{"type":"message","content":[],"choices":[{"message":{"content":"x"}}]}`)},
		"half a usage": {
			Raw: []byte(`{"type":"message","content":[],"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":1,` +
				`"input_tokens":1}}`)},
		"negative tokens": {
			Raw: []byte(`{"type":"message","content":[],"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":-1,` +
				`"input_tokens":-1,"completion_tokens":1,"output_tokens":1}}`)},
		"half tokens": {
			Raw: []byte(`{"type":"message","content":[],"choices":[{"message":{"content":"x"}}],` +
				`"usage":{"prompt_tokens":1.5,"input_tokens":1.5,"completion_tokens":1,"output_tokens":1}}`)},
		"too large": {
			Raw: []byte(`{"type":"message","content":[],"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":1,` +
				`"input_tokens":1,"completion_tokens":1,"output_tokens":1}}` + strings.Repeat(" ", llm.MaxBytes))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(llmtest.Call) llmtest.Reply { return reply }, func(t *testing.T, _ *world, p llm.Provider) {
				_, err := p.Complete(t.Context(), llm.Request{Model: "m", Prompt: "x"})
				if e := errorOf(t, err); e.Code != llm.CodeBadAnswer || e.Retryable {
					t.Errorf("err = %+v", e)
				}
			})
		})
	}
}

func TestTooLargeRequest(t *testing.T) {
	t.Parallel()
	each(t, say("so"), func(t *testing.T, w *world, p llm.Provider) {
		_, err := p.Complete(t.Context(), llm.Request{Model: "m", Prompt: strings.Repeat("x", llm.MaxBytes)})
		if e := errorOf(t, err); e.Code != llm.CodeTooLarge || len(w.fake.Calls()) != 0 {
			t.Errorf("err = %+v, %d calls", e, len(w.fake.Calls()))
		}
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, say("so"))
	away := httptest.NewServer(http.RedirectHandler(w.server.URL+"/v1/messages", http.StatusTemporaryRedirect))
	t.Cleanup(away.Close)
	c := w.configs()[llmtest.Anthropic]
	c.BaseURL = away.URL
	p, err := llm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Complete(t.Context(), llm.Request{Model: "m", Prompt: "x"})
	if e := errorOf(t, err); e.Code != llm.CodeBadAnswer || e.Status != 307 || len(w.fake.Calls()) != 0 {
		t.Errorf("err = %+v, %d calls", e, len(w.fake.Calls()))
	}
}

// TestInsideAddressesAreRefused dials loopback by name, over a scheme that
// would be allowed.
func TestInsideAddressesAreRefused(t *testing.T) {
	t.Parallel()
	connected := make(chan bool, 1)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err == nil {
			_ = c.Close()
		}
		connected <- err == nil
	}()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	p, err := llm.New(llm.Config{Type: llm.TypeOpenAI, BaseURL: "https://localhost:" + port, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Complete(t.Context(), llm.Request{Model: "m", Prompt: "x"})
	if e := errorOf(t, err); e.Code != llm.CodeAddressRefused || e.Retryable || strings.Contains(e.Error(), "127.0.0.1") {
		t.Errorf("err = %+v", e)
	}
	_ = ln.Close()
	if <-connected {
		t.Error("it was connected to")
	}
}

func TestNetworkFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		serve http.HandlerFunc
		code  string
	}{
		"broken off before the answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			llm.CodeUnreachable},
		"broken off within it": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"type":`)
			panic(http.ErrAbortHandler)
		}, llm.CodeUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(tc.serve)
			t.Cleanup(s.Close)
			p, err := llm.New(llm.Config{Type: llm.TypeAnthropic, BaseURL: s.URL, Key: key, AllowPrivate: true})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Complete(t.Context(), llm.Request{Model: "m", Prompt: "x"})
			if e := errorOf(t, err); e.Code != tc.code || !e.Retryable {
				t.Errorf("err = %+v", e)
			}
		})
	}
}

// TestTimeouts distinguishes a silent provider from a caller that gave up.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	w := newWorld(t, func(c llmtest.Call) llmtest.Reply {
		if c.Last() == "to be canceled" {
			close(asked)
		}
		<-c.HTTP.Context().Done()
		return llmtest.Reply{}
	})
	c := w.configs()[llmtest.OpenAI]
	c.Timeout = 20 * time.Millisecond
	impatient, err := llm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = impatient.Complete(t.Context(), llm.Request{Model: "m", Prompt: "x"})
	if e := errorOf(t, err); e.Code != llm.CodeTimeout || !e.Retryable {
		t.Errorf("own timeout: %+v", e)
	}
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = w.providers[llmtest.OpenAI].Complete(soon, llm.Request{Model: "m", Prompt: "x"})
	if e := errorOf(t, err); e.Code != llm.CodeTimeout {
		t.Errorf("the caller's deadline: %+v", e)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-asked; stop() }()
	_, err = w.providers[llmtest.OpenAI].Complete(ctx, llm.Request{Model: "m", Prompt: "to be canceled"})
	if e := errorOf(t, err); e.Code != llm.CodeCanceled {
		t.Errorf("canceled: %+v", e)
	}
}
