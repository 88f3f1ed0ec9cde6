package mcp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// scripted is a server that answers requests and records what it got.
type scripted struct {
	mu   sync.Mutex
	got  [][]byte
	out  chan []byte
	once sync.Once
	gone chan struct{}
	// wait delays the answers to resources/read until it is closed.
	wait chan struct{}
	// silent makes the server not answer server/discover.
	silent bool
}

func (s *scripted) Identity() string { return "scripted" }
func (s *scripted) Abandon([]byte)   {}
func (s *scripted) Close() error     { s.once.Do(func() { close(s.gone) }); return nil }

func (s *scripted) Receive() ([]byte, error) {
	select {
	case frame := <-s.out:
		return frame, nil
	case <-s.gone:
		return nil, io.EOF
	}
}

func (s *scripted) say(format string, args ...any) {
	select {
	case s.out <- fmt.Appendf(nil, format, args...):
	case <-s.gone:
	}
}

const scriptedTools = `{"tools":[{"name":"write"},{"name":"move",` +
	`"inputSchema":{"type":"object","properties":{"to":{"type":"string","x-mcp-header":"To"}}}}]}`

func (s *scripted) Send(_ context.Context, raw []byte) error {
	s.mu.Lock()
	s.got = append(s.got, bytes.Clone(raw))
	s.mu.Unlock()
	f, err := parseFrame(raw, clientDepth)
	if err != nil {
		return err
	}
	if !f.isRequest() {
		return nil
	}
	answers := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{}}`,
		"tools/list": scriptedTools, "ping": `{}`, "server/discover": `{"capabilities":{}}`,
	}
	if s.silent && f.method == "server/discover" {
		return nil
	}
	go func() {
		if f.method == "resources/read" {
			if token := memberOf(memberOf(f.params, "_meta"), "progressToken"); token != nil {
				s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, token)
			}
			<-s.wait
			s.say(`{"jsonrpc":"2.0","id":%s,"result":{"uri":%s}}`, f.id, memberOf(f.params, "uri"))
			return
		}
		if result, ok := answers[f.method]; ok {
			s.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, f.id, result)
			return
		}
		s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, f.id)
	}()
	return nil
}

// frames returns what the server got, except the proxy's own requests.
func (s *scripted) frames() (list [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, raw := range s.got {
		if f, err := parseFrame(raw, clientDepth); err != nil || !isOwn(f.id) {
			list = append(list, raw)
		}
	}
	return list
}

// stage is a front over HTTP with the keys a and b of two agents, and a gate at
// which every call waits for a decision.
type stage struct {
	*testing.T
	front   *Front
	url     string
	mu      sync.Mutex
	servers []*scripted
	wait    chan struct{}
	gate    *pendingGate
	silent  bool
}

// pendingGate asks people about every proposal.
type pendingGate struct {
	Gate
	mu        sync.Mutex
	byKey     map[string]*gatehouse.Action
	proposals int
	revoked   bool
	decided   chan struct{}
}

// keyed is the gate for one key.
type keyed struct {
	*pendingGate
	key string
}

func (k keyed) WhoAmI(context.Context) (*gatehouse.Principal, error) {
	roles, tenant := []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleWorker}, "default"
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case (k.key == "a" || k.key == "b") && !k.revoked:
	case k.key == "foreign":
		tenant = "foreign"
	case k.key == "reader":
		roles = nil
	default:
		return nil, gatehouse.E(gatehouse.CodeUnauthenticated, "unknown key")
	}
	return &gatehouse.Principal{ID: "prn_" + k.key, Tenant: tenant, Name: k.key, Roles: roles}, nil
}

func (k keyed) Propose(_ context.Context, p *gatehouse.Proposal) (*gatehouse.Action, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.proposals++
	if a := k.byKey[k.key+p.IdempotencyKey]; a != nil {
		return k.standing(a), true, nil
	}
	a := &gatehouse.Action{
		Proposal: *p, ID: fmt.Sprintf("act_%s_%d", k.key, len(k.byKey)+1), Status: gatehouse.StatusPending,
	}
	k.byKey[k.key+p.IdempotencyKey] = a
	return a, false, nil
}

// standing returns the current state of an action, which is finished once
// people have decided.
func (g *pendingGate) standing(a *gatehouse.Action) *gatehouse.Action {
	now := *a
	select {
	case <-g.decided:
		now.Status, now.DecidedBy = gatehouse.StatusExpired, "nobody"
	default:
	}
	return &now
}

func (k keyed) FindAction(_ context.Context, id string) (*gatehouse.Action, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range k.byKey {
		if a.ID == id {
			return k.standing(a), nil
		}
	}
	return nil, gatehouse.E(gatehouse.CodeNotFound, "no such action")
}

func (k keyed) WaitAction(
	ctx context.Context, id string, wait time.Duration, _ gatehouse.Until,
) (*gatehouse.Action, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-k.decided:
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return k.FindAction(ctx, id)
}

func (k keyed) WaitAsked(
	ctx context.Context, id string, wait time.Duration, until gatehouse.Until, _ int,
) (*gatehouse.Action, error) {
	return k.WaitAction(ctx, id, wait, until)
}

func (k keyed) LeasePushes(ctx context.Context, _ gatehouse.PushLeaseRequest) ([]gatehouse.LeasedPush, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func newStage(t *testing.T, options ...func(*Front)) *stage {
	t.Helper()
	folder, err := OpenFolder(t.TempDir())
	must(t, err)
	s := &stage{T: t, wait: make(chan struct{}), gate: &pendingGate{
		byKey: map[string]*gatehouse.Action{}, decided: make(chan struct{}),
	}}
	s.front, err = NewFront(FrontConfig{
		Config: Config{Name: "peer", Folder: folder, Log: slog.New(slog.DiscardHandler), Hold: time.Minute},
		Hosts:  []string{"mcp.example.com"},
		Start: func() (Upstream, error) {
			server := &scripted{out: make(chan []byte, 16), gone: make(chan struct{}), wait: s.wait}
			s.mu.Lock()
			server.silent = s.silent
			s.servers = append(s.servers, server)
			s.mu.Unlock()
			return server, nil
		},
		GateFor: func(key string) (Gate, error) { return keyed{s.gate, key}, nil },
	})
	must(t, err)
	for _, option := range options {
		option(s.front)
	}
	server := httptest.NewServer(s.front)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close(); s.front.Close() })
	s.url = server.URL
	return s
}

// said is the response to a request over HTTP.
type said struct {
	status  int
	header  http.Header
	body    string
	session string
}

func (s *stage) request(ctx context.Context, method, frame string, header ...string) *http.Request {
	s.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.url+"/mcp", strings.NewReader(frame))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer a")
	for i := 0; i < len(header); i += 2 {
		switch {
		case header[i] == "Host":
			r.Host = header[i+1]
		case header[i+1] == "":
			r.Header.Del(header[i])
		default:
			r.Header.Add(header[i], header[i+1])
			if header[i] == "Authorization" || header[i] == "Content-Type" || header[i] == "Accept" {
				r.Header.Set(header[i], header[i+1])
			}
		}
	}
	return r
}

func (s *stage) do(method, frame string, header ...string) said {
	s.Helper()
	resp, err := http.DefaultClient.Do(s.request(s.Context(), method, frame, header...))
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return said{resp.StatusCode, resp.Header, string(b), resp.Header.Get(sessionHeader)}
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize",` +
	`"params":{"protocolVersion":"2025-11-25","capabilities":{}}}`

// begin starts a session with a key.
func (s *stage) begin(key string) (id string, server *scripted) {
	s.Helper()
	got := s.do("POST", hello, "Authorization", "Bearer "+key)
	if got.status != 200 || got.session == "" {
		s.Fatalf("%+v", got)
	}
	if got := s.do("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Authorization", "Bearer "+key,
		sessionHeader, got.session); got.status != 202 || got.body != "" {
		s.Fatalf("%+v", got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return got.session, s.servers[len(s.servers)-1]
}

// modernFrame is a request of 2026-07-28.
func modernFrame(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, setMember([]byte(params), "_meta",
		[]byte(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientCapabilities":{},"progressToken":7}`)))
}

func modernHeader(method, name string) []string {
	return []string{versionHeader, "2026-07-28", methodHeader, method, nameHeader, name}
}

func nextEvent(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		must(t, err)
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data)
		}
	}
}

func (s *stage) stateOf(key string) *keyState {
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	for _, h := range s.front.keys {
		if h.me.Name == key {
			return h
		}
	}
	s.Fatal("the front does not know the key")
	return nil
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
