package api

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// delivery returns a delivery with a valid signature for the fake.
func delivery(body string) request {
	return request{
		method: "POST", path: "/api/v1/hooks/triage", body: body,
		header: map[string]string{"X-Signature": strconv.Itoa(len(body)),
			"Content-Type": "application/x-www-form-urlencoded"},
	}
}

func TestHookAnswers(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	const body = "payload=%7B\x00\xff\n"
	r := delivery(body)
	for event, want := range map[string]struct {
		status int
		body   string
	}{
		"": {http.StatusAccepted, `{"run_id":"run_1"}`}, "again": {http.StatusOK, `{"run_id":"run_1"}`},
	} {
		r.header["X-Event"] = event
		w := r.send(s)
		if w.Code != want.status || w.Body.String() != want.body || w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%q: %d %s %v", event, w.Code, w.Body, w.Header())
		}
	}
	if args := f.last(t, "Receive").args; args[0] != "default" || args[1] != "triage" || args[2] != body {
		t.Errorf("received %q", args)
	}
	r.path += "?tenant=default"
	if w := r.send(s); w.Code >= 300 {
		t.Errorf("with a tenant: %d %s", w.Code, w.Body)
	}
	// A key has no effect: it is not even checked.
	r.key = "gth_nobody"
	if w := r.send(s); w.Code >= 300 {
		t.Errorf("with an unknown key: %d %s", w.Code, w.Body)
	}
}

func TestHookRefusals(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	unsigned := delivery("{}")
	delete(unsigned.header, "X-Signature")
	wantCode(t, unsigned.send(s), gatehouse.CodeBadSignature)
	large := delivery(strings.Repeat("x", MaxBody+1))
	wantCode(t, large.send(s), gatehouse.CodeBodyTooLarge)
	if w := delivery(strings.Repeat("x", MaxBody)).send(s); w.Code != http.StatusAccepted {
		t.Errorf("a body of the greatest size: %d", w.Code)
	}
	for _, query := range []string{"?key=x", "?tenant=a&tenant=b"} {
		r := delivery("{}")
		r.path += query
		wantCode(t, r.send(s), gatehouse.CodeInvalid)
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "HEAD"} {
		r := delivery("{}")
		r.method = method
		if w := r.send(s); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
	// Other errors are reported as usual, without their causes.
	f.err = errors.New("secret: the disk is full")
	w := delivery("{}").send(s)
	wantCode(t, w, gatehouse.CodeInternal)
	if strings.Contains(w.Body.String(), "secret") {
		t.Errorf("leaked: %s", w.Body)
	}
}

// TestHookNamesCannotBeProbed compares the answers for whatever does not
// exist. They may differ only in the requested path.
func TestHookNamesCannotBeProbed(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	answers := make(map[string]bool)
	for _, path := range []string{"/hooks/other", "/hooks/triage?tenant=acme", "/hooks/triage?tenant=no%00such",
		"/hooks/a%2Fb", "/hooks/%20"} {
		r := delivery("{}")
		r.path = Prefix + path
		r.header["X-Request-Id"] = "same"
		w := r.send(s)
		p := wantCode(t, w, gatehouse.CodeNotFound)
		delete(p, "instance")
		answers[gatehouse.Quote(string(gatehouse.MustJSON(p)))] = true
	}
	if len(answers) != 1 {
		t.Errorf("%d different answers: %v", len(answers), answers)
	}
	if n := f.count("Receive"); n != 2 { // invalid names are not looked up
		t.Errorf("Receive ran %d times", n)
	}
}

func TestHookLimits(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f, func(c *Config) { c.HooksPerSecond, c.HookBurst = 0.001, 2 })
	send := func(from, workflow string) int {
		r := delivery("{}")
		r.path = Prefix + "/hooks/" + workflow
		req := r.http()
		req.RemoteAddr = from
		w := newRecorder()
		s.ServeHTTP(w, req)
		if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		return w.Code
	}
	for i, want := range []struct {
		from, workflow string
		status         int
	}{
		{"192.0.2.1:1", "triage", 202},
		{"192.0.2.1:2", "triage", 202},
		{"192.0.2.1:3", "triage", 429},             // whatever the port
		{"192.0.2.2:1", "triage", 202},             // another address
		{"192.0.2.1:1", "other", 404},              // another workflow
		{"192.0.2.1:1", "x1", 404},                 // …
		{"192.0.2.1:1", "x2", 404},                 // …
		{"192.0.2.1:1", "x3", 404},                 // …
		{"192.0.2.1:1", "x4", 404},                 // the eighth of the address
		{"192.0.2.1:1", "x5", 429},                 // invented names gain nothing
		{"[::ffff:192.0.2.1]:1", "x6", 429},        // nor does another form of the address
		{"[2001:db8::1]:1", "triage", 202},         // one sender
		{"[2001:db8::2%eth0]:1", "triage", 202},    // has a whole /64
		{"[2001:db8::ffff]:1", "triage", 429},      // …
		{"[2001:db8:0:1::1]:1", "triage", 202},     // another sender
		{"@", "triage", 202}, {"@", "triage", 202}, // a Unix socket
		{"@", "triage", 429},
	} {
		if got := send(want.from, want.workflow); got != want.status {
			t.Errorf("%d: %s to %s: %d, want %d", i, want.from, want.workflow, got, want.status)
		}
	}
	unbounded := newServer(t, newFake(), func(c *Config) { c.HooksPerSecond = -1 })
	for range 2000 {
		if w := delivery("{}").send(unbounded); w.Code != http.StatusAccepted {
			t.Fatalf("without a bound: %d", w.Code)
		}
	}
}

func TestHookIsMeasured(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	delivery("{}").send(s)
	get := delivery("{}")
	get.method = "GET"
	get.send(s)
	text := request{path: "/metrics", key: "gth_aud"}.send(s).Body.String()
	want := `gatehouse_http_request_duration_seconds_count{method="POST",route="/hooks/{workflow}",status="202"} 1`
	if !strings.Contains(text, want) {
		t.Errorf("/metrics lacks %s", want)
	}
	if strings.Contains(text, `route="/hooks/{workflow}",status="405"`) {
		t.Error("a request that is not a delivery is counted as one")
	}
}

func TestHookIsDocumented(t *testing.T) {
	t.Parallel()
	doc, _ := readDocument(t, newServer(t, newFake()))
	op := doc.Paths[Prefix+"/hooks/{workflow}"]["post"]
	if op.OperationID != "receiveHook" || op.Security == nil || len(op.Security) != 0 || op.RequestBody == nil ||
		op.Parameters[0].Name != "workflow" {
		t.Errorf("%+v", op)
	}
	for status, want := range map[string]string{"202": "", "200": "", "401": "bad_signature", "404": "not_found",
		"413": "body_too_large", "429": "rate_limited"} {
		if r, ok := op.Responses[status]; !ok || strings.Join(r.Codes, " ") != want {
			t.Errorf("%s: %v", status, r.Codes)
		}
	}
}

// TestSlowDeliveries: a sender that does not send its body is cut off.
func TestSlowDeliveries(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f, func(c *Config) { c.BodyTimeout = 20 * time.Millisecond })
	server := httptest.NewServer(s)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	fmt.Fprint(conn, "POST /api/v1/hooks/triage HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest || f.count("Receive") != 0 {
		t.Errorf("%d, and Receive ran %d times", resp.StatusCode, f.count("Receive"))
	}
}

// TestWithoutRuns: without the services, their routes do not exist.
func TestWithoutRuns(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake(), func(c *Config) { c.Runs, c.Workers, c.Hooks = nil, nil, nil })
	for _, path := range []string{"/runs", "/workflows", "/steps/lease", "/pushes/lease", "/hooks/triage"} {
		r := request{method: "POST", path: Prefix + path, key: "gth_all", body: "{}"}
		wantCode(t, r.send(s), gatehouse.CodeNotFound)
	}
	doc, err := s.Document()
	must(t, err)
	for _, path := range []string{"/runs", "/workflows", "/steps", "/hooks/{workflow}"} {
		if strings.Contains(string(doc), Prefix+path) {
			t.Errorf("the document has %s", path)
		}
	}
}

// TestHookRates: a workflow's own rate applies to it, and an address may send
// four times the largest rate in total.
func TestHookRates(t *testing.T) {
	t.Parallel()
	l := newHookLimits(HookRate{PerSecond: 0.001, Burst: 2}, map[string]HookRate{
		"busy": {PerSecond: 0.002, Burst: 5}, "rare": {Burst: 1}, "open": {PerSecond: 0.001},
	})
	for workflow, most := range map[string]int{"busy": 5, "rare": 1, "open": 1, "other": 2} {
		for i := range most {
			if err := l.take("192.0.2.9", workflow); err != nil {
				t.Errorf("%s: delivery %d: %v", workflow, i, err)
			}
		}
		if err := l.take("192.0.2.9", workflow); gatehouse.CodeOf(err) != gatehouse.CodeRateLimited {
			t.Errorf("%s: delivery %d: %v", workflow, most, err)
		}
	}
	// Nine were allowed and four refused so far, of twenty in total.
	for range 7 {
		_ = l.take("192.0.2.9", "other")
	}
	if err := l.take("192.0.2.9", "fresh"); gatehouse.CodeOf(err) != gatehouse.CodeRateLimited {
		t.Errorf("the bound of the address: %v", err)
	}
	if l := newHookLimits(HookRate{}, map[string]HookRate{"free": {PerSecond: -1}}); l.all != nil ||
		l.own["free"] != nil || l.one.most != 4*time.Second {
		t.Errorf("without a bound for one: %+v", l)
	}
}
