package mcp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func TestFrontRefuses(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	session, server := s.begin("a")
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	call := modernFrame("1", "tools/call", `{"name":"move","arguments":{"to":"x"}}`)
	before := len(server.frames())
	for name, c := range map[string]struct {
		method, frame string
		header        []string
		status        int
		says          string
	}{
		"no key":      {"POST", ping, []string{"Authorization", ""}, 401, "bearer"},
		"basic":       {"POST", ping, []string{"Authorization", "Basic YTph"}, 401, "bearer"},
		"unknown key": {"POST", ping, []string{"Authorization", "Bearer x"}, 401, "does not know"},
		"long key":    {"POST", ping, []string{"Authorization", "Bearer " + strings.Repeat("a", 600)}, 401, "bearer"},
		"roles":       {"POST", ping, []string{"Authorization", "Bearer reader"}, 403, "needs proposer and"},
		"tenant":      {"POST", ping, []string{"Authorization", "Bearer foreign"}, 403, "another tenant"},
		"origin": {"POST", ping, []string{sessionHeader, session, "Origin", "https://evil.example"}, 403,
			"Origin"},
		"null origin": {"POST", ping, []string{sessionHeader, session, "Origin", "null"}, 403, "Origin"},
		"two origins": {"POST", ping, []string{sessionHeader, session, "Origin", s.url, "Origin", "https://e.example"},
			403, "Origin"},
		"origin of a get": {"GET", "", []string{sessionHeader, session, "Origin", "https://evil.example"}, 403, "Origin"},
		"fetched":         {"POST", ping, []string{sessionHeader, session, "Sec-Fetch-Site", "cross-site"}, 403, "site"},
		"rebound":         {"POST", ping, []string{sessionHeader, session, "Host", "evil.example:80"}, 403, "Host"},
		"rebound get":     {"GET", "", []string{sessionHeader, session, "Host", "evil.example"}, 403, "Host"},
		"put":             {"PUT", ping, nil, 405, "method"},
		"form": {"POST", ping, []string{sessionHeader, session, "Content-Type", "text/plain"}, 415,
			"Content-Type"},
		"accept": {"POST", ping, []string{sessionHeader, session, "Accept", "application/json"}, 406, "Accept"},
		"huge": {"POST",
			`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 4<<20) + `"}}`,
			[]string{sessionHeader, session}, 413, "4 MiB"},
		"no json":         {"POST", "{", []string{sessionHeader, session}, 400, "-32700"},
		"empty":           {"POST", "", []string{sessionHeader, session}, 400, "-32700"},
		"batch":           {"POST", "[" + ping + "]", []string{sessionHeader, session}, 400, "batches"},
		"no session":      {"POST", ping, nil, 400, "no session"},
		"unknown session": {"POST", ping, []string{sessionHeader, "x"}, 404, "no such session"},
		"another's session": {"POST", ping, []string{sessionHeader, session, "Authorization", "Bearer b"}, 404,
			"no such session"},
		"another's stream": {"GET", "", []string{sessionHeader, session, "Authorization", "Bearer b"}, 404,
			"no such session"},
		"another's end": {"DELETE", "", []string{sessionHeader, session, "Authorization", "Bearer b"}, 404,
			"no such session"},
		"begun":             {"POST", hello, []string{sessionHeader, session}, 400, "begun already"},
		"version":           {"POST", ping, []string{sessionHeader, session, versionHeader, "1999-01-01"}, 400, "version"},
		"modern in session": {"POST", modernFrame("1", "ping", `{}`), []string{sessionHeader, session}, 400, "version"},
		"no id":             {"POST", `{"jsonrpc":"2.0","method":"initialize"}`, nil, 400, "no id"},
		"no stream":         {"GET", "", nil, 405, "session"},
		"no version":        {"POST", ping, []string{versionHeader, "2026-07-28"}, 400, "-32602"},
		"other version": {"POST", call,
			[]string{versionHeader, "2027-01-01", methodHeader, "tools/call", nameHeader, "move"}, 400, "-32020"},
		"no headers":   {"POST", call, nil, 400, "-32020"},
		"other method": {"POST", call, modernHeader("ping", "move"), 400, "-32020"},
		"other name":   {"POST", call, modernHeader("tools/call", "write"), 400, "-32020"},
		"encoded method": {"POST", call, modernHeader("=?base64?dG9vbHMvY2FsbA==?=", "move"), 400,
			"Mcp-Method differs"},
		"two names": {"POST", call,
			append(modernHeader("tools/call", "move"), nameHeader, "write", "Mcp-Param-To", "x"), 400, "-32020"},
		"no argument": {"POST", call, modernHeader("tools/call", "move"), 400, "Mcp-Param-To"},
		"other argument": {"POST", call, append(modernHeader("tools/call", "move"), "Mcp-Param-To", "y"), 400,
			"Mcp-Param-To"},
		"modern response": {"POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, []string{versionHeader, "2026-07-28"}, 400,
			"no request"},
		"unknown method": {"POST", modernFrame("1", "vendor/x", `{}`), modernHeader("vendor/x", ""), 404, "-32601"},
	} {
		got := s.do(c.method, c.frame, c.header...)
		if got.status != c.status || !strings.Contains(got.body, c.says) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := server.frames()[before:]; len(got) > 0 {
		t.Errorf("the server got %q", got)
	}
	for name, header := range map[string][]string{
		"own origin": {"Origin", s.url}, "own name": {"Host", "MCP.example.com:443", "Origin", "https://mcp.example.com:443"},
		"address": {"Host", "192.0.2.1"}, "version": {versionHeader, "2025-06-18"}, "any": {"Accept", "*/*"},
	} {
		if got := s.do("POST", ping, append(header, sessionHeader, session)...); got.status != 200 ||
			got.body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := s.do("POST", ping, sessionHeader, session, "Accept",
		"text/event-stream, application/json"); got.header.Get("Content-Type") != streamType ||
		got.body != "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n" {
		t.Errorf("a stream was preferred: %+v", got)
	}
	if s.gate.proposals > 0 {
		t.Errorf("%d proposals", s.gate.proposals)
	}
}

// hands is the gate for a worker's key.
type hands struct {
	Gate
	leased chan gatehouse.PushLeaseRequest
	err    error
	tenant string
	role   gatehouse.Role
}

func (h *hands) WhoAmI(context.Context) (*gatehouse.Principal, error) {
	return &gatehouse.Principal{ID: "prn_hands", Tenant: h.tenant, Roles: []gatehouse.Role{h.role}}, h.err
}

func (h *hands) LeasePushes(ctx context.Context, r gatehouse.PushLeaseRequest) ([]gatehouse.LeasedPush, error) {
	select {
	case h.leased <- r:
	default:
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestFrontWorker: the worker's key leases the actions of each agent. A worker that cannot be used is no fault of the
// agent's key.
func TestFrontWorker(t *testing.T) {
	t.Parallel()
	h := &hands{leased: make(chan gatehouse.PushLeaseRequest, 1), tenant: "default", role: gatehouse.RoleWorker}
	s := newStage(t, func(f *Front) { f.Worker = h })
	s.begin("a")
	if r := <-h.leased; r.ProposedBy != "prn_a" || r.Own {
		t.Errorf("leased %+v", r)
	}
	for name, c := range map[string]struct {
		worker *hands
		status int
		says   string
	}{
		"role":    {&hands{tenant: "default", role: gatehouse.RoleProposer}, 503, "cannot carry out calls"},
		"unknown": {&hands{err: gatehouse.E(gatehouse.CodeUnauthenticated, "unknown key")}, 503, "cannot carry out calls"},
		"tenant":  {&hands{tenant: "other", role: gatehouse.RoleWorker}, 403, "another tenant"},
	} {
		s := newStage(t, func(f *Front) { f.Worker = c.worker })
		if got := s.do("POST", hello); got.status != c.status || !strings.Contains(got.body, c.says) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// TestBar: refusals that a repetition does not change bar calls, until a lease succeeds.
func TestBar(t *testing.T) {
	t.Parallel()
	e := newExecuted()
	for _, err := range []error{
		nil, io.EOF, gatehouse.E(gatehouse.CodeBusy, "later"), gatehouse.E(gatehouse.CodeRateLimited, "later"),
	} {
		if e.bar(err); e.isBarred() != nil {
			t.Errorf("%v bars", err)
		}
	}
	for _, code := range []gatehouse.Code{gatehouse.CodeWorkerNotAllowed, gatehouse.CodeInvalid, gatehouse.CodeMalformed} {
		if e.bar(gatehouse.E(code, "no")); gatehouse.CodeOf(e.isBarred()) != code {
			t.Errorf("%s does not bar", code)
		}
		if e.bar(gatehouse.E(gatehouse.CodeBusy, "later")); e.isBarred() == nil {
			t.Errorf("busy ends the bar of %s", code)
		}
		if e.bar(nil); e.isBarred() != nil {
			t.Errorf("a lease does not end the bar of %s", code)
		}
	}
}

// TestLeaseOfAProxy: a lease that the gate would refuse is refused at the start.
func TestLeaseOfAProxy(t *testing.T) {
	t.Parallel()
	for lease, good := range map[time.Duration]bool{0: true, time.Second: true, time.Hour: true, time.Millisecond: false,
		2 * time.Hour: false} {
		f, err := NewFront(FrontConfig{Config: Config{Name: "peer", Lease: lease}})
		if err == nil {
			f.Close()
		}
		if (err == nil) != good {
			t.Errorf("%s: %v", lease, err)
		}
	}
}

// countingHands counts the requests for actions, which find none.
type countingHands struct {
	hands
	count atomic.Int64
}

func (h *countingHands) LeasePushes(
	ctx context.Context, r gatehouse.PushLeaseRequest,
) ([]gatehouse.LeasedPush, error) {
	h.count.Add(1)
	select {
	case <-time.After(r.Wait.D()):
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestWorkerOfRevokedAgent: with a worker's key, too, actions of an agent are leased only while its key is valid.
func TestWorkerOfRevokedAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, h := &pendingGate{}, &countingHands{}
		w := &worker{
			Config:   Config{Name: "peer", Gate: keyed{gate, "a"}, Worker: h, Log: slog.New(slog.DiscardHandler)},
			proposer: "prn_a", done: newExecuted(), ready: func(context.Context) bool { return true },
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go w.run(ctx)
		<-time.After(time.Minute)
		if n := h.count.Load(); n < 2 || w.done.isBarred() != nil {
			t.Errorf("%d requests in a minute, %v", n, w.done.isBarred())
		}
		gate.mu.Lock()
		gate.revoked = true
		gate.mu.Unlock()
		<-time.After(time.Minute)
		n := h.count.Load()
		<-time.After(10 * time.Minute)
		if again := h.count.Load(); again != n || gatehouse.CodeOf(w.done.isBarred()) != gatehouse.CodeUnauthenticated {
			t.Errorf("%d requests for an agent whose key is revoked, %v", again-n, w.done.isBarred())
		}
		stop()
		synctest.Wait()
	})
}

// TestFrontNames: the header of a name is compared with the body after it is decoded.
func TestFrontNames(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for name, header := range map[string]string{
		"ändern": "=?base64?w6RuZGVybg==?=", " change": "=?base64?IGNoYW5nZQ==?=", "change": "=?base64?Y2hhbmdl?=",
		"=?base64?YQ==?=": "=?base64?PT9iYXNlNjQ/WVE9PT89?=",
	} {
		params := string(gatehouse.MustJSON(map[string]string{"name": name}))
		// The server does not know the method.
		got := s.do("POST", modernFrame("1", "prompts/get", params), modernHeader("prompts/get", header)...)
		if got.status != 404 || !strings.Contains(got.body, "-32601") {
			t.Errorf("%q: %+v", name, got)
		}
		got = s.do("POST", modernFrame("1", "tools/call", params), modernHeader("tools/call", header)...)
		if got.status != 200 || strings.Contains(got.body, "-32020") {
			t.Errorf("the tool %q: %+v", name, got)
		}
		got = s.do("POST", modernFrame("1", "tools/call", params), modernHeader("tools/call", "=?base64?YQ==?=")...)
		if got.status != 400 || !strings.Contains(got.body, "-32020") {
			t.Errorf("another name than %q: %+v", name, got)
		}
	}
}

// TestFrontHostileFrames: frames that a stdio proxy refuses are refused over
// HTTP, too. A body with line feeds reaches the server as one line.
func TestFrontHostileFrames(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	session, server := s.begin("a")
	before := len(server.frames())
	smuggled := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write","arguments":{}}}`
	list := append(
		hostile(),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gatehouse:1:"}}`,
	)
	for _, frame := range list {
		if strings.Contains(frame, "\r") {
			continue // see below
		}
		if got := s.do("POST", frame, sessionHeader, session); got.status != 400 && got.status != 202 &&
			!strings.Contains(got.body, `"error"`) {
			t.Errorf("%q: %+v", frame, got)
		}
	}
	for _, frame := range server.frames()[before:] {
		t.Errorf("the server got %q", frame)
	}
	before = len(server.frames())
	for _, end := range []string{"\n", "\r", "\r\n"} {
		got := s.do("POST", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":`+end+smuggled+end+`}}`, sessionHeader,
			session)
		if got.status != 200 {
			t.Errorf("%q: %+v", end, got)
		}
	}
	for _, frame := range server.frames()[before:] {
		if bytes.ContainsAny(frame, "\r\n") {
			t.Errorf("the server reads more than one line: %q", frame)
		}
	}
}

// TestFrontSlowBody: the front gives up on a body that does not arrive.
func TestFrontSlowBody(t *testing.T) {
	t.Parallel()
	var front *Front
	s := newStage(t, func(f *Front) { front = f })
	session, _ := s.begin("a")
	front.bodyTimeout = 200 * time.Millisecond
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	must(t, err)
	defer c.Close()
	_, _ = fmt.Fprintf(c,
		"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer a\r\nContent-Type: application/json\r\n"+
			"Accept: */*\r\nMcp-Session-Id: %s\r\nContent-Length: 1000\r\n\r\n{\"jsonrpc\"", session)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("%s", resp.Status)
	}
}

// TestFrontSessions: each session has its own server and receives that server's
// messages.
func TestFrontSessions(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first, one := s.begin("a")
	second, two := s.begin("a")
	if first == second || one == two {
		t.Fatal("two sessions share a server")
	}
	raw := `{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping","params":{ "x":1.50 }}`
	if got := s.do("POST", raw, sessionHeader,
		first); got.body != `{"jsonrpc":"2.0","id":12345678901234567890,"result":{}}` {
		t.Errorf("%+v", got)
	}
	if sent := one.frames(); string(sent[len(sent)-1]) != raw {
		t.Errorf("the server got %s", sent[len(sent)-1])
	}
	if sent := two.frames(); len(sent) != 2 {
		t.Errorf("the other server got %q", sent)
	}
	// Messages of the server are kept until the client listens.
	one.say(`{"jsonrpc":"2.0","id":5,"method":"roots/list"}`)
	resp, err := http.DefaultClient.Do(s.request(t.Context(), "GET", "", sessionHeader, first))
	must(t, err)
	defer resp.Body.Close()
	events := bufio.NewReader(resp.Body)
	if got := nextEvent(t, events); got != `{"jsonrpc":"2.0","id":5,"method":"roots/list"}` {
		t.Errorf("%s", got)
	}
	if got := s.do("GET", "", sessionHeader, first); got.status != 409 {
		t.Errorf("a second stream: %+v", got)
	}
	if got := s.do("POST", `{"jsonrpc":"2.0","id":5,"result":{"roots":[]}}`, sessionHeader, first); got.status != 202 {
		t.Errorf("%+v", got)
	}
	if sent := one.frames(); string(sent[len(sent)-1]) != `{"jsonrpc":"2.0","id":5,"result":{"roots":[]}}` {
		t.Errorf("the server got %s", sent[len(sent)-1])
	}
	if got := s.do("DELETE", "", sessionHeader, first); got.status != 204 {
		t.Errorf("%+v", got)
	}
	if got := s.do("POST", raw, sessionHeader, first); got.status != 404 {
		t.Errorf("after its end: %+v", got)
	}
	if got := s.do("POST", raw, sessionHeader, second); got.status != 200 {
		t.Errorf("the other session: %+v", got)
	}
	<-one.gone // another session can execute approved actions
	if got := s.do("DELETE", "", sessionHeader, second); got.status != 204 {
		t.Errorf("%+v", got)
	}
	select {
	case <-two.gone:
		t.Error("the last server does not wait for actions that may still be approved")
	default:
	}
	s.begin("a")
	<-two.gone
}

// TestFrontShared: clients without sessions share a server and get their own
// answers, even with the same ids and progress tokens.
func TestFrontShared(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	answers := make(chan string, 8)
	for i := range 8 {
		uri := fmt.Sprintf("file:///%d", i)
		go func() {
			got := s.do(
				"POST",
				modernFrame("1", "resources/read", `{"uri":"`+uri+`"}`),
				modernHeader("resources/read", uri)...)
			want := `{"jsonrpc":"2.0","id":1,"result":{"uri":"` + uri + `"}}`
			switch {
			case !strings.Contains(got.body, "data: "+want+"\n"):
				answers <- fmt.Sprintf("%s: %+v", uri, got)
			case strings.Count(got.body, `"notifications/progress"`) != 1 || !strings.Contains(got.body, `"progressToken":7,`):
				answers <- fmt.Sprintf("%s: progress: %s", uri, got.body)
			default:
				answers <- ""
			}
		}()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		servers := s.servers
		s.mu.Unlock()
		if len(servers) > 0 && len(servers[0].frames())+len(servers[len(servers)-1].frames()) >= 8 {
			break
		}
		if time.Now().After(deadline) {
			t.Error("the servers have not got the requests")
			break
		}
	}
	close(s.wait)
	for range 8 {
		if wrong := <-answers; wrong != "" {
			t.Error(wrong)
		}
	}
}

// TestFrontLeft: a client that gives up does not change the action. The outcome
// answers the next equal call of any session.
func TestFrontLeft(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first, _ := s.begin("a")
	second, _ := s.begin("a")
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"text":"a"}}}`
	ctx, leave := context.WithCancel(t.Context())
	resp, err := http.DefaultClient.Do(s.request(ctx, "POST", call, sessionHeader, first)) // the stream has begun
	must(t, err)
	leave()
	_ = resp.Body.Close()
	h := s.stateOf("a")
	for deadline := time.Now().Add(time.Minute); !h.find(first).idle(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the call is still open")
		}
	}
	close(s.gate.decided)
	for range 2 { // the outcome is reported once; after that, an equal call is another action
		if got := s.do("POST", call, sessionHeader, second); !strings.Contains(got.body, `"status":"expired"`) {
			t.Errorf("%+v", got)
		}
	}
	if len(s.gate.byKey) != 2 {
		t.Errorf("%d actions", len(s.gate.byKey))
	}
}

// TestFrontTogether: concurrent equal calls, of two sessions and of clients
// without one, are one action, and each gets its outcome.
func TestFrontTogether(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first, _ := s.begin("a")
	second, _ := s.begin("a")
	answers := make(chan said, 4)
	params := `{"name":"write","arguments":{"text":"a"}}`
	for _, session := range []string{first, second, "", ""} {
		go func() {
			if session == "" {
				answers <- s.do("POST", modernFrame("1", "tools/call", params), modernHeader("tools/call", "write")...)
				return
			}
			answers <- s.do("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`, sessionHeader, session)
		}()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.gate.mu.Lock()
		n := s.gate.proposals
		s.gate.mu.Unlock()
		if n == 4 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%d proposals", n)
			break
		}
	}
	close(s.gate.decided)
	for range 4 {
		if got := <-answers; !strings.Contains(got.body, `"status":"expired"`) {
			t.Errorf("%+v", got)
		}
	}
	if len(s.gate.byKey) != 1 {
		t.Errorf("%d actions", len(s.gate.byKey))
	}
}

// TestFrontBounds: a key's sessions are bounded; the longest idle one ends.
func TestFrontBounds(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first, one := s.begin("a")
	for range maxSessions {
		s.begin("a")
	}
	<-one.gone
	if got := s.do("POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, sessionHeader, first); got.status != 404 {
		t.Errorf("%+v", got)
	}
	if got := len(s.stateOf("a").sessions); got != maxSessions {
		t.Errorf("%d sessions", got)
	}
}

// TestFrontBoundsAtOnce: sessions that begin at the same time do not exceed the bound.
func TestFrontBoundsAtOnce(t *testing.T) {
	t.Parallel()
	const atOnce = 3
	var full atomic.Bool
	var starting sync.WaitGroup
	starting.Add(atOnce)
	s := newStage(t, func(f *Front) {
		start := f.Start
		f.Start = func() (Upstream, error) {
			if full.Load() {
				starting.Done()
				starting.Wait()
			}
			return start()
		}
	})
	for range maxSessions - 1 {
		s.begin("a")
	}
	full.Store(true)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			if got := s.do("POST", hello); got.status != 200 {
				t.Errorf("%+v", got)
			}
		})
	}
	all.Wait()
	if got := len(s.stateOf("a").sessions); got != maxSessions {
		t.Errorf("%d sessions", got)
	}
}

// TestFrontServerGone: when a session's server ends, its open requests fail and
// the session is over.
func TestFrontServerGone(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	session, server := s.begin("a")
	got := make(chan said, 1)
	go func() {
		got <- s.do("POST", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a"}}`, sessionHeader, session)
	}()
	for deadline := time.Now().Add(time.Minute); len(server.frames()) < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server has not got the request")
		}
	}
	_ = server.Close()
	if g := <-got; !strings.Contains(g.body, "has ended") {
		t.Errorf("%+v", g)
	}
	if g := s.do("POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, sessionHeader, session); g.status != 404 {
		t.Errorf("%+v", g)
	}
}

// TestFrontHowTheServerEnds: clients with and without sessions learn how the server has ended, or why
// it did not start.
func TestFrontHowTheServerEnds(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(bad, nil, 0o700))
	for want, command := range map[string][]string{
		"has ended: exit status 3":                                 {"sh", "-c", "read line; echo secret >&2; exit 3"},
		"has ended: signal: killed":                                {"sh", "-c", "read line; kill -9 $$"},
		"could not be started: exec format error":                  {bad},
		"could not be started: executable file not found in $PATH": {"secret-server"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, func(f *Front) {
				f.Start = func() (Upstream, error) { return Start(Command{Args: command}, slog.New(slog.DiscardHandler)) }
			})
			for _, got := range []said{
				s.do("POST", hello),
				s.do("POST", modernFrame("1", "server/discover", `{}`), modernHeader("server/discover", "")...),
				s.do("POST", modernFrame("1", "tools/call", `{"name":"write","arguments":{}}`),
					modernHeader("tools/call", "write")...),
			} {
				if !strings.Contains(got.body, `"the MCP server `+want+`"`) || strings.Contains(got.body, "secret") {
					t.Errorf("%+v, want %s", got, want)
				}
			}
		})
	}
}

// TestFrontCarriesOut: a call is executed through the session that asked for it
// while it exists, then through another session of the same key.
func TestFrontCarriesOut(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	sessions := map[string]string{}
	for _, text := range []string{"1", "2"} {
		sessions[text], _ = s.begin("a")
	}
	s.begin("b")
	h := s.stateOf("a")
	for text, id := range sessions {
		ctx, leave := context.WithCancel(t.Context())
		resp, err := http.DefaultClient.Do(s.request(ctx, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call",`+
			`"params":{"name":"write","arguments":{"text" : "`+text+`"}}}`, sessionHeader, id))
		must(t, err)
		leave()
		_ = resp.Body.Close()
	}
	for text, id := range sessions {
		found := h.take(callHash("write", gatehouse.JSON(`{"text":"`+text+`"}`)))
		if found == nil || found.id != id {
			t.Errorf("%s is carried out by %+v", text, found)
			continue
		}
		h.put(found)
	}
	if got := s.do("DELETE", "", sessionHeader, sessions["1"]); got.status != 204 {
		t.Errorf("%+v", got)
	}
	found := h.take(callHash("write", `{"text":"1"}`))
	if found == nil || found.id != sessions["2"] {
		t.Fatalf("carried out by %+v", found)
	}
	// A session is not ended during a call.
	s.begin("a")
	if got := s.do("DELETE", "", sessionHeader, sessions["2"]); got.status != 204 {
		t.Errorf("%+v", got)
	}
	select {
	case <-found.ctx.Done():
		t.Error("a session was ended while it carried out a call")
	default:
	}
	h.put(found)
	<-found.ctx.Done()
}

// TestFrontRevoked: the sessions of a revoked key end.
func TestFrontRevoked(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	session, server := s.begin("a")
	s.gate.mu.Lock()
	s.gate.revoked = true
	s.gate.mu.Unlock()
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if got := s.do("POST", ping, sessionHeader, session); got.status != 200 {
		t.Errorf("while it is trusted: %+v", got)
	}
	h := s.stateOf("a")
	h.mu.Lock()
	h.checked = h.checked.Add(-trustedFor)
	h.mu.Unlock()
	if got := s.do("POST", ping, sessionHeader, session); got.status != 401 {
		t.Errorf("%+v", got)
	}
	<-server.gone
}

// TestFrontRevokedStream: the stream of a revoked key ends, although its client sends no request.
func TestFrontRevokedStream(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(f *Front) { f.beat = time.Millisecond })
	session, _ := s.begin("a")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	resp, err := http.DefaultClient.Do(s.request(ctx, "GET", "", sessionHeader, session))
	must(t, err)
	defer resp.Body.Close()
	s.gate.mu.Lock()
	s.gate.revoked = true
	s.gate.mu.Unlock()
	h := s.stateOf("a")
	h.mu.Lock()
	h.checked = h.checked.Add(-trustedFor)
	h.mu.Unlock()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
}

// TestFrontSilent: a server that does not answer server/discover knows only
// older protocols and is not kept.
func TestFrontSilent(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.silent = true
	s.front.discoverTimeout = 50 * time.Millisecond
	got := s.do("POST", modernFrame("1", "server/discover", `{}`), modernHeader("server/discover", "")...)
	if got.status != 404 || !strings.Contains(got.body, "-32601") {
		t.Errorf("%+v", got)
	}
	<-s.servers[0].gone
	s.begin("a")
}
