package client_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// polled is a server whose run changes at a given time; long polls before that take their full
// time.
type polled struct {
	changes time.Time
	polls   []string
}

func (p *polled) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := r.URL.Query().Get("wait")
	p.polls = append(p.polls, asked)
	wait, _ := time.ParseDuration(asked)
	status := "running"
	if left := time.Until(p.changes); left <= wait {
		wait, status = max(left, 0), "waiting"
	}
	time.Sleep(wait)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"status":"` + status + `"}`)), Request: r,
	}, nil
}

func TestWaitRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		wait, changes time.Duration
		polls         string
		status        gatehouse.RunStatus
		took          time.Duration
	}{
		"no wait": {0, time.Hour, "", gatehouse.RunRunning, 0},
		"a change in a later poll": {time.Hour, 150 * time.Second, "1m0s 1m0s 1m0s", gatehouse.RunWaiting,
			150 * time.Second},
		"a change in the first poll":     {time.Hour, time.Second, "1m0s", gatehouse.RunWaiting, time.Second},
		"no change, shorter than a poll": {30 * time.Second, time.Hour, "30s", gatehouse.RunRunning, 30 * time.Second},
		"no change, longer than a poll":  {90 * time.Second, time.Hour, "1m0s 30s", gatehouse.RunRunning, 90 * time.Second},
		"no change, a negative time":     {-time.Second, time.Hour, "", gatehouse.RunRunning, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				server := &polled{changes: begin.Add(tt.changes)}
				c, err := client.New("http://gatehouse", "k", client.WithHTTPClient(&http.Client{Transport: server}))
				if err != nil {
					t.Fatal(err)
				}
				r, err := c.WaitRun(t.Context(), "run_1", tt.wait)
				if err != nil || r.Status != tt.status || time.Since(begin) != tt.took ||
					strings.Join(server.polls, " ") != tt.polls {
					t.Errorf("%+v %v after %s, polls %q", r, err, time.Since(begin), server.polls)
				}
			})
		})
	}
}

// TestRetriesOfWorkers: after a connection error, the client repeats the calls whose repetition has no
// effect, and those with an Idempotency-Key. It does not repeat a lease.
func TestRetriesOfWorkers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		call  func(context.Context, *client.Client) error
		tries int
		keyed bool
	}{
		"lease": {func(ctx context.Context, c *client.Client) error {
			_, err := c.LeaseSteps(ctx, gatehouse.LeaseRequest{})
			return err
		}, 1, false},
		"heartbeat": {func(ctx context.Context, c *client.Client) error {
			_, err := c.HeartbeatStep(ctx, "stp_1", gatehouse.Heartbeat{})
			return err
		}, 2, false},
		"apply": {func(ctx context.Context, c *client.Client) error {
			_, _, err := c.ApplyWorkflow(ctx, "triage", "a: 1")
			return err
		}, 2, false},
		"complete": {func(ctx context.Context, c *client.Client) error {
			_, err := c.CompleteStep(ctx, "stp_1", gatehouse.StepResult{})
			return err
		}, 2, true},
		"fail": {func(ctx context.Context, c *client.Client) error {
			_, err := c.FailPush(ctx, "psh_1", gatehouse.PushFailure{})
			return err
		}, 2, true},
		"propose": {func(ctx context.Context, c *client.Client) error {
			_, err := c.ProposeStep(ctx, "stp_1", gatehouse.StepProposal{})
			return err
		}, 2, true},
		"start": {func(ctx context.Context, c *client.Client) error {
			_, _, err := c.StartRun(ctx, "triage", gatehouse.NewRun{})
			return err
		}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := start(t, drop, ok("{}"))
			if err := tt.call(t.Context(), c); (err == nil) != (tt.tries == 2) {
				t.Error(err)
			}
			tries, keys := s.count(), make(map[string]bool)
			for _, r := range s.seen {
				keys[r.Header.Get("Idempotency-Key")] = true
			}
			if tries != tt.tries || len(keys) != 1 || keys[""] == tt.keyed {
				t.Errorf("%d tries under the keys %v", tries, keys)
			}
		})
	}
}

func TestSourcesAreSentAsTheyAre(t *testing.T) {
	t.Parallel()
	type sent struct{ body, contentType string }
	arrived := make(chan sent, 1)
	_, c := start(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		arrived <- sent{string(b), r.Header.Get("Content-Type")}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"name":"triage"}`)
	})
	const source = "name: triage # é\n\"x\": '<>'\n"
	w, changed, err := c.ApplyWorkflow(t.Context(), "triage", source)
	if got := <-arrived; err != nil || !changed || w.Name != "triage" || got != (sent{source, "application/yaml"}) {
		t.Errorf("%+v %v %v: sent %q", w, changed, err, got)
	}
}
