package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// listening is a proxy that clients reach over HTTP.
type listening struct {
	*mcpWorld
	url string
	log *syncBuffer
	cmd *exec.Cmd
	// killed says that the test has killed the proxy.
	killed bool
}

// syncBuffer is the output of a running process.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var servingURL = regexp.MustCompile(`msg="serving MCP" url=(http://\S+)`)

// listen starts a proxy with flags, in front of the world's command or of the server that the flags
// name.
func (w *mcpWorld) listen(flags ...string) *listening {
	w.Helper()
	args := append([]string{"mcp", "proxy", "--name", "peer", "--state", w.state, "--listen", "127.0.0.1:0"}, flags...)
	if !strings.Contains(strings.Join(flags, " "), "--upstream") {
		args = append(append(args, "--"), w.command...)
	}
	l := &listening{mcpWorld: w, log: &syncBuffer{}}
	cmd := exec.Command(watched, args...)
	cmd.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_KEY=", "PEER_TOKEN=of-the-peer",
		"GATEHOUSE_WORKER_KEY="+w.worker.Key)
	cmd.Stderr = l.log
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	l.cmd = cmd
	w.Cleanup(func() {
		if l.killed {
			return
		}
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil || w.Failed() {
			w.Errorf("the proxy ended with %v, and said:\n%s", err, l.log)
		}
	})
	for deadline := time.Now().Add(time.Minute); l.url == ""; time.Sleep(10 * time.Millisecond) {
		if m := servingURL.FindStringSubmatch(l.log.String()); m != nil {
			l.url = m[1]
		}
		if time.Now().After(deadline) {
			w.Fatalf("the proxy does not listen:\n%s", l.log)
		}
	}
	return l
}

// sdkClient connects the official SDK's client with the agent's key.
func (l *listening) sdkClient() *sdk.ClientSession {
	l.Helper()
	agent := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	c, err := agent.Connect(l.Context(), &sdk.StreamableClientTransport{
		Endpoint: l.url, HTTPClient: &http.Client{Transport: keyed{l.bot.Key}},
	}, nil)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = c.Close() })
	return c
}

// decided calls a tool, decides the action, and returns the result.
func (w *mcpWorld) decided(
	c *sdk.ClientSession, tool string, arguments map[string]any, d gatehouse.DecisionKind,
) *sdk.CallToolResult {
	w.Helper()
	type answer struct {
		result *sdk.CallToolResult
		err    error
	}
	got := make(chan answer, 1)
	go func() {
		r, err := c.CallTool(w.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
		got <- answer{r, err}
	}()
	w.decide(w.pending(tool), d, "because")
	a := <-got
	if a.err != nil {
		w.Fatal(a.err)
	}
	return a.result
}

// TestMCPListen puts the official SDK's client, over HTTP, before servers on stdio and over HTTP:
// with the protocol of 2026-07-28 and with the previous one.
func TestMCPListen(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]func(w *mcpWorld) []string{
		"stdio":    func(*mcpWorld) []string { return nil },
		"sessions": func(w *mcpWorld) []string { return w.remotePeer(&sdk.StreamableHTTPOptions{}).Args[7:] },
		"stateless": func(w *mcpWorld) []string {
			return w.remotePeer(&sdk.StreamableHTTPOptions{Stateless: true}).Args[7:]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMCPWorld(t)
			l := w.listen(behind(w)...)
			c := l.sdkClient()
			want := "2026-07-28"
			if name == "sessions" {
				want = "2025-11-25"
			}
			if got := c.InitializeResult(); got.ProtocolVersion != want || got.Instructions != "Append lines." {
				t.Errorf("%+v", got)
			}
			tools, err := c.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) < 5 {
				t.Fatalf("%v: %+v", err, tools)
			}
			got, err := c.CallTool(
				t.Context(),
				&sdk.CallToolParams{Name: "note", Arguments: map[string]any{"text": "x"}},
			)
			if err != nil || got.IsError {
				t.Fatalf("%v: %+v", err, got)
			}
			if got := w.decided(c, "append", map[string]any{"text": "a"}, gatehouse.Approve); got.IsError {
				t.Errorf("approved: %+v", got.Content[0])
			}
			if got := w.decided(c, "append", map[string]any{"text": "b"}, gatehouse.Reject); !got.IsError {
				t.Errorf("rejected: %+v", got.Content[0])
			}
			w.wrote("x", "a")
			if log := l.log.String(); strings.Contains(log, w.bot.Key) || strings.Contains(log, "of-the-peer") ||
				strings.Contains(log, "unencrypted") {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
}

// TestMCPListenWorker: with a worker's key, the proxy carries out the calls of agents that cannot lease them, over
// HTTP and on stdio.
func TestMCPListenWorker(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	old := servetest.MustClient(t, w.server.URL, *w.bot) // has the role worker
	got, err := old.LeasePushes(t.Context(), gatehouse.PushLeaseRequest{Connectors: []string{"mcp:guarded"}})
	if gatehouse.CodeOf(err) != gatehouse.CodeWorkerNotAllowed {
		t.Errorf("another worker leases %+v, %v", got, err)
	}
	w.bot = servetest.NewPrincipal(t, w.server.Gate, w.adminKey, "proposer", gatehouse.KindAgent, gatehouse.RoleProposer)
	l := w.listen("--name", "guarded")
	if r := l.ping(); r.status != http.StatusForbidden ||
		!strings.Contains(r.body, "proposer lacks the role worker: a proxy needs proposer and, without a worker's key, worker") {
		t.Errorf("without a worker's key: %+v", r)
	}
	w.worker = *servetest.NewPrincipal(t, w.server.Gate, w.adminKey, "pilot", gatehouse.KindService, gatehouse.RoleProposer)
	cmd := exec.CommandContext(t.Context(), watched, append([]string{
		"mcp", "proxy", "--name", "guarded", "--state", w.state, "--listen", "127.0.0.1:0", "--"}, w.command...)...)
	cmd.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_WORKER_KEY="+w.worker.Key)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "pilot lacks the role worker") {
		t.Errorf("with the key of no worker: %v\n%s", err, out)
	}
	w.worker = *servetest.NewPrincipal(t, w.server.Gate, w.adminKey, "feet", gatehouse.KindService, gatehouse.RoleWorker)
	unnamed := w.listen("--name", "guarded", "--hold", "100ms")
	session := unnamed.begin()
	// A call that came before the first refusal of a lease is open, and equal calls would join it.
	for n, deadline := 0, time.Now().Add(time.Minute); ; n++ {
		a, _ := unnamed.post(session, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}`,
			callOf("note", fmt.Sprintf(`{"text":"%d"}`, n))))
		if a.Result != nil && strings.Contains(a.Result.text(), "so nothing was proposed: worker_not_allowed: ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("with the key of a worker that the connector does not name: %s", a.raw)
		}
	}
	w.worker = *servetest.NewPrincipal(t, w.server.Gate, w.adminKey, "hands", gatehouse.KindService, gatehouse.RoleWorker)
	c := w.listen("--name", "guarded").sdkClient()
	for text, decision := range map[string]gatehouse.DecisionKind{"a": gatehouse.Approve, "b": gatehouse.Reject} {
		got := w.decided(c, "append", map[string]any{"text": text}, decision)
		if got.IsError != (decision == gatehouse.Reject) {
			t.Errorf("%s: %+v", decision, got.Content[0])
		}
	}
	w.wrote("a")
}

// TestMCPListenFilesystem: the SDK's client falls back from the newer protocol to the filesystem
// server's.
func TestMCPListenFilesystem(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	w.command = []string{"node", filesystemServer(t), w.dir}
	c := w.listen("--read-only-hint-is-read", "read_text_file").sdkClient()
	if got := c.InitializeResult(); got.ProtocolVersion != "2025-11-25" {
		t.Errorf("%+v", got)
	}
	path := filepath.Join(w.dir, "a.txt")
	got := w.decided(c, "write_file", map[string]any{"path": path, "content": "Zoë: 12.50 €"}, gatehouse.Approve)
	if b, err := os.ReadFile(path); err != nil || string(b) != "Zoë: 12.50 €" || got.IsError {
		t.Errorf("%v: %q %+v", err, b, got)
	}
	got, err := c.CallTool(
		t.Context(),
		&sdk.CallToolParams{Name: "read_text_file", Arguments: map[string]any{"path": path}},
	)
	if text, ok := got.Content[0].(*sdk.TextContent); err != nil || !ok || text.Text != "Zoë: 12.50 €" {
		t.Errorf("%v: %+v", err, got)
	}
}

// post sends a frame as a client of the older protocol does, and returns the last frame
// of the answer.
func (l *listening) post(session, frame string) (*mcpAnswer, string) {
	l.Helper()
	r, err := http.NewRequestWithContext(l.Context(), http.MethodPost, l.url, strings.NewReader(frame))
	if err != nil {
		l.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+l.bot.Key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		l.Fatal(err)
	}
	defer resp.Body.Close()
	a := &mcpAnswer{}
	body := bufio.NewScanner(resp.Body)
	for body.Scan() {
		line, _ := strings.CutPrefix(body.Text(), "data: ")
		if strings.HasPrefix(line, "{") {
			a = &mcpAnswer{raw: line}
			if err := json.Unmarshal([]byte(line), a); err != nil {
				l.Fatal(err)
			}
		}
	}
	return a, resp.Header.Get("Mcp-Session-Id")
}

// ping sends a request outside of a session.
func (l *listening) ping() (answer struct {
	status int
	body   string
}) {
	l.Helper()
	r, err := http.NewRequestWithContext(l.Context(), http.MethodPost, l.url,
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	must(l, err)
	r.Header.Set("Authorization", "Bearer "+l.bot.Key)
	resp, err := http.DefaultClient.Do(r)
	must(l, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(l, err)
	answer.status, answer.body = resp.StatusCode, string(body)
	return answer
}

// begin begins a session of the older protocol.
func (l *listening) begin() string {
	l.Helper()
	a, session := l.post("", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if a.Error != nil || session == "" {
		l.Fatalf("%s", a.raw)
	}
	l.post(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return session
}

// TestMCPListenLeft: a call that is approved after its session has ended is carried out, and the
// next session gets the outcome of the equal call. The server gets no key.
func TestMCPListenLeft(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	l := w.listen("--hold", "100ms")
	session := l.begin()
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + callOf("append", `{"text":"a"}`) + `}`
	if a, _ := l.post(session, call); a.Result == nil || a.Result.Meta.Action.Status != "pending" {
		t.Fatalf("%s", a.raw)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, l.url, nil)
	must(t, err)
	r.Header.Set("Mcp-Session-Id", session)
	r.Header.Set("Authorization", "Bearer "+w.bot.Key)
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	a := w.pending("append")
	w.decide(a, gatehouse.Approve, "")
	if _, err := w.admin.WaitAction(t.Context(), a.ID, time.Minute, gatehouse.UntilFinished); err != nil {
		t.Fatal(err)
	}
	w.wrote("a")
	session = l.begin()
	if a, _ := l.post(session, call); a.Result == nil || a.Result.text() != "wrote a" {
		t.Errorf("%s", a.raw)
	}
	w.wrote("a")
	tag := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":%s}`, callOf("tag", `{}`))
	if a, _ := l.post(session, tag); a.Result == nil || a.Result.text() == "" ||
		strings.Contains(a.Result.text(), w.bot.Key) || strings.Contains(a.Result.text(), "of-the-peer") {
		t.Errorf("%s", a.raw)
	}
}

// TestMCPListenKilled: after kill -9 of the proxy the next one continues. An approved call is
// carried out once, and each agent has calls of its own.
func TestMCPListenKilled(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + callOf("append", `{"text":"a"}`) + `}`
	first := w.listen("--hold", "100ms")
	session := first.begin()
	if a, _ := first.post(session, call); a.Result == nil || a.Result.Meta.Action.Status != "pending" {
		t.Fatalf("%s", a.raw)
	}
	must(t, first.cmd.Process.Kill())
	_ = first.cmd.Wait()
	first.killed = true
	w.decide(w.pending("append"), gatehouse.Approve, "")
	second := w.listen("--hold", "30s")
	if a, _ := second.post(session, call); a.Error == nil || !strings.Contains(a.Error.Message, "no such session") {
		t.Errorf("a session of the proxy that was killed: %s", a.raw)
	}
	if a, _ := second.post(second.begin(), call); a.Result == nil || a.Result.text() != "wrote a" {
		t.Errorf("%s", a.raw)
	}
	w.wrote("a")
}

// TestMCPListenWarns: the log warns of an address that other machines can reach.
func TestMCPListenWarns(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	l := w.listen("--listen", "0.0.0.0:0")
	if log := l.log.String(); !strings.Contains(log, "unencrypted") {
		t.Errorf("the log:\n%s", log)
	}
}
