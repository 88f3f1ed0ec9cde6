package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const date = "Mon, 23 Nov 2026 10:00:00 GMT"
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "soon": 0, "999999": 24 * time.Hour, "99999999999999999999": 24 * time.Hour,
		"Mon, 23 Nov 2026 10:00:30 GMT": 30 * time.Second,
		"Mon, 23 Nov 2026 09:00:00 GMT": 0,
	} {
		h := http.Header{"Date": {date}}
		if value != "" {
			h.Set("Retry-After", value)
		}
		if got := rest.RetryAfter(h); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// TestHold: after an answer 429 nothing is sent until its Retry-After has passed.
func TestHold(t *testing.T) {
	t.Parallel()
	sent := 0
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent++
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(target.Close)
	u, err := url.Parse(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	var hold rest.Hold
	a, err := hold.Send(t.Context(), target.Client(), rest.NewRequest(http.MethodGet, u))
	if err != nil || a.Status != http.StatusTooManyRequests {
		t.Fatalf("%+v, %v", a, err)
	}
	_, err = hold.Send(t.Context(), target.Client(), rest.NewRequest(http.MethodGet, u))
	e := rest.Unread(t.Context(), err)
	if e.Kind != connector.NotSent || e.Code != "rate_limited" || e.RetryAfter < 59*time.Minute || sent != 1 {
		t.Errorf("%+v after %d requests", e, sent)
	}
}

// TestEchoedCredential: a credential that the target repeats is redacted.
func TestEchoedCredential(t *testing.T) {
	t.Parallel()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		_, _ = fmt.Fprintf(w, `{"message":"refused: %s, %s"}`, token, r.Header.Get("X-Key"))
	}))
	t.Cleanup(target.Close)
	u, err := url.Parse(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := rest.NewRequest(http.MethodGet, u)
	r.SetSecret("Authorization", "Bearer secret-access-token")
	r.SetSecret("X-Key", "secret key of two words")
	a, err := rest.Send(t.Context(), target.Client(), r)
	if err != nil {
		t.Fatal(err)
	}
	if all := string(a.Body) + a.Header.Get("X-Echo"); strings.Contains(all, "secret") ||
		!strings.Contains(all, "refused: ") {
		t.Error(all)
	}
}

// TestCutCredential: a credential that the target repeats is redacted where the answer breaks off.
func TestCutCredential(t *testing.T) {
	t.Parallel()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = fmt.Fprint(w, "you sent "+r.Header.Get("X-Key")[:10])
	}))
	t.Cleanup(target.Close)
	u, err := url.Parse(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := rest.NewRequest(http.MethodGet, u)
	r.SetSecret("X-Key", "secret-key-of-the-target")
	a, err := rest.Send(t.Context(), target.Client(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Text(""); got != "you sent [redacted]…" {
		t.Errorf("%q", got)
	}
}
