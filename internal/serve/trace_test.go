package serve

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

// receiver accepts spans as a collector does.
type receiver struct {
	mu    sync.Mutex
	spans []*tracepb.Span
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	raw, err := io.ReadAll(body)
	var req collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(raw, &req)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint("not spans: ", r.URL.Path, err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range req.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

// of returns the spans of a trace by name.
func (c *receiver) of(trace string) map[string]*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]*tracepb.Span{}
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == trace {
			found[s.Name] = s
		}
	}
	return found
}

func attr(s *tracepb.Span, key string) string {
	for _, kv := range s.GetAttributes() {
		if kv.Key == key {
			return kv.Value.GetStringValue()
		}
	}
	return ""
}

// One trace follows an action from its proposal to its receipt; its first span
// links to the request that proposed it, in the trace of the caller.
func TestTraceOfAnAction(t *testing.T) {
	spans := &receiver{}
	sink := httptest.NewServer(spans)
	defer sink.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.URL)
	target := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer target.Close()

	n := openNode(t, servetest.Config(t, fmt.Sprintf(`
connectors: {crm: {type: http, base_url: %q, allow_private: true, operations: {update: {method: POST, path: "/x",
  class: A}}}}
dispatch: {hold: 0s}`, target.URL)))
	creds := servetest.Bootstrap(t, n.Gate)
	must(t, n.Gate.EnsurePolicies(t.Context()))
	bot := servetest.NewPrincipal(t, n.Gate, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	s := startServer(t, n)
	const callers = "0af7651916cd43dd8448eb211c80319c"
	agent, err := client.New(s.URL, bot.Key,
		client.WithHTTPClient(&http.Client{Transport: traceparent("00-" + callers + "-b7ad6b7169203331-01")}))
	must(t, err)
	a := servetest.Propose(t, agent, "SKU-1")
	ana := servetest.MustClient(t, s.URL, *creds)
	if _, err := ana.Decide(t.Context(), a.ID, gatehouse.Decision{Decision: gatehouse.Reject}); err != nil {
		t.Fatal(err)
	}
	// The second one is approved and carried out.
	b := servetest.Propose(t, agent, "SKU-2")
	if _, err := ana.Decide(t.Context(), b.ID, gatehouse.Decision{Decision: gatehouse.Approve,
		Digest: b.Digest}); err != nil {
		t.Fatal(err)
	}
	done, err := ana.WaitAction(t.Context(), b.ID, time.Minute, gatehouse.UntilFinished)
	if err != nil || done.Status != gatehouse.StatusApplied {
		t.Fatalf("%+v, %v", done, err)
	}
	if err := s.Close(); err != nil { // sends the rest
		t.Fatal(err)
	}

	if got := spans.of(telemetry.TraceID(a.ID).String()); attr(got["decide"], "gatehouse.result") != gatehouse.Decided ||
		got["dispatch"] != nil {
		t.Errorf("the rejected action has %v", got)
	}
	got := spans.of(telemetry.TraceID(b.ID).String())
	for _, name := range []string{"propose", "decide", "dispatch", "call"} {
		if got[name] == nil {
			t.Fatalf("no span %s in %v", name, got)
		}
		if attr(got[name], "gatehouse.action") != b.ID || attr(got[name], "gatehouse.tenant") != "default" {
			t.Errorf("%s is not about the action: %v", name, got[name])
		}
	}
	root := got["propose"]
	if len(root.ParentSpanId) != 0 || !slices.Equal(got["decide"].ParentSpanId, root.SpanId) ||
		!slices.Equal(got["dispatch"].ParentSpanId, root.SpanId) ||
		!slices.Equal(got["call"].ParentSpanId, got["dispatch"].SpanId) {
		t.Error("the spans are not connected")
	}
	if attr(got["call"], "gatehouse.outcome") != "applied" || attr(got["dispatch"], "gatehouse.outcome") != "applied" {
		t.Errorf("the result: %v, %v", got["call"], got["dispatch"])
	}
	request := spans.of(callers)["POST /api/v1/proposed-actions"]
	if request == nil {
		t.Fatalf("the caller's trace has %v", spans.of(callers))
	}
	if l := root.Links; len(l) != 1 || hex.EncodeToString(l[0].TraceId) != callers {
		t.Errorf("the proposal links to %v", l)
	}
}

// TestTokensStaySecret uses a mailed link in every way, right and wrong: its token is in no span, log
// line, metric or audit entry, and no page sends it on as a Referer.
func TestTokensStaySecret(t *testing.T) {
	spans := &receiver{}
	sink := httptest.NewServer(spans)
	defer sink.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.URL)
	cfg := servetest.Config(t, fmt.Sprintf(`
connectors: {crm: {type: http, base_url: "http://127.0.0.1:9", allow_private: true,
  operations: {update: {method: POST, path: "/x"}}}}
links: {master_key: %q}
sign_in: {public_url: "https://gate.example"}`, ring.NewMasterKey()))
	var logs lockedBuffer
	n, err := Open(t.Context(), t.TempDir(), cfg,
		slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	must(t, err)
	creds := servetest.Bootstrap(t, n.Gate)
	must(t, n.Gate.EnsurePolicies(t.Context()))
	admin := servetest.CallerContext(t, n.Gate, creds)
	s := startServer(t, n)
	agent := servetest.NewClient(t, n.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	a := servetest.Propose(t, agent, "SKU-1")
	ana, err := n.Gate.CreatePrincipal(admin, gatehouse.NewPrincipal{
		Name: "ana", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
	})
	must(t, err)
	self, err := n.Gate.Authenticate(t.Context(), ana.Key)
	must(t, err)
	l, err := n.Gate.ReviewLink(t.Context(), a, self)
	if err != nil || l == nil {
		t.Fatalf("no link: %v", err)
	}
	const callers = "0af7651916cd43dd8448eb211c80319c"
	caller := &http.Client{Transport: traceparent("00-" + callers + "-b7ad6b7169203331-01")}
	query := "?token=" + l.Token
	send := func(method, path, key string) {
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
		must(t, err)
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		res, err := caller.Do(r)
		must(t, err)
		defer res.Body.Close()
		if got := res.Header.Get("Referrer-Policy"); got != "no-referrer" && !strings.HasSuffix(path, "/nonsense"+query) {
			t.Errorf("%s %s: Referrer-Policy %q", method, path[:20], got)
		}
	}
	pages := []string{
		gatehouse.ReviewPath(l.ID, ""), gatehouse.ReviewPath(l.ID, gatehouse.Approve),
		gatehouse.ReviewPath(l.ID, gatehouse.Reject), "/api/v1/reviews/" + l.ID, "/api/v1/reviews/" + l.ID + "/approve",
		"/api/v1/reviews/" + l.ID + "/nonsense",
		"/nowhere",
	}
	for _, page := range pages {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "DELETE"} {
			send(method, page+query, "")
		}
	}
	send("POST", "/api/v1/reviews/"+l.ID+"/reject"+query+"&reason=no", ana.Key)
	done, err := n.Gate.FindAction(admin, a.ID)
	if err != nil || done.Status != gatehouse.StatusRejected || done.DecidedVia != gatehouse.ViaLink {
		t.Fatalf("the link decided nothing: %+v, %v", done, err)
	}
	metrics, err := http.Get(s.URL + "/metrics")
	must(t, err)
	counted, err := io.ReadAll(metrics.Body)
	metrics.Body.Close()
	must(t, err)
	var log strings.Builder
	for end := time.Now().Add(time.Minute); !strings.Contains(log.String(), "hitl.rejected"); {
		if time.Now().After(end) {
			t.Fatal("the decision's entry has no number")
		}
		time.Sleep(20 * time.Millisecond)
		log.Reset()
		entries, err := n.Gate.ListEntries(admin, 0, 200)
		must(t, err)
		for _, e := range entries {
			log.WriteString(string(e.Body))
		}
	}
	if err := s.Close(); err != nil { // sends the spans
		t.Fatal(err)
	}
	spans.mu.Lock()
	defer spans.mu.Unlock()
	if len(spans.spans) < len(pages) {
		t.Errorf("%d spans", len(spans.spans))
	}
	for where, text := range map[string]string{
		"the spans have": fmt.Sprint(spans.spans), "the logs have": logs.String(), "the metrics have": string(counted),
		"the log has": log.String(),
	} {
		if strings.Contains(text, l.Token[:40]) || strings.Contains(text, l.Token[len(l.Token)-40:]) {
			t.Errorf("%s the token", where)
		}
	}
}

// lockedBuffer collects logs.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// traceparent adds the header to each request.
type traceparent string

func (h traceparent) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("traceparent", string(h))
	return http.DefaultTransport.RoundTrip(r)
}

// Without the variables nothing is traced.
func TestTracingIsOff(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
	tracing, err := telemetry.NewTracing(t.Context(), "0")
	if err != nil || tracing != nil {
		t.Fatalf("%v, %v", tracing, err)
	}
	handler := http.NotFoundHandler()
	if got := tracing.Requests(handler); fmt.Sprintf("%p", got) != fmt.Sprintf("%p", handler) {
		t.Error("requests are wrapped")
	}
	if err := tracing.Close(); err != nil {
		t.Error(err)
	}
}
