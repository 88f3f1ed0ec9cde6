package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func (k keyed) Cancel(context.Context, string) (*gatehouse.CancelAnswer, error) {
	return nil, gatehouse.E(gatehouse.CodeNotAwaitingApproval, "it is decided")
}

// about is an answer about a task, with the members that either protocol gives
// it.
type about struct {
	Result struct {
		Type   string `json:"resultType"`
		ID     string `json:"taskId"`
		Status string `json:"status"`
		Task   struct {
			ID     string `json:"taskId"`
			Status string `json:"status"`
			Poll   int    `json:"pollInterval"`
		} `json:"task"`
		Result json.RawMessage `json:"result"`
		Meta   json.RawMessage `json:"_meta"`
	} `json:"result"`
	Error struct {
		Code int `json:"code"`
	} `json:"error"`
	raw string
}

const declared = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

func (p *Proxy) inquire(t *testing.T, method, params string) (out about) {
	t.Helper()
	f, err := parseFrame([]byte(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`), clientDepth)
	must(t, err)
	handle := p.task
	if method == "tools/call" {
		handle = p.call
	}
	answer := handle(t.Context(), f)
	if err := json.Unmarshal(answer, &out); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	out.raw = string(answer)
	return out
}

// TestArgumentsOfOwnTools: a wrong argument is named, and the gate is not asked.
func TestArgumentsOfOwnTools(t *testing.T) {
	t.Parallel()
	p := newRounds(t, &pendingGate{}, newFolder(t, t.TempDir()), "a")
	for _, tt := range []struct{ tool, arguments, want string }{
		{waitName, `{}`, "/action_id is required"},
		{waitName, `{"id":"act_1"}`, `there is no argument \"id\"`},
		{waitName, `{"action_id":5}`, "/action_id must be a string"},
		{answerName, `{"action_id":"act_1","question":"1","text":"x"}`, "/question must be an integer"},
	} {
		got := p.inquire(t, "tools/call", `{"name":"`+tt.tool+`","arguments":`+tt.arguments+`}`)
		if !strings.Contains(got.raw, tt.want) {
			t.Errorf("%s(%s): %s, want %q", tt.tool, tt.arguments, got.raw, tt.want)
		}
	}
}

// TestTasks: a call that asks for a task gets one, in either protocol. The task
// reports the outcome as often as it is asked, but only to its principal.
func TestTasks(t *testing.T) {
	t.Parallel()
	gate := &pendingGate{byKey: map[string]*gatehouse.Action{}, decided: make(chan struct{})}
	folder := newFolder(t, t.TempDir())
	p, other := newRounds(t, gate, folder, "a"), newRounds(t, gate, folder, "b")
	elsewhere := newRounds(t, gate, newFolder(t, t.TempDir()), "a")
	legacy := p.inquire(t, "tools/call", `{"name":"write","arguments":{},"task":{"ttl":60000}}`)
	if legacy.Result.Task.Status != "working" || legacy.Result.Task.ID == "" || legacy.Result.Task.Poll != taskPoll {
		t.Fatalf("%s", legacy.raw)
	}
	modern := p.inquire(t, "tools/call", `{"name":"write","arguments":{},`+declared+`}`)
	if modern.Result.Type != "task" || modern.Result.Status != "working" || modern.Result.ID != legacy.Result.Task.ID {
		t.Fatalf("%s", modern.raw)
	}
	if gate.byKey == nil || len(gate.byKey) != 1 {
		t.Errorf("%d actions", len(gate.byKey))
	}
	id := legacy.Result.Task.ID
	of := func(id string) string { return `{"taskId":` + string(gatehouse.StringJSON(id)) + `}` }
	modernOf := func(id string) string { return `{"taskId":` + string(gatehouse.StringJSON(id)) + `,` + declared + `}` }
	undeclared := string(
		setMember([]byte(of(id)), "_meta", []byte(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`)),
	)
	if got := p.inquire(t, "tasks/get", of(id)); got.Result.Status != "working" {
		t.Errorf("%s", got.raw)
	}
	for name, c := range map[string]struct {
		got  about
		code int
	}{
		"another's":           {other.inquire(t, "tasks/get", of(id)), codeInvalidParams},
		"another's result":    {other.inquire(t, "tasks/result", of(id)), codeInvalidParams},
		"another's end":       {other.inquire(t, "tasks/cancel", modernOf(id)), codeInvalidParams},
		"another gate's":      {elsewhere.inquire(t, "tasks/get", of(id)), codeInvalidParams},
		"an action's id":      {p.inquire(t, "tasks/get", of("act_a_1")), codeInvalidParams},
		"changed":             {p.inquire(t, "tasks/get", of("e"+id)), codeInvalidParams},
		"cut":                 {p.inquire(t, "tasks/get", of(id[:len(id)-1])), codeInvalidParams},
		"none":                {p.inquire(t, "tasks/get", `{}`), codeInvalidParams},
		"huge":                {p.inquire(t, "tasks/get", of(strings.Repeat("a", 1<<20))), codeInvalidParams},
		"list":                {p.inquire(t, "tasks/list", `{}`), codeNoMethod},
		"result of modern":    {p.inquire(t, "tasks/result", modernOf(id)), codeNoMethod},
		"undeclared":          {p.inquire(t, "tasks/get", undeclared), codeMissingCapability},
		"a decided one's end": {p.inquire(t, "tasks/cancel", of(id)), codeInvalidParams},
	} {
		if c.got.Error.Code != c.code {
			t.Errorf("%s: %s", name, c.got.raw)
		}
	}
	// A task's id is not accepted as a round, nor a round as a task's id.
	if got := p.say(t, `{}`, id); got.Error.Code != codeInvalidParams {
		t.Errorf("%+v", got)
	}
	if got := p.inquire(t, "tasks/get", of(p.say(t, `{}`, "").Result.State)); got.Error.Code != codeInvalidParams {
		t.Errorf("%s", got.raw)
	}
	close(gate.decided)
	for range 2 {
		if got := p.inquire(t, "tasks/get", of(id)); got.Result.Status != "completed" {
			t.Errorf("%s", got.raw)
		}
		if got := p.inquire(t, "tasks/result", of(id)); !strings.Contains(got.raw, "expired") ||
			!strings.Contains(string(got.Result.Meta), `"io.modelcontextprotocol/related-task":{"taskId":"`+id) {
			t.Errorf("%s", got.raw)
		}
		if got := p.inquire(t, "tasks/get", modernOf(id)); got.Result.Type != "complete" ||
			got.Result.Status != "completed" ||
			!strings.Contains(string(got.Result.Result), `"isError":true`) {
			t.Errorf("%s", got.raw)
		}
	}
	if got := p.inquire(t, "tasks/update", modernOf(id)); got.Result.Type != "complete" {
		t.Errorf("%s", got.raw)
	}
	if len(gate.byKey) != 1 {
		t.Errorf("%d actions", len(gate.byKey))
	}
}
