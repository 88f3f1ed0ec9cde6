package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gatehouse-dev/gatehouse"
)

// permissionTool is the tool for Claude Code's --permission-prompt-tool: Claude
// Code asks this tool instead of a person at the terminal.
var permissionTool = &sdk.Tool{
	Name:        "approve",
	Description: "Asks the gate whether a call of the agent's own tools may run. For the agent, not for the model.",
	InputSchema: json.RawMessage(`{"type":"object","properties":{"tool_name":{"type":"string"},` +
		`"input":{"type":"object"},"tool_use_id":{"type":"string"}},"required":["tool_name","input"]}`),
}

// permit answers a permission prompt. Any error denies the call.
func (h *Hook) permit(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	c, err := parseHookCall(r.Params.Arguments, "input")
	answer := &HookAnswer{}
	if err == nil {
		answer, err = h.Ask(ctx, c)
	}
	if err != nil {
		answer = &HookAnswer{Reason: "The call does not run: " + err.Error()}
	}
	out := struct {
		Behavior string         `json:"behavior"`
		Input    gatehouse.JSON `json:"updatedInput,omitempty"`
		Message  string         `json:"message,omitempty"`
	}{Behavior: "deny", Message: answer.Reason}
	if answer.Allow {
		out.Behavior, out.Input, out.Message = "allow", answer.Input, ""
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(b)}}}, nil
}
