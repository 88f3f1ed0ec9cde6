package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// answers is a transport that answers each request as a server would.
type answers func(*http.Request) (status int, header http.Header, body string)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header, body := f(r)
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestGuardKeepsItsPatience: a call does not outlast its patience because the server asks for a longer pause.
func TestGuardKeepsItsPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := New("http://gatehouse", "k", WithRetries(0, time.Millisecond), WithHTTPClient(&http.Client{
			Transport: answers(func(r *http.Request) (int, http.Header, string) {
				if r.Method == http.MethodPost { // a request for a lease
					return http.StatusServiceUnavailable,
						http.Header{"Retry-After": {"3600"}, "Content-Type": {"application/problem+json"}}, `{"code":"busy"}`
				}
				return http.StatusOK, http.Header{"Content-Type": {"application/json"}},
					`{"id":"act_1","connector":"x","status":"approved"}`
			}),
		}))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		a := &gatehouse.Action{ID: "act_1", Status: gatehouse.StatusApproved}
		got, _, err := NewGuard(c, 10*time.Second).settle(t.Context(), a)
		if err != nil || got.Status != gatehouse.StatusApproved || time.Since(began) > 11*time.Second {
			t.Errorf("after %s: %+v, %v", time.Since(began), got, err)
		}
	})
}

func busy() (int, http.Header, string) {
	return http.StatusServiceUnavailable, http.Header{"Content-Type": {"application/problem+json"}}, `{"code":"busy"}`
}

// TestGuardThatMayNotWork: a call that may not lease asks for a lease once, and waits; one that may not report ends.
func TestGuardThatMayNotWork(t *testing.T) {
	t.Parallel()
	for refused, want := range map[string]gatehouse.Code{"lease": "", "fail": gatehouse.CodeRoleRequired} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, leases := time.Now(), 0
				c, err := New("http://gatehouse", "k", WithHTTPClient(&http.Client{
					Transport: answers(func(r *http.Request) (int, http.Header, string) {
						body := `{"id":"act_1","connector":"x","status":"approved"}`
						if strings.HasSuffix(r.URL.Path, "/lease") {
							leases++
							body = `[{"push":{"id":"psh_1","connector":"x"},"lease":{"generation":1}}]`
						}
						if strings.HasSuffix(r.URL.Path, "/"+refused) {
							return http.StatusForbidden, http.Header{"Content-Type": {"application/problem+json"}},
								`{"code":"role_required"}`
						}
						return http.StatusOK, http.Header{"Content-Type": {"application/json"}}, body
					}),
				}))
				if err != nil {
					t.Fatal(err)
				}
				a := &gatehouse.Action{ID: "act_1", Status: gatehouse.StatusApproved}
				_, _, err = NewGuard(c, 10*time.Second).settle(t.Context(), a)
				waited := time.Since(began) >= 10*time.Second
				if gatehouse.CodeOf(err) != want || leases != 1 || waited != (want == "") {
					t.Errorf("after %s and %d requests for a lease: %v", time.Since(began), leases, err)
				}
			})
		})
	}
}

// TestGuardLosesItsLease: while the server does not answer, the function's context ends with the lease.
func TestGuardLosesItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := New("http://gatehouse", "k", WithRetries(0, time.Millisecond), WithHTTPClient(&http.Client{
			Transport: answers(func(*http.Request) (int, http.Header, string) { return busy() }),
		}))
		if err != nil {
			t.Fatal(err)
		}
		g := NewGuard(c, 0)
		var cause error
		var ran time.Duration
		if _, err := Guarded(g, GuardTool[struct{}]{
			ActionType: "a", Connector: "c", Operation: "o",
			Target: func(struct{}) gatehouse.Target { return gatehouse.Target{} },
		}, func(ctx context.Context, _ struct{}) (int, error) {
			began := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			cause, ran = context.Cause(ctx), time.Since(began)
			return 0, cause
		}); err != nil {
			t.Fatal(err)
		}
		push := &gatehouse.LeasedPush{Push: &gatehouse.Push{Connector: "c"}, Operation: "o", ProposedChange: "{}"}
		_ = g.carryOut(t.Context(), push, nil)
		if !errors.Is(cause, ErrLeaseLost) || ran > gatehouse.DefaultStepLease {
			t.Errorf("the context ended after %s: %v", ran, cause)
		}
	})
}

// TestGuardReportsAfterAnOutage: the result of a function is reported as soon as the server answers again. After the
// end of the lease, the report is not repeated.
func TestGuardReportsAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outage time.Duration
		failed error
		want   gatehouse.Code
	}{
		"a result": {45 * time.Second, nil, ""}, "a failure": {45 * time.Second, errors.New("broke"), ""},
		"a longer outage": {24 * time.Hour, nil, gatehouse.CodeBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				reports := 0
				client, err := New("http://gatehouse", "k", WithRetries(0, time.Millisecond), WithHTTPClient(&http.Client{
					Transport: answers(func(r *http.Request) (int, http.Header, string) {
						if !strings.HasSuffix(r.URL.Path, "/heartbeat") {
							reports++
						}
						if time.Since(began) < c.outage {
							return busy()
						}
						return http.StatusOK, nil, "{}"
					}),
				}))
				if err != nil {
					t.Fatal(err)
				}
				g := NewGuard(client, 0)
				if _, err := Guarded(g, GuardTool[struct{}]{
					ActionType: "a", Connector: "c", Operation: "o",
					Target: func(struct{}) gatehouse.Target { return gatehouse.Target{} },
				}, func(context.Context, struct{}) (int, error) { return 0, c.failed }); err != nil {
					t.Fatal(err)
				}
				push := &gatehouse.LeasedPush{Push: &gatehouse.Push{Connector: "c"}, Operation: "o", ProposedChange: "{}"}
				if err := g.carryOut(t.Context(), push, nil); gatehouse.CodeOf(err) != c.want || reports < 2 {
					t.Errorf("after %d reports: %v", reports, err)
				}
			})
		})
	}
}

// TestGuardGivesUpOnItsReport: while the server extends the lease and answers no report, the report is repeated for
// one more lease at most; a report that a gateway forbids is sent once.
func TestGuardGivesUpOnItsReport(t *testing.T) {
	t.Parallel()
	for status, c := range map[int]struct {
		within time.Duration
		once   bool
	}{
		http.StatusServiceUnavailable: {gatehouse.DefaultStepLease + maxPause, false},
		http.StatusForbidden:          {0, true},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				began, reports := time.Now(), 0
				client, err := New("http://gatehouse", "k", WithRetries(0, time.Millisecond), WithHTTPClient(&http.Client{
					Transport: answers(func(r *http.Request) (int, http.Header, string) {
						if strings.HasSuffix(r.URL.Path, "/heartbeat") {
							return http.StatusOK, http.Header{"Content-Type": {"application/json"}}, "{}"
						}
						reports++
						return status, http.Header{"Content-Type": {"text/html"}}, "<h1>No</h1>"
					}),
				}))
				if err != nil {
					t.Fatal(err)
				}
				push := &gatehouse.LeasedPush{Push: &gatehouse.Push{Connector: "c"}, Operation: "o", ProposedChange: "{}"}
				err = NewGuard(client, 0).carryOut(ctx, push, nil)
				if took := time.Since(began); err == nil || took > c.within || (reports == 1) != c.once {
					t.Errorf("after %s and %d reports: %v", took, reports, err)
				}
			})
		})
	}
}

// TestWorkerEndsInAnOutage: a worker that is told to stop does not repeat a report beyond the lease.
func TestWorkerEndsInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		began, leased := time.Now(), false
		problem := http.Header{"Content-Type": {"application/problem+json"}}
		c, err := New("http://gatehouse", "k", WithRetries(0, time.Millisecond), WithHTTPClient(&http.Client{
			Transport: answers(func(r *http.Request) (int, http.Header, string) {
				switch {
				case !leased:
					leased = true
					return http.StatusOK, http.Header{"Content-Type": {"application/json"}},
						`[{"step":{"id":"stp_1"},"lease":{"generation":1}}]`
				case time.Since(began) > time.Hour: // ends the test
					return http.StatusConflict, problem, `{"code":"lease_lost"}`
				}
				return busy()
			}),
		}))
		if err != nil {
			t.Fatal(err)
		}
		w := Worker{Client: c, Tools: []string{"page"}, Logger: slog.New(slog.DiscardHandler),
			Handler: func(context.Context, *gatehouse.LeasedStep) (gatehouse.JSON, error) {
				stop()
				return "true", nil
			}}
		if err := w.Run(ctx); err != nil || ctx.Err() == nil || time.Since(began) > 2*gatehouse.DefaultStepLease {
			t.Errorf("the worker ended after %s: %v", time.Since(began), err)
		}
	})
}

// TestFailuresAreReported: whatever the text of an error is, the server accepts the report of it.
func TestFailuresAreReported(t *testing.T) {
	t.Parallel()
	for name, failed := range map[string]error{
		"empty": errors.New(""), "long": errors.New(strings.Repeat("ö", gatehouse.MaxNotesBytes)),
		"NUL": errors.New("a\x00b"), "not UTF-8": errors.New(strings.Repeat("\xff", gatehouse.MaxNotesBytes)),
		"no effect": NoEffect(errors.New("\x00"), false),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var push gatehouse.PushFailure
			var step gatehouse.StepFailure
			c, err := New("http://gatehouse", "k", WithHTTPClient(&http.Client{
				Transport: answers(func(r *http.Request) (int, http.Header, string) {
					var into any = &step
					if strings.Contains(r.URL.Path, "/pushes/") {
						into = &push
					}
					if err := json.NewDecoder(r.Body).Decode(into); err != nil {
						t.Error(err)
					}
					return http.StatusOK, nil, "{}"
				}),
			}))
			if err != nil {
				t.Fatal(err)
			}
			g := NewGuard(c, 0)
			if _, err := Guarded(g, GuardTool[struct{}]{
				ActionType: "a", Connector: "c", Operation: "o",
				Target: func(struct{}) gatehouse.Target { return gatehouse.Target{} },
			}, func(context.Context, struct{}) (int, error) { return 0, failed }); err != nil {
				t.Fatal(err)
			}
			lease := gatehouse.Lease{Generation: 1}
			leased := &gatehouse.LeasedPush{
				Push: &gatehouse.Push{ID: "psh_1", Connector: "c"}, Operation: "o", ProposedChange: "{}", Lease: lease,
			}
			if err := errors.Join(g.carryOut(t.Context(), leased, nil), push.Validate()); err != nil {
				t.Errorf("a push: %v", err)
			}
			w := &Worker{Client: c}
			s := &gatehouse.LeasedStep{Step: &gatehouse.Step{ID: "stp_1"}, Lease: lease}
			if err := errors.Join(w.report(t.Context(), s, "", failed, nil), step.Validate()); err != nil {
				t.Errorf("a step: %v", err)
			}
		})
	}
}
