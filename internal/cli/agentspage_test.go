package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// agentSession is an agent that calls the tool of gate.py with various outcomes. It prints what the
// model would read.
const agentSession = `
import os, gate
def tool_call(task, action_type, old, new):
    action, words = gate.propose_change(task, {"action_type": action_type, "entity_ref": "SKU-1042",
        "current_state": old, "proposed_change": new, "rationale": "as " + task})
    print(words, flush=True)
    return action.get("id")
assert tool_call("allowed", "note", {"colour": "red"}, {"colour": "blue"}) is None
tool_call("allowed", "note", {"tag": ""}, {"tag": "summer"})
first = tool_call("refused", "price_change", {"price": "10.00"}, {"price": "99.00"})
tool_call("approved", "price_change", {"price": "10.00"}, {"price": "12.00"})
tool_call("edited", "price_change", {"price": "12.00"}, {"price": "15.00"})
tool_call("stale", "note", {"tag": ""}, {"tag": "winter"})
assert tool_call("refused", "price_change", {"price": "10.00"}, {"price": "99.00"}) == first
try:
    tool_call("refused", "price_change", {"price": "10.00"}, {"price": "98.00"})
except RuntimeError as e:
    print(e)
os.environ["GATEHOUSE_KEY"] = "gth_nobody"
try:
    tool_call("nobody", "note", {"tag": "summer"}, {"tag": "winter"})
except RuntimeError as e:
    print(str(e).split(":")[0])
`

// TestAgentTool runs the tool of examples/agents/gate.py as an agent does, while a person decides,
// and checks that the schema in tool.json has exactly the members that the tool reads.
func TestAgentTool(t *testing.T) {
	t.Parallel()
	q := &quickstart{t: t, dir: t.TempDir()}
	source, err := os.ReadFile(filepath.Join("..", "..", "examples", "agents", "gate.py"))
	must(t, err)
	code := string(source)
	schema, err := os.ReadFile(filepath.Join("..", "..", "examples", "agents", "tool.json"))
	must(t, err)
	var tool struct {
		Input struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		} `json:"input_schema"`
	}
	must(t, json.Unmarshal(schema, &tool))
	for name := range tool.Input.Properties {
		if !strings.Contains(code, `tool_input["`+name+`"]`) {
			t.Errorf("the tool does not read %s", name)
		}
	}
	if n := strings.Count(code, "tool_input["); n != len(tool.Input.Properties) || n != len(tool.Input.Required) {
		t.Errorf("the tool reads %d members; the schema has %d, and requires %d", n, len(tool.Input.Properties),
			len(tool.Input.Required))
	}

	q.server = startDev(t, q.dir)
	admin := servetest.MustClient(t, strings.TrimSuffix(q.server.api, "/api/v1"), devEnv(t, q.dir, "admin"))
	q.write("gate.py", code)
	q.write("session.py", agentSession)
	var output bytes.Buffer
	cmd := q.command("bash", "-euc", `eval "$(gatehouse dev env --as agent)"; python3 session.py`)
	cmd.Stdout, cmd.Stderr = &output, &output
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	late := time.After(time.Minute)
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-late:
			_ = cmd.Process.Kill()
			t.Fatalf("the agent has not ended after a minute (%v):\n%s", <-ended, &output)
		case err := <-ended:
			invalid, rest, _ := strings.Cut(output.String(), "\n")
			if !strings.HasPrefix(invalid, "Not proposed. Correct it and call again: /proposed_change/colour ") {
				t.Errorf("for a column that does not exist the model reads %q", invalid)
			}
			want := `Applied.
Rejected by a person: too much, 12 at most
Applied.
A revision took its place, which changes {"price": "13.00"}. Applied.
Approved, but it failed at the target: target_changed`
			lines := strings.SplitAfter(rest, "\n")
			if err != nil || !strings.HasPrefix(rest, want) || len(lines) != 9 ||
				lines[5] != lines[1] || !strings.HasPrefix(lines[6], "duplicate_key: ") || lines[7] != "unauthenticated\n" {
				t.Errorf("%v, and the model reads\n%s", err, &output)
			}
			q.server.stop()
			return
		case <-tick.C:
			page, err := admin.ListActions(t.Context(), gatehouse.ActionFilter{Status: gatehouse.StatusPending})
			must(t, err)
			for _, a := range page.Items {
				if a.IdempotencyKey == "edited" {
					_, err := admin.Edit(t.Context(), a.ID, gatehouse.EditRequest{
						Digest: a.Digest, Note: "less", Patch: `{"price":"13.00"}`, Approve: true,
					})
					must(t, err)
					continue
				}
				d := gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}
				if a.IdempotencyKey == "refused" {
					d.Decision, d.Notes = gatehouse.Reject, "too much, 12 at most"
				}
				if _, err := admin.Decide(t.Context(), a.ID, d); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// impatientSession proposes once, without pauses between the calls.
const impatientSession = `
import gate
gate.time.sleep = lambda seconds: None
print(gate.propose_change("task", {"action_type": "note", "entity_ref": "SKU-1042", "current_state": {},
    "proposed_change": {"tag": "summer"}, "rationale": "why"})[1])
`

// TestAgentToolCallsAgain: a proxy's page, half an answer and half a problem are no answers of the gate.
func TestAgentToolCallsAgain(t *testing.T) {
	t.Parallel()
	half := func(w http.ResponseWriter, contentType string, status int) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"code": "busy`))
	}
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch calls.Add(1) {
		case 1:
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Retry-After", "Mon, 30 Nov 2026 10:00:00 GMT")
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte("<h1>Bad gateway</h1>"))
		case 2:
			half(w, "application/json", http.StatusCreated)
		case 3:
			half(w, "application/problem+json", http.StatusServiceUnavailable)
		case 4:
			_, _ = w.Write([]byte(`{"id": "act_1", "status": "applied"}`))
		default:
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	q := &quickstart{t: t, dir: t.TempDir()}
	source, err := os.ReadFile(filepath.Join("..", "..", "examples", "agents", "gate.py"))
	must(t, err)
	q.write("gate.py", string(source))
	q.write("session.py", impatientSession)
	session := func() string {
		cmd := q.command("python3", "session.py")
		cmd.Env = cleanEnv("GATEHOUSE_URL="+server.URL, "GATEHOUSE_KEY=gth_agent")
		out, _ := cmd.CombinedOutput() // the output says if it failed
		return string(out)
	}
	if said := session(); said != "Applied.\n" || calls.Load() != 4 {
		t.Errorf("after %d calls the model reads %s", calls.Load(), said)
	}
	// A wrong address is not called again.
	if said := session(); !strings.HasSuffix(said, "RuntimeError: HTTP 404: Not Found\n") || calls.Load() != 5 {
		t.Errorf("after %d calls: %s", calls.Load(), said)
	}
}
