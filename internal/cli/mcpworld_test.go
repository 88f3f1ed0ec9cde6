package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// mcpWorld is a gate with the connector mcp:peer, an agent, an administrator, and a
// folder in which the peer writes.
type mcpWorld struct {
	testing.TB
	server *serve.Server
	admin  service
	bot    *gatehouse.Credentials
	// adminKey has the secrets of admin.
	adminKey *gatehouse.Credentials
	// worker carries out the calls if it has a key.
	worker gatehouse.Credentials
	dir    string
	state  string
	// command starts the upstream.
	command []string
}

func newMCPWorld(t testing.TB) *mcpWorld {
	t.Helper()
	return newMCPWorldWith(t, "note: {floor: 1}, tag: {floor: 1}", "")
}

// newMCPWorldWith is newMCPWorld with other tools of the connector and more configuration.
func newMCPWorldWith(t testing.TB, tools, more string) *mcpWorld {
	t.Helper()
	cfg := servetest.Config(t,
		`{connectors: {"mcp:peer": {type: mcp, tools: {`+tools+`}}, `+
			`"mcp:guarded": {type: mcp, workers: [hands]}, `+
			`"mcp:claude-code": {type: mcp, tools: {note: {floor: 1}}}, `+
			`"mcp:codex": {type: mcp, tools: {note: {floor: 1}}}}, dispatch: {hold: 0s}`+more+`}`)
	server, creds := serveConfig(t, t.TempDir(), cfg)
	w := &mcpWorld{
		TB: t, server: server, admin: servetest.MustClient(t, server.URL, *creds), adminKey: creds,
		dir: t.TempDir(), state: t.TempDir(),
	}
	w.bot = servetest.NewPrincipal(t, server.Gate, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer,
		gatehouse.RoleWorker)
	peer, err := exec.LookPath("mcppeer")
	must(t, err)
	w.command = []string{peer, w.dir}
	return w
}

// file writes a file in the peer's folder.
func (w *mcpWorld) file(name, content string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
		w.Fatal(err)
	}
}

// mcpClient speaks MCP with a process, frame by frame.
type mcpClient struct {
	*mcpWorld
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
	next   int
}

// proxy starts a proxy and shakes hands.
func (w *mcpWorld) proxy(flags ...string) *mcpClient {
	w.Helper()
	return w.start(w.proxyCommand(flags...))
}

// proxyModern starts a proxy for a client that needs no handshake.
func (w *mcpWorld) proxyModern(flags ...string) *mcpClient {
	w.Helper()
	return w.launch(w.proxyCommand(flags...))
}

func (w *mcpWorld) proxyCommand(flags ...string) *exec.Cmd {
	args := append([]string{"mcp", "proxy", "--name", "peer", "--state", w.state}, flags...)
	cmd := exec.Command(watched, append(append(args, "--"), w.command...)...)
	cmd.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_KEY="+w.bot.Key,
		"SECRET=not-for-the-server")
	return cmd
}

// start starts a proxy's command and shakes hands.
func (w *mcpWorld) start(cmd *exec.Cmd) *mcpClient {
	w.Helper()
	c := w.launch(cmd)
	c.request("initialize",
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// launch starts a proxy's command.
func (w *mcpWorld) launch(cmd *exec.Cmd) *mcpClient {
	w.Helper()
	c := &mcpClient{mcpWorld: w, cmd: cmd}
	c.cmd.Stderr = &c.stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		w.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	// A proxy that does not answer ends, and with it whoever reads from it.
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	w.Cleanup(func() {
		defer late.Stop()
		if c.cmd.ProcessState == nil {
			c.close()
		}
		if w.Failed() {
			w.Logf("the proxy said:\n%s", c.stderr.String())
		}
	})
	return c
}

// close ends the client's side, and waits for the proxy, which may not have reported a race.
func (c *mcpClient) close() {
	_ = c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		c.Errorf("the proxy ended with %v", err)
	}
}

// kill is kill -9 of the proxy.
func (c *mcpClient) kill() {
	c.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		c.Fatal(err)
	}
	_ = c.cmd.Wait()
}

func (c *mcpClient) send(frame string) {
	c.Helper()
	if _, err := io.WriteString(c.in, frame+"\n"); err != nil {
		c.Fatal(err)
	}
}

// begin sends a request and returns its id.
func (c *mcpClient) begin(method, params string) string {
	c.Helper()
	c.next++
	id := fmt.Sprintf(`"c%d"`, c.next)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

// mcpAnswer is a frame that the client got.
type mcpAnswer struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result *mcpResult      `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	raw string
}

type mcpResult struct {
	Tools []struct {
		Name, Description string
	} `json:"tools"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	IsError    bool   `json:"isError"`
	Structured any    `json:"structuredContent"`
	Type       string `json:"resultType"`
	State      string `json:"requestState"`
	Meta       struct {
		Action struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"dev.gatehouse/action"`
	} `json:"_meta"`
}

func (r *mcpResult) text() string {
	if r == nil || len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

func (c *mcpClient) read() *mcpAnswer {
	c.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.Fatalf("the proxy has gone: %v", err)
	}
	a := &mcpAnswer{raw: strings.TrimSuffix(line, "\n")}
	if err := json.Unmarshal([]byte(line), a); err != nil {
		c.Fatalf("%v in %s", err, line)
	}
	return a
}

// await reads until the answer to a request; notifications are passed over.
func (c *mcpClient) await(id string) *mcpAnswer {
	c.Helper()
	for {
		if a := c.read(); a.Method == "" {
			if string(a.ID) != id {
				c.Fatalf("an answer to %s, want one to %s: %s", a.ID, id, a.raw)
			}
			return a
		}
	}
}

func (c *mcpClient) request(method, params string) *mcpAnswer {
	c.Helper()
	return c.await(c.begin(method, params))
}

func callOf(tool, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)
}

func (c *mcpClient) call(tool, arguments string) *mcpResult {
	c.Helper()
	a := c.request("tools/call", callOf(tool, arguments))
	if a.Result == nil {
		c.Fatalf("%s: %s", tool, a.raw)
	}
	return a.Result
}

// pending waits for a pending action.
func (w *mcpWorld) pending(actionType string) *gatehouse.Action {
	w.Helper()
	var found *gatehouse.Action
	w.eventually("a pending "+actionType, func(ctx context.Context) bool {
		page, err := w.admin.ListActions(ctx, gatehouse.ActionFilter{
			Status: gatehouse.StatusPending, ActionType: actionType,
		})
		if err != nil {
			w.Fatal(err)
		}
		if len(page.Items) > 1 {
			w.Fatalf("%d actions are pending", len(page.Items))
		}
		if len(page.Items) == 1 {
			found, err = w.admin.FindAction(ctx, page.Items[0].ID)
		}
		if err != nil {
			w.Fatal(err)
		}
		return found != nil
	})
	return found
}

// eventually waits until another process has done something.
func (w *mcpWorld) eventually(what string, reached func(context.Context) bool) {
	w.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !reached(w.Context()); <-tick.C {
		if time.Now().After(deadline) {
			w.Fatalf("no %s after a minute", what)
		}
	}
}

func (w *mcpWorld) decide(a *gatehouse.Action, d gatehouse.DecisionKind, notes string) {
	w.Helper()
	decision := gatehouse.Decision{Decision: d, Digest: a.Digest, Notes: notes}
	if a.Approval.Confirm != nil {
		decision.Confirm = a.Approval.Confirm.Value
	}
	if _, err := w.admin.Decide(w.Context(), a.ID, decision); err != nil {
		w.Fatal(err)
	}
}

// wrote checks what the peer has written.
func (w *mcpWorld) wrote(want ...string) {
	w.Helper()
	if got := peerLines(w.dir); !slices.Equal(got, want) {
		w.Errorf("the server wrote %q, want %q", got, want)
	}
}
