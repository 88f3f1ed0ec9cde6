package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// polls is a server that answers each long poll with the body that answer returns, after the time that answer
// returns: at most the time of the poll. An empty body breaks the connection.
type polls struct {
	count  int
	answer func(poll int, wait time.Duration) (after time.Duration, body string)
}

func (p *polls) RoundTrip(r *http.Request) (*http.Response, error) {
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	p.count++
	after, body := p.answer(p.count, wait)
	time.Sleep(min(after, wait))
	if body == "" {
		return nil, errors.New("connection refused")
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

func (p *polls) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New("http://gatehouse", "k", client.WithHTTPClient(&http.Client{Transport: p}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWaitEndsWithItsTime(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, -time.Second, time.Second, time.Second + time.Nanosecond} {
		synctest.Test(t, func(t *testing.T) {
			s := &polls{answer: func(_ int, wait time.Duration) (time.Duration, string) { return wait, `{"status":"pending"}` }}
			a, err := s.client(t).WaitAction(t.Context(), "act_1", wait, gatehouse.UntilFinished)
			if err != nil || a.Status != gatehouse.StatusPending || s.count != 1 {
				t.Errorf("%s: %+v %v after %d polls", wait, a, err, s.count)
			}
		})
	}
}

// TestWaitsOutlastAStop: a server that stops answers open polls with the present state. The wait continues with the
// server that follows.
func TestWaitsOutlastAStop(t *testing.T) {
	t.Parallel()
	const unchanged, changed = `{"status":"pending","position":"1"}`, `{"status":"canceled","position":"2"}`
	for name, wait := range map[string]func(context.Context, *client.Client, time.Duration) (string, error){
		"action": func(ctx context.Context, c *client.Client, wait time.Duration) (string, error) {
			a, err := c.WaitAction(ctx, "act_1", wait, gatehouse.UntilDecided)
			if err != nil {
				return "", err
			}
			return string(a.Status), nil
		},
		"run": func(ctx context.Context, c *client.Client, wait time.Duration) (string, error) {
			r, err := c.WatchRun(ctx, "run_1", "1", wait)
			if err != nil {
				return "", err
			}
			return string(r.Status), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &polls{answer: func(poll int, _ time.Duration) (time.Duration, string) {
					switch poll {
					case 1:
						return 10 * time.Second, unchanged // it stops
					case 2:
						return 0, "" // it is down
					}
					return 5 * time.Second, changed
				}}
				if status, err := wait(t.Context(), s.client(t), 50*time.Second); err != nil || status != "canceled" ||
					s.count != 3 {
					t.Errorf("%q, %v after %d polls", status, err, s.count)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				s := &polls{answer: func(poll int, wait time.Duration) (time.Duration, string) {
					if poll == 1 {
						wait = time.Second
					}
					return wait, unchanged
				}}
				if status, err := wait(t.Context(), s.client(t), 50*time.Second); err != nil || status != "pending" ||
					s.count != 2 {
					t.Errorf("without news: %q, %v after %d polls", status, err, s.count)
				}
			})
		})
	}
}
