package cli

import (
	"os"
	"os/exec"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gatehouse-dev/gatehouse"
)

// TestMCPSDKClient puts the official SDK's client, which probes for the newest protocol,
// before the proxy: it lists, has a call approved, and reads a rejection.
func TestMCPSDKClient(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	args := append([]string{"mcp", "proxy", "--name", "peer", "--state", w.state, "--"}, w.command...)
	command := exec.Command(watched, args...)
	command.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_KEY="+w.bot.Key)
	agent := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
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
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 6 {
		t.Fatalf("%v: %+v", err, tools)
	}
	for _, d := range []gatehouse.DecisionKind{gatehouse.Approve, gatehouse.Reject} {
		type answer struct {
			result *sdk.CallToolResult
			err    error
		}
		got := make(chan answer, 1)
		go func() {
			r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "append", Arguments: map[string]any{"text": d}})
			got <- answer{r, err}
		}()
		w.decide(w.pending("append"), d, "because")
		a := <-got
		if a.err != nil {
			t.Fatalf("%s: %v", d, a.err)
		}
		if a.result.IsError != (d == gatehouse.Reject) {
			t.Errorf("%s: %+v", d, a.result)
		}
	}
	w.wrote("approved")
}
