package cli

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// modernCall is a call of the protocol of 2026-07-28, with a requestState where there is
// one.
func modernCall(tool, arguments, state string) string {
	params := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}},` + callOf(tool, arguments)[1:]
	if state != "" {
		params = `{"requestState":` + string(gatehouse.StringJSON(state)) + `,` + params[1:]
	}
	return params
}

// TestMCPRounds: a client of the newer protocol waits in rounds, and gets the result of the call
// that was approved meanwhile; a used round is refused.
func TestMCPRounds(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	c := w.proxyModern("--hold", "100ms")
	got := c.request("tools/call", modernCall("append", `{"text":"a"}`, ""))
	if got.Result == nil || got.Result.Type != "input_required" || got.Result.State == "" ||
		got.Result.Meta.Action.Status != "pending" {
		t.Fatalf("%s", got.raw)
	}
	first := got.Result.State
	got = c.request("tools/call", modernCall("append", `{"text":"a"}`, first))
	if got.Result == nil || got.Result.Type != "input_required" || got.Result.State == first {
		t.Fatalf("%s", got.raw)
	}
	a := w.pending("append")
	w.decide(a, gatehouse.Approve, "")
	if used := c.request("tools/call", modernCall("append", `{"text":"a"}`, first)); used.Error == nil ||
		used.Error.Code != -32602 {
		t.Errorf("a used round: %s", used.raw)
	}
	for got.Result != nil && got.Result.Type == "input_required" { // until it is carried out
		got = c.request("tools/call", modernCall("append", `{"text":"a"}`, got.Result.State))
	}
	if got.Result == nil || got.Result.text() != "wrote a" || got.Result.IsError {
		t.Errorf("%s", got.raw)
	}
	w.wrote("a")
}
