package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// script is a server with one prepared answer per request; it repeats the last one. It records the
// requests.
type script struct {
	mu      sync.Mutex
	answers []http.HandlerFunc
	seen    []*http.Request
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	answer := s.answers[min(len(s.seen), len(s.answers)-1)]
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	answer(w, r)
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

func ok(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

func problem(code gatehouse.Code, retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(gatehouse.StatusOf(code))
		fmt.Fprintf(w, `{"code":%q,"detail":"x"}`, code)
	}
}

func bare(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func drop(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func start(t *testing.T, answers ...http.HandlerFunc) (*script, *client.Client) {
	t.Helper()
	s := &script{answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL+"/", "gth_x", client.WithEditToken("gte_x"), client.WithRetries(3, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

var rejection = gatehouse.Decision{Decision: gatehouse.Reject}

func TestRetries(t *testing.T) {
	t.Parallel()
	read := func(ctx context.Context, c *client.Client) error {
		_, err := c.FindAction(ctx, "act_1")
		return err
	}
	decide := func(ctx context.Context, c *client.Client) error {
		_, err := c.Decide(ctx, "act_1", rejection)
		return err
	}
	drain := func(ctx context.Context, c *client.Client) error {
		_, err := c.Drain(ctx, gatehouse.DrainRequest{})
		return err
	}
	for name, tt := range map[string]struct {
		call    func(context.Context, *client.Client) error
		answers []http.HandlerFunc
		tries   int
		code    gatehouse.Code // "" for success
	}{
		"read, dropped":                 {read, []http.HandlerFunc{drop, drop, ok("{}")}, 3, ""},
		"read, busy":                    {read, []http.HandlerFunc{problem("busy", ""), ok("{}")}, 2, ""},
		"read, bad gateway":             {read, []http.HandlerFunc{bare(502), ok("{}")}, 2, ""},
		"read, refused":                 {read, []http.HandlerFunc{problem("not_found", "")}, 1, "not_found"},
		"decide, dropped":               {decide, []http.HandlerFunc{drop, ok("{}")}, 2, ""},
		"decide, busy for ever":         {decide, []http.HandlerFunc{problem("busy", "")}, 4, "busy"},
		"decide, conflict":              {decide, []http.HandlerFunc{problem("already_decided", "")}, 1, "already_decided"},
		"decide, internal":              {decide, []http.HandlerFunc{problem("internal", "")}, 1, "internal"},
		"decide, limited":               {decide, []http.HandlerFunc{problem("rate_limited", "1")}, 1, "rate_limited"},
		"decide, busy for long":         {decide, []http.HandlerFunc{problem("busy", "60")}, 1, "busy"},
		"decide, own try still runs":    {decide, []http.HandlerFunc{drop, problem("in_progress", ""), ok("{}")}, 3, ""},
		"decide, another's try runs":    {decide, []http.HandlerFunc{problem("in_progress", "")}, 1, "in_progress"},
		"drain, dropped":                {drain, []http.HandlerFunc{drop, ok("{}")}, 1, "internal"},
		"drain, busy: nothing was done": {drain, []http.HandlerFunc{problem("busy", ""), ok("{}")}, 2, ""},
		"drain, a gateway gave up":      {drain, []http.HandlerFunc{bare(503), ok("{}")}, 1, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := start(t, tt.answers...)
			err := tt.call(t.Context(), c)
			if got := gatehouse.CodeOf(err); got != tt.code {
				t.Errorf("%v, want code %q", err, tt.code)
			}
			if s.count() != tt.tries {
				t.Errorf("%d tries, want %d", s.count(), tt.tries)
			}
			keys := make(map[string]bool)
			for _, r := range s.seen {
				keys[r.Header.Get("Idempotency-Key")] = true
			}
			if len(keys) != 1 {
				t.Errorf("the tries had the keys %v", keys)
			}
			if keyed := !keys[""]; keyed != strings.HasPrefix(name, "decide") {
				t.Errorf("sent with the keys %v", keys)
			}
		})
	}
}

func TestEveryCallHasItsOwnKey(t *testing.T) {
	t.Parallel()
	s, c := start(t, ok("{}"))
	for range 3 {
		if _, err := c.Decide(t.Context(), "act_1", rejection); err != nil {
			t.Fatal(err)
		}
	}
	keys := make(map[string]bool)
	for _, r := range s.seen {
		keys[r.Header.Get("Idempotency-Key")] = true
	}
	if len(keys) != 3 || keys[""] {
		t.Errorf("keys %v", keys)
	}
}

func TestCanceledCallsStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, c := start(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		problem("busy", "")(w, r)
	})
	if _, err := c.FindAction(ctx, "act_1"); err == nil {
		t.Error("no error")
	}
	if s.count() != 1 {
		t.Errorf("%d tries", s.count())
	}
}

// TestKeysStayHome: after a redirect to another host, that host gets no request at all.
func TestKeysStayHome(t *testing.T) {
	t.Parallel()
	other := &script{answers: []http.HandlerFunc{ok("{}")}}
	elsewhere := httptest.NewServer(other)
	defer elsewhere.Close()
	_, c := start(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	if _, err := c.WhoAmI(t.Context()); err == nil {
		t.Error("a redirect is an answer")
	}
	if other.count() != 0 {
		t.Errorf("%d requests went elsewhere", other.count())
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	s, c := start(t, ok("{}"))
	if _, err := c.WhoAmI(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := s.seen[0].Header
	if h.Get("Authorization") != "Bearer gth_x" || h.Get("X-Edit-Token") != "gte_x" ||
		s.seen[0].URL.Path != "/api/v1/whoami" {
		t.Errorf("%s %v", s.seen[0].URL, h)
	}
}

func TestIDsStaySegments(t *testing.T) {
	t.Parallel()
	s, c := start(t, ok("{}"))
	for _, id := range []string{"", ".", "..", "../x", "a/b?c#d"} {
		if _, err := c.FindAction(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		path := s.seen[len(s.seen)-1].URL.EscapedPath()
		rest, found := strings.CutPrefix(path, "/api/v1/proposed-actions/")
		if !found || rest == "" || strings.Contains(rest, "/") || strings.Trim(rest, ".") == "" {
			t.Errorf("%q went to %s", id, path)
		}
	}
}

// TestWaitContinues: after a long poll without a decision, the client polls again.
func TestWaitContinues(t *testing.T) {
	t.Parallel()
	s, c := start(t, ok(`{"status":"pending"}`), ok(`{"status":"pending"}`), ok(`{"status":"approved"}`))
	a, err := c.WaitAction(t.Context(), "act_1", time.Hour, gatehouse.UntilDecided)
	if err != nil || a.Status != gatehouse.StatusApproved {
		t.Fatalf("%+v %v", a, err)
	}
	if s.count() != 3 || s.seen[0].URL.Query().Get("wait") != "1m0s" || s.seen[0].URL.Query().Get("until") != "decided" {
		t.Errorf("%d polls, the first %s", s.count(), s.seen[0].URL)
	}
}

// TestWaitsOutlastOutages: an error that would end a call without retries does not end a wait before the
// wait's own time is over.
func TestWaitsOutlastOutages(t *testing.T) {
	t.Parallel()
	down := []http.HandlerFunc{
		drop, bare(502), problem("busy", ""), problem("rate_limited", "1"), problem("internal", ""),
	}
	for name, wait := range map[string]func(context.Context, *client.Client, time.Duration) (string, error){
		"action": func(ctx context.Context, c *client.Client, wait time.Duration) (string, error) {
			a, err := c.WaitAction(ctx, "act_1", wait, gatehouse.UntilDecided)
			if err != nil {
				return "", err
			}
			return string(a.Status), nil
		},
		"run": func(ctx context.Context, c *client.Client, wait time.Duration) (string, error) {
			r, err := c.WaitRun(ctx, "run_1", wait)
			if err != nil {
				return "", err
			}
			return string(r.Status), nil
		},
		"guarded call": func(ctx context.Context, c *client.Client, wait time.Duration) (string, error) {
			f, err := client.Guarded(client.NewGuard(c, wait), client.GuardTool[struct{}]{
				ActionType: "x", Connector: "erp", Operation: "refund",
				Target: func(struct{}) gatehouse.Target { return gatehouse.Target{} },
			}, func(context.Context, struct{}) (string, error) { return "", nil })
			if err != nil {
				return "", err
			}
			_, err = f.Call(ctx, struct{}{})
			var not *client.NotApplied
			if errors.As(err, &not) {
				return string(not.Action.Status), nil
			}
			return "", err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := []http.HandlerFunc{ok(`{"id":"act_1","status":"pending"}`)}
			if name != "guarded call" {
				begin = nil
			}
			s, c := start(t, slices.Concat(begin, down, []http.HandlerFunc{ok(`{"id":"act_1","status":"canceled"}`)})...)
			client.WithRetries(0, time.Millisecond)(c)
			status, err := wait(t.Context(), c, time.Hour)
			if err != nil || status != "canceled" || s.count() != len(begin)+len(down)+1 {
				t.Errorf("%s, %v after %d requests", status, err, s.count())
			}

			_, c = start(t, append(begin, drop)...)
			client.WithRetries(0, 10*time.Millisecond)(c)
			from := time.Now()
			_, err = wait(t.Context(), c, 200*time.Millisecond)
			if err == nil || gatehouse.CodeOf(err) != gatehouse.CodeInternal || time.Since(from) < 200*time.Millisecond {
				t.Errorf("a server that stays down: %v after %s", err, time.Since(from))
			}
			for _, refused := range []http.HandlerFunc{problem("not_found", ""), problem("unauthenticated", ""), bare(500)} {
				s, c := start(t, append(begin, refused)...)
				if _, err := wait(t.Context(), c, time.Hour); err == nil || s.count() != len(begin)+1 {
					t.Errorf("refused: %v after %d requests", err, s.count())
				}
			}
		})
	}
}

func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		code   gatehouse.Code
	}{
		"html":        {ok("<html>"), gatehouse.CodeInternal},
		"401 of html": {bare(401), gatehouse.CodeUnauthenticated},
		"413 of html": {bare(413), gatehouse.CodeBodyTooLarge},
		"418":         {bare(418), gatehouse.CodeInternal},
		"bad problem": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(404)
			fmt.Fprint(w, `[]`)
		}, gatehouse.CodeNotFound},
		"no code": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(429)
			fmt.Fprint(w, `{}`)
		}, gatehouse.CodeRateLimited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c := start(t, tt.answer)
			_, err := c.WhoAmI(t.Context())
			if err == nil || gatehouse.CodeOf(err) != tt.code {
				t.Errorf("%v, want %s", err, tt.code)
			}
			if b, err := c.ReceiveBounce(t.Context(), "", []byte("x")); err == nil || b != nil {
				t.Errorf("a bounce: %+v, %v", b, err)
			}
		})
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c, err := client.New(server.URL, "gth_x", client.WithRetries(1, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.WhoAmI(t.Context())
	var e *gatehouse.Error
	if err == nil || errors.As(err, &e) {
		t.Errorf("%v: a lost connection is not an error from the server", err)
	}
	for _, bad := range []string{"", "127.0.0.1:8080", "ftp://x", "http://", "://"} {
		if _, err := client.New(bad, "k"); err == nil {
			t.Errorf("%q is accepted as a URL", bad)
		}
	}
}

// TestAnswerRefuses sends no answer that would lose a part, or that is no decision.
func TestAnswerRefuses(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "gth_x", client.WithRetries(1, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []gatehouse.Decision{
		{}, {Decision: "approve"}, {Decision: gatehouse.Approve, AcknowledgeStale: true},
	} {
		if _, err := c.Answer(t.Context(), "act_1", d); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if _, err := c.Answer(t.Context(), "act_1", gatehouse.Decision{Decision: gatehouse.Reject}); err != nil || asked != 1 {
		t.Errorf("%v after %d requests", err, asked)
	}
}
