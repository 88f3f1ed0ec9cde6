package cli

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// modernParams returns the params of a tools/call in MCP 2026-07-28, with requestState unless state is "".
func modernParams(tool, arguments, state string) string {
	params := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}},` + callOf(tool, arguments)[1:]
	if state != "" {
		params = `{"requestState":` + string(gatehouse.StringJSON(state)) + `,` + params[1:]
	}
	return params
}

// TestMCPRounds: a client of MCP 2026-07-28 repeats its call with the requestState of the answer before, and
// gets the result once the call is approved. A requestState that was used before is refused.
func TestMCPRounds(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	c := w.proxyModern("--hold", "100ms")
	got := c.request("tools/call", modernParams("append", `{"text":"a"}`, ""))
	if got.Result == nil || got.Result.Type != "input_required" || got.Result.State == "" ||
		got.Result.Meta.Action.Status != "pending" {
		t.Fatalf("%s", got.raw)
	}
	first := got.Result.State
	got = c.request("tools/call", modernParams("append", `{"text":"a"}`, first))
	if got.Result == nil || got.Result.Type != "input_required" || got.Result.State == first {
		t.Fatalf("%s", got.raw)
	}
	a := w.pending("append")
	w.decide(a, gatehouse.Approve, "")
	if used := c.request("tools/call", modernParams("append", `{"text":"a"}`, first)); used.Error == nil ||
		used.Error.Code != -32602 {
		t.Errorf("a used requestState: %s", used.raw)
	}
	for got.Result != nil && got.Result.Type == "input_required" { // until it is carried out
		got = c.request("tools/call", modernParams("append", `{"text":"a"}`, got.Result.State))
	}
	if got.Result == nil || got.Result.text() != "wrote a" || got.Result.IsError {
		t.Errorf("%s", got.raw)
	}
	w.wrote("a")
}
