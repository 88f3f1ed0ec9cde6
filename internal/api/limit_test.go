package api

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func TestBulkIsLimitedByPerson(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	now := testTime
	s.bulk.now = func() time.Time { return now }
	r := request{
		method: "POST", path: "/api/v1/proposed-actions/bulk-decide", key: "gth_ana", token: "gte_ana",
		body: `{"decision":"rejected","items":[{"action_id":"act_1"}]}`,
	}
	for i := range 30 {
		if w := r.send(s); w.Code != http.StatusOK {
			t.Fatalf("call %d: %d %s", i, w.Code, w.Body)
		}
		now = now.Add(time.Second)
	}
	w := r.send(s)
	wantCode(t, w, gatehouse.CodeRateLimited)
	if got := w.Header().Get("Retry-After"); got != "30" { // the first call is 30 s old
		t.Errorf("Retry-After %q", got)
	}
	other := r
	other.key, other.token = "gth_root", "gte_root"
	if w := other.send(s); w.Code != http.StatusOK {
		t.Errorf("another person: %d", w.Code)
	}
	now = now.Add(29 * time.Second)
	wantCode(t, r.send(s), gatehouse.CodeRateLimited)
	now = now.Add(time.Second)
	if w := r.send(s); w.Code != http.StatusOK {
		t.Errorf("after the minute: %d %s", w.Code, w.Body)
	}
	wantCode(t, r.send(s), gatehouse.CodeRateLimited)
}

// TestWindowNeverLetsMoreThrough counts the allowed calls in any minute.
func TestWindowNeverLetsMoreThrough(t *testing.T) {
	t.Parallel()
	w := newWindow(30)
	now := testTime
	w.now = func() time.Time { return now }
	var passed []time.Time
	for range 1000 {
		if w.take("ana") == nil {
			passed = append(passed, now)
		}
		now = now.Add(700 * time.Millisecond)
	}
	for i := 30; i < len(passed); i++ {
		if d := passed[i].Sub(passed[i-30]); d < time.Minute {
			t.Fatalf("31 calls within %s", d)
		}
	}
	if len(passed) < 330 {
		t.Errorf("only %d passed in 700 s", len(passed))
	}
}

func TestWindowForgets(t *testing.T) {
	t.Parallel()
	w := newWindow(3)
	now := testTime
	w.now = func() time.Time { return now }
	for i := range 1000 {
		_ = w.take(strconv.Itoa(i))
	}
	now = now.Add(2 * time.Minute)
	_ = w.take("x")
	if len(w.calls) != 1 {
		t.Errorf("%d names are kept", len(w.calls))
	}
}

func TestGeneralLimit(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake(), func(c *Config) { c.RequestsPerSecond, c.RequestBurst = 0.001, 2 })
	r := request{path: "/api/v1/whoami", key: "gth_ana"}
	for range 2 {
		if w := r.send(s); w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
	}
	w := r.send(s)
	wantCode(t, w, gatehouse.CodeRateLimited)
	if n, err := strconv.Atoi(w.Header().Get("Retry-After")); err != nil || n < 900 || n > 1000 {
		t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
	}
	r.key = "gth_bot"
	if w := r.send(s); w.Code != http.StatusOK {
		t.Errorf("another principal: %d", w.Code)
	}
	if w := (request{path: "/healthz"}).send(s); w.Code != http.StatusOK {
		t.Errorf("health: %d", w.Code)
	}
}
