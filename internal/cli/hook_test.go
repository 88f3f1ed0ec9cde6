package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gatehouse-dev/gatehouse"
)

// TestHooks runs the hooks as an agent does: with a call on stdin and the agent's answer format.
func TestHooks(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	type answer struct {
		Output struct {
			Event    string          `json:"hookEventName"`
			Decision string          `json:"permissionDecision"`
			Reason   string          `json:"permissionDecisionReason"`
			Input    json.RawMessage `json:"updatedInput"`
			Codex    struct {
				Behavior, Message string
			} `json:"decision"`
		} `json:"hookSpecificOutput"`
		code int
	}
	hook := func(agent, key, stdin string) (a answer) {
		cmd := exec.Command("gatehouse", "hook", agent, "--state", w.state, "--hold", "1s")
		cmd.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_KEY="+key)
		cmd.Stdin = strings.NewReader(stdin)
		out, _ := cmd.Output()
		if err := json.Unmarshal(out, &a); err != nil {
			t.Fatalf("%v: %q", err, out)
		}
		a.code = cmd.ProcessState.ExitCode()
		return a
	}
	call := func(tool, id, input string) string {
		return `{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"` + tool + `","tool_use_id":"` + id +
			`","tool_input":` + input + `}`
	}
	bash := call("Bash", "1", `{"command":"rm -r build", "timeout":60.0}`)
	got := hook("claude-code", w.bot.Key, bash)
	if got.Output.Decision != "deny" || !strings.Contains(got.Output.Reason, "waits for a person") || got.code != 0 {
		t.Errorf("pending: %+v", got)
	}
	a := w.pending("bash")
	if a.Connector != "mcp:claude-code" || a.Operation != "Bash" {
		t.Errorf("proposed %+v", a)
	}
	w.decide(a, gatehouse.Approve, "")
	// A model that tries again makes a new call.
	got = hook("claude-code", w.bot.Key, call("Bash", "2", `{"timeout":60.0,"command":"rm -r build"}`))
	if got.Output.Decision != "allow" || got.Output.Event != "PreToolUse" ||
		string(got.Output.Input) != `{"command":"rm -r build","timeout":60.0}` {
		t.Errorf("approved: %+v", got)
	}
	got = hook("claude-code", w.bot.Key, bash)
	b := w.pending("bash")
	if got.Output.Decision != "deny" || b.ID == a.ID || !strings.Contains(got.Output.Reason, b.ID) {
		t.Errorf("a second time: %+v", got)
	}
	w.decide(b, gatehouse.Reject, "not that")
	if got = hook("claude-code", w.bot.Key, bash); !strings.Contains(got.Output.Reason, "not that") {
		t.Errorf("rejected: %+v", got)
	}
	got = hook("claude-code", w.bot.Key, call("Bash", "1", `{"command":"rm -r /"}`))
	if got.Output.Decision != "deny" || !strings.Contains(got.Output.Reason, w.pending("bash").ID) {
		t.Errorf("other input under the same id: %+v", got)
	}
	if got = hook("claude-code", w.bot.Key, call("note", "2", `{}`)); got.Output.Decision != "allow" {
		t.Errorf("allowed by the policy: %+v", got)
	}
	for name, test := range map[string]struct{ key, stdin string }{
		"a wrong key": {"gth_wrong", bash}, "no JSON": {w.bot.Key, "hello"}, "nothing": {w.bot.Key, ""},
		"a member twice": {w.bot.Key, `{"tool_name":"a","tool_name":"b","tool_input":{}}`},
		"no input":       {w.bot.Key, `{"tool_name":"Bash"}`},
	} {
		if got := hook("claude-code", test.key, test.stdin); got.Output.Decision != "deny" || got.code != exitBlock {
			t.Errorf("%s: %+v", name, got)
		}
	}
	got = hook("codex", w.bot.Key, call("note", "3", `{}`))
	if got.Output.Codex.Behavior != "allow" || got.Output.Event != "PermissionRequest" {
		t.Errorf("codex: %+v", got)
	}
	got = hook("codex", w.bot.Key, call("shell", "4", `{}`))
	if got.Output.Codex.Behavior != "deny" || got.Output.Codex.Message == "" {
		t.Errorf("codex: %+v", got)
	}
}

// TestHooksEdited: Claude Code runs the call that a reviewer edited; Codex can run only its own
// input, so it does not run the call.
func TestHooksEdited(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	hook := func(agent string) string {
		cmd := exec.Command("gatehouse", "hook", agent, "--state", w.state, "--hold", "1s")
		cmd.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_KEY="+w.bot.Key)
		cmd.Stdin = strings.NewReader(`{"tool_name":"Bash","tool_input":{"command":"rm -r build"}}`)
		out, err := cmd.Output()
		must(t, err)
		return string(out)
	}
	for agent, want := range map[string]string{
		"claude-code": `"updatedInput":{"command":"rm -r build/tmp"}`, "codex": `"behavior":"deny"`,
	} {
		hook(agent)
		w.edit(w.pending("bash"), gatehouse.EditRequest{Patch: `{"command":"rm -r build/tmp"}`, Approve: true})
		if got := hook(agent); !strings.Contains(got, want) || !strings.Contains(got, "build/tmp") {
			t.Errorf("%s: %s", agent, got)
		}
	}
	page, err := w.admin.ListActions(t.Context(), gatehouse.ActionFilter{Status: gatehouse.StatusFailed})
	if err != nil || len(page.Items) != 1 || page.Items[0].Failure.Code != "edited" {
		t.Errorf("what codex did not run: %v %+v", err, page.Items)
	}
}

// TestHooksAtOnce: one approval lets only one of several simultaneous equal calls through.
func TestHooksAtOnce(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	const calls = 3
	said := make(chan string, calls)
	for range calls {
		go func() {
			cmd := exec.Command("gatehouse", "hook", "claude-code", "--state", w.state, "--hold", "5s")
			cmd.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_KEY="+w.bot.Key)
			cmd.Stdin = strings.NewReader(`{"tool_name":"Bash","tool_input":{"command":"make"}}`)
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			said <- string(out)
		}()
	}
	w.decide(w.pending("bash"), gatehouse.Approve, "")
	allowed := 0
	for range calls {
		if strings.Contains(<-said, `"permissionDecision":"allow"`) {
			allowed++
		}
	}
	if allowed != 1 {
		t.Errorf("%d calls were let through, want 1", allowed)
	}
}

// TestPermissionPrompt asks the tool approve as Claude Code does.
func TestPermissionPrompt(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	command := exec.Command(watched, "mcp", "serve", "--prompt", "claude-code", "--state", w.state)
	command.Env = append(os.Environ(), "GATEHOUSE_URL="+w.server.URL, "GATEHOUSE_KEY="+w.bot.Key)
	agent := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	c, err := agent.Connect(t.Context(), &sdk.CommandTransport{Command: command}, nil)
	must(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	ask := func(tool, input string) <-chan string {
		said := make(chan string, 1)
		go func() {
			r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "approve", Arguments: json.RawMessage(
				`{"tool_name":"` + tool + `","input":` + input + `,"tool_use_id":"toolu_1"}`)})
			if err != nil {
				said <- err.Error()
				return
			}
			text, ok := r.Content[0].(*sdk.TextContent)
			if !ok {
				said <- fmt.Sprintf("%+v", r.Content[0])
				return
			}
			said <- text.Text
		}()
		return said
	}
	if got := <-ask("note", `{"text":"a"}`); got != `{"behavior":"allow","updatedInput":{"text":"a"}}` {
		t.Errorf("allowed: %s", got)
	}
	for decision, want := range map[gatehouse.DecisionKind]string{
		gatehouse.Approve: `{"behavior":"allow","updatedInput":{"command":"approved"}}`,
		gatehouse.Reject:  `{"behavior":"deny","message":`,
	} {
		said := ask("Bash", `{"command":"`+string(decision)+`"}`)
		w.decide(w.pending("bash"), decision, "not in production")
		got := <-said
		if !strings.HasPrefix(got, want) || decision == gatehouse.Reject && !strings.Contains(got, "not in production") {
			t.Errorf("%s: %s", decision, got)
		}
	}
	if got := <-ask("Bash", `"rm"`); got !=
		`{"behavior":"deny","message":"The call does not run: input is not an object"}` {
		t.Errorf("an input that is not an object: %s", got)
	}
}
