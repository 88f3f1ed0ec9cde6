package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// remotePeer serves the peer over HTTP to clients that send its token, and returns the command of a
// proxy in front of it.
func (w *mcpWorld) remotePeer(options *sdk.StreamableHTTPOptions) *exec.Cmd {
	w.Helper()
	s := newPeer(w.dir)
	sdk.AddTool(s, &sdk.Tool{
		Name: "move", Description: "Repeats its argument in a header.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string","x-mcp-header":"To"}}}`),
	}, func(_ context.Context, _ *sdk.CallToolRequest, in map[string]any) (*sdk.CallToolResult, any, error) {
		to, _ := in["to"].(string)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "moved to " + to}}}, nil, nil
	})
	mcp := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, options)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of-the-peer" {
			http.Error(rw, "who are you?", http.StatusUnauthorized)
			return
		}
		mcp.ServeHTTP(rw, r)
	}))
	w.Cleanup(server.Close)
	cmd := exec.Command(watched, "mcp", "proxy", "--name", "peer", "--state", w.state,
		"--upstream", server.URL+"/mcp", "--header", "Authorization=Bearer ${PEER_TOKEN}")
	cmd.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_KEY="+w.bot.Key, "PEER_TOKEN=of-the-peer")
	return cmd
}

// TestMCPRemote puts the proxy in front of servers over HTTP, for a legacy client: with
// sessions, without, with events and with JSON.
func TestMCPRemote(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]*sdk.StreamableHTTPOptions{
		"sessions": {}, "stateless": {Stateless: true}, "json": {JSONResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMCPWorld(t)
			c := w.start(w.remotePeer(options))
			if got := len(c.request("tools/list", `{}`).Result.Tools); got != 7 {
				t.Errorf("%d tools", got)
			}
			for range 2 {
				if got := c.call("note", `{"text":"x"}`); got.IsError || got.text() != "wrote x" {
					t.Errorf("%+v", got)
				}
			}
			id := c.begin("tools/call", callOf("append", `{"text":"a"}`))
			w.decide(w.pending("append"), gatehouse.Approve, "")
			if got := c.await(id).Result; got.IsError || got.text() != "wrote a" {
				t.Errorf("%+v", got)
			}
			w.wrote("x", "x", "a")
			c.close()
			if strings.Contains(c.stderr.String(), "of-the-peer") {
				t.Errorf("the log holds the server's token:\n%s", &c.stderr)
			}
		})
	}
}

// TestMCPRemoteModern puts the official SDK's client, which speaks the protocol of
// 2026-07-28, before the proxy, and a server of that protocol behind it.
func TestMCPRemoteModern(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	agent := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	command := w.remotePeer(&sdk.StreamableHTTPOptions{Stateless: true})
	c, err := agent.Connect(t.Context(), &sdk.CommandTransport{Command: command}, nil)
	must(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if got := c.InitializeResult(); got.ProtocolVersion != "2026-07-28" || got.Instructions != "Append lines." {
		t.Errorf("%+v", got)
	}
	type answer struct {
		result *sdk.CallToolResult
		err    error
	}
	for tool, want := range map[string]string{"append": "wrote Zürich", "move": "moved to Zürich"} {
		got := make(chan answer, 1)
		go func() {
			arguments := map[string]any{"to": "Zürich"}
			if tool == "append" {
				arguments = map[string]any{"text": "Zürich"}
			}
			r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
			got <- answer{r, err}
		}()
		w.decide(w.pending(tool), gatehouse.Approve, "")
		a := <-got
		if a.err != nil {
			t.Fatal(a.err)
		}
		if text, _ := a.result.Content[0].(*sdk.TextContent); a.result.IsError || text == nil || text.Text != want {
			t.Errorf("%s: %+v", tool, a.result.Content[0])
		}
	}
	w.wrote("Zürich")
}

// TestMCPRemoteRefused: if the server refuses the proxy's token, the agent gets an error. Wrong flags
// are usage errors.
func TestMCPRemoteRefused(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	cmd := w.remotePeer(&sdk.StreamableHTTPOptions{})
	cmd.Env = append(cmd.Env, "PEER_TOKEN=guessed")
	c := w.launch(cmd)
	if got := c.request("initialize", `{"protocolVersion":"2025-11-25"}`); got.Error == nil ||
		!strings.Contains(got.Error.Message, "401") {
		t.Errorf("initialize: %s", got.raw)
	}
	for _, args := range [][]string{
		{"--upstream", "http://mcp.example.com/", "--header", "A=b"},
		{"--upstream", "https://127.0.0.1:1/", "--header", "A=${NOT_SET_ANYWHERE}"},
		{"--upstream", "https://127.0.0.1:1/", "--header", "no value"},
		{"--upstream", "https://127.0.0.1:1/", "--", "cat"},
		{"--header", "A=b", "--", "cat"},
		{"--upstream", "https://127.0.0.1:1/", "--env", "A=b"},
		{},
	} {
		cmd := exec.Command(watched, append([]string{"mcp", "proxy", "--name", "peer", "--state", t.TempDir()}, args...)...)
		cmd.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_KEY="+w.bot.Key)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != term.ExitUsage || !strings.Contains(string(out), "--") {
			t.Errorf("%v: exit code %d\n%s", args, cmd.ProcessState.ExitCode(), out)
		}
	}
}
