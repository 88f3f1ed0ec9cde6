package api

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

func TestRunEvidence(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	bundle := testBundle()
	for _, query := range []string{"", "?format=archive"} {
		w := request{path: "/api/v1/runs/run_1/evidence" + query, key: "gth_aud"}.send(s)
		h := w.Header()
		if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), bundle.Archive) {
			t.Fatalf("%q: %d, %d bytes", query, w.Code, w.Body.Len())
		}
		for name, want := range map[string]string{
			"Content-Type": "application/zip", "ETag": `"` + bundle.SHA256 + `"`, "X-Evidence-Sha256": bundle.SHA256,
			"Content-Disposition": `attachment; filename="evidence-run_1.zip"`, "X-Content-Type-Options": "nosniff",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%q: %s is %q, want %q", query, name, got, want)
			}
		}
	}
	w := request{path: "/api/v1/runs/run_1/evidence?format=manifest", key: "gth_aud"}.send(s)
	if w.Header().Get("Content-Type") != "application/json" ||
		!strings.Contains(w.Body.String(), `"manifest":{"files":[]}`) ||
		!strings.Contains(w.Body.String(), bundle.SHA256) || w.Header().Get("Content-Disposition") != "" {
		t.Errorf("manifest: %v %s", w.Header(), w.Body)
	}
	wantCode(t, request{path: "/api/v1/runs/run_1/evidence?format=tar", key: "gth_aud"}.send(s), gatehouse.CodeInvalid)
	f.err = gatehouse.E(gatehouse.CodeTooLate, "the run has not ended")
	w = request{path: "/api/v1/runs/run_1/evidence", key: "gth_aud"}.send(s)
	wantCode(t, w, gatehouse.CodeTooLate)
	if w.Header().Get("ETag") != "" || w.Header().Get("Content-Disposition") != "" {
		t.Errorf("headers of an error: %v", w.Header())
	}
}

// TestClientChecksTheArchive gives the client an archive that does not match
// the stored hash.
func TestClientChecksTheArchive(t *testing.T) {
	t.Parallel()
	f := newFake()
	changed := testBundle()
	changed.Archive = append(bytes.Clone(changed.Archive), 'x')
	f.values["RunBundle"] = changed
	if _, err := newClient(t, newServer(t, f)).RunBundle(t.Context(), "run_1"); err == nil ||
		!strings.Contains(err.Error(), changed.SHA256) {
		t.Errorf("a changed archive passed: %v", err)
	}
}

func TestClientReportsItsEffectOnRuns(t *testing.T) {
	t.Parallel()
	c := newClient(t, newServer(t, newFake()))
	for ref, want := range map[string]bool{"known": true, "new": false} {
		if _, replayed, err := c.StartRun(t.Context(), "triage", gatehouse.NewRun{TriggerRef: ref}); err != nil ||
			replayed != want {
			t.Errorf("%s: replayed %v, %v", ref, replayed, err)
		}
	}
	for name, want := range map[string]bool{"triage": true, "unchanged": false} {
		if _, changed, err := c.ApplyWorkflow(t.Context(), name, "a: 1\n"); err != nil || changed != want {
			t.Errorf("%s: changed %v, %v", name, changed, err)
		}
	}
}

// TestClientRetriesOfApplying loses the first answer: the client applies the source
// again, since applying it twice makes one version.
func TestClientRetriesOfApplying(t *testing.T) {
	t.Parallel()
	f := newFake()
	server := httptest.NewServer(&lossyHandler{next: newServer(t, f), lose: 1})
	defer server.Close()
	c, err := client.New(server.URL, "gth_all", client.WithRetries(2, time.Millisecond))
	must(t, err)
	if _, _, err := c.ApplyWorkflow(t.Context(), "triage", "a: 1\n"); err != nil || f.count("ApplyWorkflow") != 2 {
		t.Errorf("%v after %d calls", err, f.count("ApplyWorkflow"))
	}
	// A lease whose answer was lost is not requested again automatically.
	lossy := httptest.NewServer(&lossyHandler{next: newServer(t, f), lose: 1})
	defer lossy.Close()
	if c, err = client.New(lossy.URL, "gth_all", client.WithRetries(2, time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.LeaseSteps(t.Context(), gatehouse.LeaseRequest{Tools: []string{"page"}}); err == nil ||
		f.count("LeaseSteps") != 1 {
		t.Errorf("%v after %d calls", err, f.count("LeaseSteps"))
	}
}

// TestLongPollsOutlastTheServer uses real connections: a wait may be much longer
// than the server's write time-out, and ends when the client leaves.
func TestLongPollsOutlastTheServer(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]request{
		"WaitAction":  {path: "/api/v1/proposed-actions/act_1?wait=60s"},
		"WaitRun":     {path: "/api/v1/runs/run_1?wait=60s"},
		"LeaseSteps":  {method: "POST", path: "/api/v1/steps/lease", body: `{"tools":["page"],"wait":"60s"}`},
		"LeasePushes": {method: "POST", path: "/api/v1/pushes/lease", body: `{"connectors":["crm"],"wait":"60s"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			entered, gone := make(chan struct{}, 2), make(chan struct{})
			var limit atomic.Int64
			limit.Store(int64(150 * time.Millisecond))
			f.hook = func(ctx context.Context, _ string) {
				entered <- struct{}{}
				select {
				case <-time.After(time.Duration(limit.Load())):
				case <-ctx.Done():
					close(gone)
				}
			}
			server := httptest.NewUnstartedServer(newServer(t, f))
			server.Config.WriteTimeout = 50 * time.Millisecond
			server.Start()
			defer server.Close()
			send := func(ctx context.Context) error {
				in := r
				in.key = "gth_all"
				req, err := http.NewRequestWithContext(ctx, in.http().Method, server.URL+in.path, strings.NewReader(in.body))
				must(t, err)
				req.Header = in.http().Header
				resp, err := server.Client().Do(req)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("answered %d", resp.StatusCode)
				}
				return nil
			}
			if err := send(t.Context()); err != nil {
				t.Fatalf("cut off: %v", err)
			}
			<-entered
			limit.Store(int64(time.Minute))
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				<-entered
				leave()
			}()
			if err := send(ctx); err == nil {
				t.Error("the request did not end with its context")
			}
			select {
			case <-gone:
			case <-time.After(time.Minute):
				t.Error("the use case still waits for a client that has gone")
			}
		})
	}
}

func TestRunBodies(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	for _, tt := range []struct {
		path, body string
		code       gatehouse.Code // "" for success
	}{
		{"cancel", "", ""},
		{"cancel", `{"reason":"no"}`, ""},
		{"cancel", `{"why":"no"}`, gatehouse.CodeMalformed},
		{"retry", "", ""},
		{"retry", "{}", ""},
		{"retry", `{"step":"x"}`, gatehouse.CodeMalformed},
		{"signals", `{"name":"closed"}`, ""},
		{"signals", `{"name":"closed","data":[1,2.50]}`, ""},
		{"signals", "", gatehouse.CodeMalformed},
	} {
		w := request{method: "POST", path: "/api/v1/runs/run_1/" + tt.path, key: "gth_bot", body: tt.body}.send(s)
		if tt.code != "" {
			wantCode(t, w, tt.code)
		} else if w.Code >= 300 {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, w.Code, w.Body)
		}
	}
	for _, query := range []string{"wait=61s", "wait=x", "version=1"} {
		wantCode(t, request{path: "/api/v1/runs/run_1?" + query, key: "gth_view"}.send(s), gatehouse.CodeInvalid)
	}
	wantCode(t, request{path: "/api/v1/runs?status=done", key: "gth_view"}.send(s), gatehouse.CodeInvalid)
}
