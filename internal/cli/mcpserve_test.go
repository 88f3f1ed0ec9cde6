package cli

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/mcp"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/version"
)

// keyed sends a bearer token.
type keyed struct{ key string }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return http.DefaultTransport.RoundTrip(r)
}

// TestMCPServe calls the tools of Gatehouse itself, on stdio with the binary and over HTTP.
func TestMCPServe(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	handler := mcp.NewHandler(version.Number, func(key string) (mcp.Service, error) {
		return client.New(w.server.URL, key)
	})
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	command := exec.Command(watched, "mcp", "serve")
	command.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_KEY="+w.bot.Key)
	for name, transport := range map[string]sdk.Transport{
		"stdio": &sdk.CommandTransport{Command: command},
		"http":  &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &http.Client{Transport: keyed{w.bot.Key}}},
	} {
		agent := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		c, err := agent.Connect(t.Context(), transport, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w.serve(name, c)
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, header := range map[string]http.Header{
		"no key":       {},
		"another site": {"Authorization": {"Bearer " + w.bot.Key}, "Origin": {"https://evil.example"}},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(`{}`))
		must(t, err)
		r.Header = header
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		_ = resp.Body.Close()
		if want := map[string]int{"no key": 401, "another site": 403}[name]; resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", name, resp.StatusCode, want)
		}
	}
}

// serve calls the tools as one client.
func (w *mcpWorld) serve(name string, c *sdk.ClientSession) {
	w.Helper()
	call := func(tool, arguments string) (out map[string]any, failed bool) {
		w.Helper()
		r, err := c.CallTool(w.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
		if err != nil {
			w.Fatalf("%s: %s: %v", name, tool, err)
		}
		text := r.Content[0].(*sdk.TextContent).Text
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			w.Fatalf("%s: %s: %v in %s", name, tool, err, text)
		}
		return out, r.IsError
	}
	listed, err := c.ListTools(w.Context(), nil)
	if err != nil {
		w.Fatal(err)
	}
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if want := []string{
		"answer_question", "cancel_action", "check_policy", "get_action", "list_actions", "propose_change",
		"revise_action", "wait_action",
	}; !slices.Equal(names, want) {
		w.Errorf("%s: the tools are %v", name, names)
	}
	proposal := `"action_type":"append","connector":"mcp:peer","operation":"append",` +
		`"target":{"entity_type":"mcp_tool","entity_ref":"peer/append"},"proposed_change":{"n":12345678901234567890.50}`
	got, failed := call("check_policy", "{"+proposal+"}")
	if failed || got["outcome"] != "needs_approval" || got["risk_level"] != 3.0 {
		w.Errorf("%s: check_policy %v", name, got)
	}
	first, failed := call("propose_change", "{"+proposal+"}")
	if failed || first["status"] != "pending" {
		w.Fatalf("%s: propose_change %v", name, first)
	}
	revised, failed := call("revise_action", `{"action_id":"`+first["id"].(string)+`",`+proposal+`}`)
	if failed || revised["id"] == first["id"] {
		w.Fatalf("%s: revise_action %v", name, revised)
	}
	id := revised["id"].(string)
	a, err := w.admin.FindAction(w.Context(), id)
	if err != nil || a.ProposedChange != `{"n":12345678901234567890.50}` {
		w.Errorf("%s: %v: the change is %v", name, err, a)
	}
	if got, _ := call("wait_action", `{"action_id":"`+id+`","seconds":0}`); got["status"] != "pending" {
		w.Errorf("%s: wait_action %v", name, got)
	}
	w.ask(id, "why so much?")
	if got, _ := call("get_action", `{"action_id":"`+id+`"}`); len(got["questions"].([]any)) != 1 {
		w.Errorf("%s: the questions are %v", name, got["questions"])
	}
	if got, failed := call("answer_question", `{"action_id":"`+id+`","question":1,"text":"so"}`); failed ||
		got["status"] != "pending" || got["questions"] != nil {
		w.Errorf("%s: answer_question %v", name, got)
	}
	w.decide(a, gatehouse.Reject, "too much")
	got, _ = call("get_action", `{"action_id":"`+id+`"}`)
	if b, err := json.Marshal(got["votes"]); err != nil || !strings.Contains(string(b), `"notes":"too much"`) {
		w.Errorf("%s: the votes are %s", name, b)
	}
	if got, failed := call("cancel_action", `{"action_id":"`+id+`"}`); !failed || got["code"] != "too_late" {
		w.Errorf("%s: cancel_action %v", name, got)
	}
	got, failed = call("get_action", `{"action_id":"`+id+`","Action_id":"x"}`)
	if !failed || got["code"] != "malformed" {
		w.Errorf("%s: an unknown argument: %v", name, got)
	}
	if got, failed := call("list_actions", `{"status":"rejected"}`); failed || len(got["items"].([]any)) == 0 {
		w.Errorf("%s: list_actions %v", name, got)
	}
}

// TestMCPTools lists the pinned tools with their levels, and accepts a change on the command line.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	c := w.proxy()
	c.request("tools/list", `{}`)
	c.close()
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(context.Background(), "gatehouse", append([]string{"mcp", "tools"}, args...)...)
		cmd.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_KEY="+w.adminKey.Key,
			"GATEHOUSE_EDIT_TOKEN="+w.adminKey.EditToken)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("list", "peer", "--state", w.state)
	for _, line := range []string{
		"append\tL3\tneeds_approval\t\n", "note\tL1\tallow\t\n", "count\tL3\tneeds_approval\treadOnlyHint\n",
	} {
		if err != nil || !strings.Contains(out, line) {
			t.Errorf("%v: no %q in\n%s", err, line, out)
		}
	}
	if out, err := run("accept", "peer", "--digest", "sha256:1"); err == nil || !strings.Contains(out, "no tools") {
		t.Errorf("nothing has changed: %v\n%s", err, out)
	}
	w.file("described", "Appends a line to a file.")
	c = w.proxy()
	c.request("tools/list", `{}`)
	a := w.pending("gatehouse_accept_tools")
	if out, err := run("accept", "peer", "--digest", string(a.Digest), "--confirm", "peer"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for c.read().Method != "notifications/tools/list_changed" {
	}
	if got := c.request("tools/list", `{}`); !strings.Contains(got.raw, "Appends a line to a file.") {
		t.Errorf("accepted: %s", got.raw)
	}
}

// TestMCPReadOnly: calls of a tool that the operator names as read-only pass unchanged, without an
// action; the tool's hint alone is not enough.
func TestMCPReadOnly(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	c := w.proxy("--read-only-hint-is-read", "count,append", "--hold", "100ms")
	if got := c.call("count", `{}`); got.text() != "0" {
		t.Errorf("%+v", got)
	}
	page, err := w.admin.ListActions(t.Context(), gatehouse.ActionFilter{})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("%v: %d actions", err, len(page.Items))
	}
	if got := c.call("append", `{"text":"a"}`); got.Meta.Action.Status != "pending" {
		t.Errorf("a tool that is named but has no hint: %+v", got)
	}
	c.close()
	c = w.proxy("--hold", "100ms")
	if got := c.call("count", `{}`); got.Meta.Action.Status != "pending" {
		t.Errorf("a hint alone: %+v", got)
	}
}

// TestMCPTwoProxies: two proxies with the same call, each with a folder of its own, ask
// once and write once.
func TestMCPTwoProxies(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	one := w.proxy("--hold", "500ms")
	w.state = t.TempDir()
	two := w.proxy("--hold", "500ms")
	params := callOf("append", `{"text":"a"}`)
	ids := []string{one.begin("tools/call", params), two.begin("tools/call", params)}
	a := w.pending("append")
	for i, c := range []*mcpClient{one, two} {
		if got := c.await(ids[i]).Result; got.Meta.Action.ID != a.ID {
			t.Errorf("proxy %d asked for %+v, want %s", i, got, a.ID)
		}
	}
	w.decide(a, gatehouse.Approve, "")
	a, err := w.admin.WaitAction(t.Context(), a.ID, gatehouse.MaxWait, gatehouse.UntilFinished)
	if err != nil || a.Status != gatehouse.StatusApplied {
		t.Fatalf("%v: %+v", err, a)
	}
	for i, c := range []*mcpClient{one, two} {
		if got := c.call("append", `{"text":"a"}`); got.text() != "wrote a" {
			t.Errorf("proxy %d: %+v", i, got)
		}
	}
	w.wrote("a")
	page, err := w.admin.ListActions(t.Context(), gatehouse.ActionFilter{ActionType: "append"})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("%v: %d actions, want 1", err, len(page.Items))
	}
}

// TestMCPHeader: only ${NAME} in a header stands for a variable.
func TestMCPHeader(t *testing.T) {
	t.Parallel()
	value := expand("ab$cd ${TOKEN}$ ${x", strings.ToLower)
	if want := "ab$cd token$ ${x"; value != want {
		t.Errorf("got %q, want %q", value, want)
	}
	for header, code := range map[string]int{"A=ab$cd": 0, "A=${PATH}": 0, "A=${}": term.ExitUsage} {
		f := mcpServerFlags{Upstream: "https://127.0.0.1:1/", Header: []string{header}}
		if _, err := f.connect(slog.New(slog.DiscardHandler)); (err == nil) != (code == 0) {
			t.Errorf("%s: %v", header, err)
		}
	}
}

// TestMCPUnfinishedBody: a client cannot keep a connection open with a body that does not end.
func TestMCPUnfinishedBody(t *testing.T) {
	t.Parallel()
	s := newMCPServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}), slog.New(slog.DiscardHandler), time.Minute)
	s.ReadTimeout /= 600
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { _ = s.Close() })
	c, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
	must(t, err)
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("the connection stays open: %v", err)
	}
}

// TestMCPInstall prints entries that name the proxy, and never a key.
func TestMCPInstall(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"claude": `"GATEHOUSE_KEY": "${GATEHOUSE_KEY}"`, "cursor": `"${env:GATEHOUSE_KEY}"`,
		"vscode": `"${input:gatehouse-key}"`,
		"codex":  `args = ["mcp","proxy","--name","files","--","server","/a b"]`,
	} {
		g, stdout, _ := testGlobals(t)
		g.URL, g.Key = "http://127.0.0.1:8080", "gth_secret"
		code := run(*g, []string{"mcp", "install", agent, "--name", "files", "--", "server", "/a b"})
		if out := stdout.String(); code != 0 || !strings.Contains(out, want) || strings.Contains(out, "gth_secret") {
			t.Errorf("%s: exit code %d\n%s", agent, code, out)
		}
	}
	for _, c := range []struct {
		name, header, want string
		code               int
	}{
		{"crm", "Authorization=Bearer ${CRM_TOKEN}", `env_vars = ["GATEHOUSE_KEY","CRM_TOKEN"]`, 0},
		{"crm", "Authorization=ab$cd $1 ${A}${B} ${", `env_vars = ["GATEHOUSE_KEY","A","B"]`, 0},
		{"crm", "Authorization", "", 2}, {"../crm", "A=b", "", 2},
	} {
		g, stdout, stderr := testGlobals(t)
		g.URL = "http://127.0.0.1:8080"
		code := run(*g, []string{"mcp", "install", "codex", "--name", c.name, "--upstream", "https://crm.example/mcp",
			"--header", c.header})
		if code != c.code || !strings.Contains(stdout.String(), c.want) {
			t.Errorf("%+v: exit code %d\n%s%s", c, code, stdout, stderr)
		}
	}
}

// TestMCPAdd declares a connector in configuration files, and refuses a file that it cannot edit.
func TestMCPAdd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source, want string
	}{
		"empty":  {"", "connectors:\n  \"mcp:notes\": {type: mcp}\n"},
		"absent": {"dispatch: {hold: 0s}", "dispatch: {hold: 0s}\nconnectors:\n  \"mcp:notes\": {type: mcp}\n"},
		"indented": {
			"connectors: \n    # mine\n    \"mcp:a\": {type: mcp}\n",
			"connectors: \n    \"mcp:notes\": {type: mcp}\n    # mine\n    \"mcp:a\": {type: mcp}\n",
		},
		"there":  {"connectors: {\"mcp:notes\": {type: mcp}}\n", "connectors: {\"mcp:notes\": {type: mcp}}\n"},
		"inline": {"connectors: {\"mcp:a\": {type: mcp}}\n", ""},
	} {
		dir := t.TempDir()
		file, real := dir+"/gatehouse.yaml", dir+"/real.yaml"
		must(t, os.WriteFile(real, []byte(c.source), 0o600))
		must(t, os.WriteFile(file+".new", []byte("mine"), 0o600))
		must(t, os.Symlink(real, file))
		g, stdout, stderr := testGlobals(t)
		code := run(*g, []string{"mcp", "add", "--config", file, "notes", "--", "server", "--dir", "/a b"})
		got, err := os.ReadFile(file)
		must(t, err)
		if other, err := os.ReadFile(file + ".new"); err != nil || string(other) != "mine" {
			t.Errorf("%s: the file beside it: %q, %v", name, other, err)
		}
		if c.want == "" {
			if code == 0 || string(got) != c.source || !strings.Contains(stderr.String(), `"mcp:notes": {type: mcp}`) {
				t.Errorf("%s: exit code %d\n%s\n%s", name, code, got, stderr)
			}
			continue
		}
		const line = "mcp proxy --name notes -- server --dir '/a b'\n"
		if code != 0 || string(got) != c.want || !strings.HasSuffix(stdout.String(), line) {
			t.Errorf("%s: exit code %d\n%s\n%s%s", name, code, got, stdout, stderr)
		}
		info, err := os.Stat(real)
		must(t, err)
		if link, err := os.Readlink(file); err != nil || link != real || info.Mode() != 0o600 {
			t.Errorf("%s: the file has mode %v, its link leads to %q, %v", name, info.Mode(), link, err)
		}
	}
}
