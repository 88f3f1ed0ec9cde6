package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRawClient: the raw client reads a real server's answers, and refuses one without a length.
func TestRawClient(t *testing.T) {
	t.Parallel()
	s, err := serveBare(t.Context(), "/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/chunked" {
			w.(http.Flusher).Flush()
			return
		}
		answer := fmt.Sprintf("%s %s %s %q", r.Method, r.URL.RequestURI(), r.Header.Get("X-Test"), body)
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, answer)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	c, err := dial(t.Context(), s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	long := strings.Repeat("x", 100_000)
	for _, step := range []struct {
		request []byte
		want    string
	}{
		{post(nil, "/a", "X-Test: one\r\n", []byte(`{"n":1}`)), `POST /a one "{\"n\":1}"`},
		{get(nil, "/b?c=d", "X-Test: two\r\n"), `GET /b?c=d two ""`},
		{post(nil, "/long", "", []byte(long)), fmt.Sprintf("POST /long  %q", long)},
		{get(nil, "/again", ""), `GET /again  ""`},
	} {
		status, body, err := c.do(step.request)
		if err != nil {
			t.Fatal(err)
		}
		if status != http.StatusTeapot || string(body) != step.want {
			t.Errorf("%d %.80s, want %.80s", status, body, step.want)
		}
	}
	if _, _, err := c.do(get(nil, "/chunked", "")); err == nil {
		t.Error("an answer without a length was accepted")
	}
}

// brokenClaims cannot lease a push.
type brokenClaims struct{ claimer }

func (brokenClaims) claim(string) error { return nil }

func (brokenClaims) lease([]string) error { return errors.New("broken") }

// TestBareCallerEndsAfterAFailure: a failed call does not keep the caller from being closed.
func TestBareCallerEndsAfterAFailure(t *testing.T) {
	t.Parallel()
	b := newBareCaller(brokenClaims{}, "127.0.0.1:1")
	if _, err := b.decide("act_1"); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		b.close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the caller does not close")
	}
}

// TestDrive: each item is processed exactly once, by any worker. After a failure, the drive returns it
// and stops all workers.
func TestDrive(t *testing.T) {
	t.Parallel()
	var sum atomic.Int64
	o, err := drive(t.Context(), 8, time.Minute, 1000, func(int) (func(int) error, func(), error) {
		return func(i int) error { sum.Add(int64(i)); return nil }, func() {}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if o.done != 1000 || len(o.latencies) != 1000 || sum.Load() != 999*1000/2 || o.elapsed <= 0 ||
		o.elapsed >= time.Minute {
		t.Errorf("done %d, %d latencies, sum %d, %s", o.done, len(o.latencies), sum.Load(), o.elapsed)
	}
	const limit = 20 * time.Millisecond
	o, err = drive(t.Context(), 2, limit, -1, func(int) (func(int) error, func(), error) {
		return func(int) error { time.Sleep(time.Millisecond); return nil }, func() {}, nil
	})
	if err != nil || o.elapsed < limit {
		t.Errorf("ended after %s, %v", o.elapsed, err)
	}
	broken := errors.New("broken")
	stopped := 0
	_, err = drive(t.Context(), 4, time.Minute, -1, func(int) (func(int) error, func(), error) {
		return func(i int) error {
			if i == 50 {
				return broken
			}
			return nil
		}, func() { stopped++ }, nil
	})
	if !errors.Is(err, broken) || stopped != 4 {
		t.Errorf("error %v, %d stopped", err, stopped)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = drive(ctx, 2, time.Minute, -1, func(int) (func(int) error, func(), error) {
		return func(int) error { return nil }, func() {}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after the context's end: %v", err)
	}
}
