package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// taskClient is a client of 2025-11-25 that calls a tool as a task, with the official SDK.
const taskClient = `
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
const [tool, command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'test', version: '1' }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
await client.listTools();
const stream = client.experimental.tasks.callToolStream({ name: tool, arguments: { text: 'a' } }, undefined,
  { task: { ttl: 60000 } });
for await (const m of stream) console.log(JSON.stringify(m));
await client.close();
`

// TestMCPTasks: a third-party client gets a task for a call that people have to approve, and then
// its result or rejection.
func TestMCPTasks(t *testing.T) {
	t.Parallel()
	for _, d := range []gatehouse.DecisionKind{gatehouse.Approve, gatehouse.Reject} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			w := newMCPWorld(t)
			// The package is resolved from where the script is.
			modules := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(filesystemServer(t)))))
			dir := t.TempDir()
			must(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
			script := filepath.Join(dir, "client.mjs")
			must(t, os.WriteFile(script, []byte(taskClient), 0o600))
			proxy := w.proxyCommand()
			cmd := exec.Command("node", append([]string{script, "append", proxy.Path}, proxy.Args[1:]...)...)
			cmd.Env = proxy.Env
			var out, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &stderr
			must(t, cmd.Start())
			w.decide(w.pending("append"), d, "not today")
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if !strings.HasPrefix(lines[0], `{"type":"taskCreated"`) ||
				!strings.Contains(lines[0], `"status":"working"`) {
				t.Errorf("%s", lines[0])
			}
			last, want := lines[len(lines)-1], "wrote a"
			if d == gatehouse.Reject {
				want = "not today"
			}
			if !strings.HasPrefix(last, `{"type":"result"`) || !strings.Contains(last, want) {
				t.Errorf("%s", out.String())
			}
		})
	}
}

// TestMCPTasksModern: a request that declares the extension gets a task, which has the result when
// it is carried out; an allowed call is answered at once. Canceling a task withdraws the question.
func TestMCPTasksModern(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	c := w.proxyModern()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	type task struct {
		Result struct {
			Type   string     `json:"resultType"`
			ID     string     `json:"taskId"`
			Status string     `json:"status"`
			Result *mcpResult `json:"result"`
		} `json:"result"`
	}
	ask := func(method, params string) (out task) {
		t.Helper()
		got := c.request(method, `{`+meta+`,`+params[1:])
		if err := json.Unmarshal([]byte(got.raw), &out); err != nil {
			t.Fatalf("%v: %s", err, got.raw)
		}
		return out
	}
	if got := c.request("server/discover", `{`+meta+`}`); !strings.Contains(got.raw,
		`"io.modelcontextprotocol/tasks":{}`) {
		t.Errorf("%s", got.raw)
	}
	if got := ask("tools/call", callOf("note", `{"text":"x"}`)); got.Result.Type == "task" {
		t.Errorf("an allowed call: %+v", got)
	}
	begun := ask("tools/call", callOf("append", `{"text":"a"}`))
	if begun.Result.Type != "task" || begun.Result.Status != "working" {
		t.Fatalf("%+v", begun)
	}
	of := `{"taskId":` + string(gatehouse.StringJSON(begun.Result.ID)) + `}`
	if got := ask("tasks/get", of); got.Result.Status != "working" {
		t.Errorf("%+v", got)
	}
	w.decide(w.pending("append"), gatehouse.Approve, "")
	var got task
	for got = ask("tasks/get", of); got.Result.Status == "working"; {
		got = ask("tasks/get", of)
	}
	if got.Result.Status != "completed" || got.Result.Result.text() != "wrote a" {
		t.Errorf("%+v", got)
	}
	w.wrote("x", "a")
	begun = ask("tools/call", callOf("append", `{"text":"b"}`))
	of = `{"taskId":` + string(gatehouse.StringJSON(begun.Result.ID)) + `}`
	if got := ask("tasks/cancel", of); got.Result.Type != "complete" {
		t.Errorf("%+v", got)
	}
	if got := ask("tasks/get", of); got.Result.Status != "cancelled" {
		t.Errorf("%+v", got)
	}
	page, err := w.admin.ListActions(t.Context(), gatehouse.ActionFilter{Status: gatehouse.StatusCanceled})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("canceled at the gate: %v, %+v", err, page)
	}
}

// TestMCPTasksReadOnly: a call that passes without an action does not become a task, and the tool
// list says so.
func TestMCPTasksReadOnly(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	c := w.proxy("--read-only-hint-is-read", "count")
	list := c.request("tools/list", `{}`).raw
	for tool, support := range map[string]string{"append": "optional", "count": "forbidden"} {
		var found struct {
			Result struct {
				Tools []struct {
					Name      string
					Execution struct {
						TaskSupport string `json:"taskSupport"`
					}
				}
			}
		}
		must(t, json.Unmarshal([]byte(list), &found))
		right := 0
		for _, got := range found.Result.Tools {
			if got.Name == tool && got.Execution.TaskSupport == support {
				right++
			}
		}
		if right != 1 {
			t.Errorf("%s: %s", tool, list)
		}
	}
	if got := c.request("tools/call", `{"name":"count","arguments":{},"task":{"ttl":1000}}`); got.Error == nil ||
		got.Error.Code != -32601 {
		t.Errorf("%s", got.raw)
	}
	if got := c.call("count", `{}`); got.text() != "0" {
		t.Errorf("%+v", got)
	}
}
