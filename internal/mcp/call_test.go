package mcp

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// losingGate stores a proposal and loses its answer while failing is set. It allows everything.
type losingGate struct {
	Gate
	failing error
	byKey   map[string]*gatehouse.Action
}

func (g *losingGate) Propose(_ context.Context, p *gatehouse.Proposal) (*gatehouse.Action, bool, error) {
	a, known := g.byKey[p.IdempotencyKey]
	if !known {
		a = &gatehouse.Action{Proposal: *p, ID: "act_" + p.IdempotencyKey[:8], Status: gatehouse.StatusApplied}
		g.byKey[p.IdempotencyKey] = a
	}
	return a, known, g.failing
}

// TestLostProposal: after the answer to a proposal is lost, the result does not say that nothing was
// carried out, and the next equal call joins the action that exists.
func TestLostProposal(t *testing.T) {
	t.Parallel()
	for name, failing := range map[string]error{
		"no answer": errors.New("EOF"), "an internal error": gatehouse.E(gatehouse.CodeInternal, "no"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newRecorded(t, io.Discard)
			gate := &losingGate{failing: failing, byKey: map[string]*gatehouse.Action{}}
			p.Gate = gate
			frame := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write"}}`
			f, err := parseFrame([]byte(frame), clientDepth)
			must(t, err)
			got := string(p.call(t.Context(), f))
			if !strings.Contains(got, `"unreachable"`) || strings.Contains(strings.ToLower(got), "nothing was carried") {
				t.Errorf("the client got %s", got)
			}
			gate.failing = nil
			p.Folder, err = OpenFolder(p.Folder.dir)
			must(t, err)
			for _, want := range []int{1, 2} { // the outcome was received, so the second call is a new one
				if p.call(t.Context(), f); len(gate.byKey) != want {
					t.Errorf("there are %d actions, want %d", len(gate.byKey), want)
				}
			}
		})
	}
}
