package mcp

import (
	"bytes"
	"context"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gatehouse-dev/gatehouse"
)

// TestWrongArguments: an error names the argument and what it must be, before the gate is asked.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	const proposal = `"action_type":"a","connector":"c","operation":"o","proposed_change":{}`
	for _, tt := range []struct{ tool, arguments, want string }{
		{"get_action", ``, "/action_id is required"},
		{"cancel_action", `null`, "/action_id is required"},
		{"get_action", `{"action_id":null}`, "/action_id is required"},
		{"get_action", `{"action_id":""}`, "/action_id is required"},
		{"wait_action", `{"seconds":5}`, "/action_id is required"},
		{"answer_question", `{"action_id":"act_1","question":1}`, "/text is required"},
		{"revise_action", `{"action_id":"act_1"}`, "/action_type is required"},
		{"check_policy", `[1]`, "the arguments must be an object"},
		{"get_action", `{"action_id":"act_1","zz":1}`, `there is no argument "zz"`},
		{"get_action", `{"action_id":5}`, "/action_id must be a string"},
		{"wait_action", `{"action_id":"act_1","seconds":"5"}`, "/seconds must be an integer"},
		{"wait_action", `{"action_id":"act_1","seconds":1e30}`, "/seconds must be an integer"},
		{"list_actions", `{"limit":1.5}`, "/limit must be an integer"},
		{"propose_change", `{` + proposal + `,"target":"x"}`, "/target must be an object"},
		{"propose_change", `{` + proposal + `,"target":{"entity_ref":[]}}`, "/target/entity_ref must be a string"},
		{"propose_change", `{` + proposal + `,"target":{"entity":"x"}}`, "/target/entity is not known"},
		{"propose_change", `{` + proposal + `,"target":{},"expires_in":5}`, "/expires_in must be a string"},
		{"revise_action", `{"action_id":"act_1",` + proposal + `,"target":[]}`, "/target must be an object"},
	} {
		tools := serverTools()
		i := slices.IndexFunc(tools, func(tool tool) bool { return tool.name == tt.tool })
		if i < 0 {
			t.Errorf("there is no tool %s", tt.tool)
			continue
		}
		r := tools[i].call(t.Context(), nil, []byte(tt.arguments))
		if got := text(memberOf([]byte(r.Content[0].(*sdk.TextContent).Text), "detail")); got != tt.want || !r.IsError {
			t.Errorf("%s(%s): %q, want %q", tt.tool, tt.arguments, got, tt.want)
		}
	}
}

// TestErrorsOfCalls: a canceled call is not a gate that cannot be reached.
func TestErrorsOfCalls(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		&url.Error{Op: "Get", Err: context.Canceled}:         "canceled",
		&url.Error{Op: "Get", Err: context.DeadlineExceeded}: "unreachable",
		gatehouse.E(gatehouse.CodeTooLate, "applied"):        "too_late",
	} {
		r := toolResult(nil, err)
		if got := text(memberOf([]byte(r.Content[0].(*sdk.TextContent).Text), "code")); got != want || !r.IsError {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// TestFrames: a refused line is answered, and the next one is served.
func TestFrames(t *testing.T) {
	t.Parallel()
	good := `{"jsonrpc":"2.0","id":9,"method":"ping"}`
	for line, want := range map[string]string{
		`hello`:                     `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`,
		`{"jsonrpc":"2.0",`:         `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`,
		`[` + good + `]`:            `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"jsonrpc":"2.0","id":{}}`: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:              `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`: `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`,
	} {
		var out bytes.Buffer
		transport := Stdio(strings.NewReader(line+"\n"+good+"\n"), &out)
		passed, err := io.ReadAll(transport.Reader)
		if err != nil || string(passed) != good+"\n" || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: %v, passed %q, answered %q", line, err, passed, out.String())
		}
	}
}
