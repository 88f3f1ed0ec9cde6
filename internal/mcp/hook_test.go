package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestHookFolder: the same call in another working directory is another action, and reviewers see
// the directory.
func TestHookFolder(t *testing.T) {
	t.Parallel()
	folder, err := OpenFolder(t.TempDir())
	must(t, err)
	gate := &pendingGate{byKey: map[string]*gatehouse.Action{}, decided: make(chan struct{})}
	h := &Hook{Agent: "claude-code", Gate: keyed{gate, "a"}, Folder: folder, Hold: time.Millisecond}
	for _, cwd := range []string{`,"cwd":"/srv/a"`, `,"cwd":"/srv/b"`, "", `,"cwd":"/srv/a"`} {
		input := `{"tool_name":"Bash","tool_input":{"command":"rm -rf build"}` + cwd + `}`
		c, err := ReadHookCall(strings.NewReader(input))
		must(t, err)
		_, err = h.Ask(t.Context(), c)
		must(t, err)
	}
	var contexts []string
	for _, a := range gate.byKey {
		contexts = append(contexts, string(a.Context))
	}
	slices.Sort(contexts)
	want := `["" "{\"working_directory\":\"/srv/a\"}" "{\"working_directory\":\"/srv/b\"}"]`
	if got := fmt.Sprintf("%q", contexts); got != want {
		t.Errorf("the actions have the contexts %s, want %s", got, want)
	}
}

// TestHookEdited: an agent that can run only its own input does not run an edited call, even if another program has
// reported the call as carried out.
func TestHookEdited(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		folder, err := OpenFolder(t.TempDir())
		must(t, err)
		h := &Hook{Agent: "codex", Gate: editedGate{}, Folder: folder, Hold: time.Millisecond, OwnInput: own}
		answer, err := h.Ask(t.Context(), &HookCall{Tool: "Bash", Input: `{"command":"make"}`})
		must(t, err)
		if answer.Allow == own || !strings.Contains(answer.Reason, "changed the arguments") {
			t.Errorf("with its own input only: %t, the answer is %+v", own, answer)
		}
	}
}

// editedGate answers each proposal with an applied action that a reviewer has edited.
type editedGate struct{ keyed }

func (editedGate) WhoAmI(context.Context) (*gatehouse.Principal, error) {
	return &gatehouse.Principal{ID: "prn_1"}, nil
}

func (editedGate) Propose(_ context.Context, p *gatehouse.Proposal) (*gatehouse.Action, bool, error) {
	return &gatehouse.Action{
		Proposal: *p, ID: "act_1", Status: gatehouse.StatusApplied, EditedBy: "ann", Edit: &gatehouse.Edit{Note: "safer"},
	}, false, nil
}

// leasingGate leases three pushes, and fails to complete the first.
type leasingGate struct {
	Gate
	completed []string
}

var errCompleting = errors.New("no answer")

func (g *leasingGate) LeasePushes(context.Context, gatehouse.PushLeaseRequest) ([]gatehouse.LeasedPush, error) {
	pushes := make([]gatehouse.LeasedPush, 3)
	for i := range pushes {
		pushes[i].Push = &gatehouse.Push{ID: fmt.Sprintf("psh_%d", i)}
	}
	return pushes, nil
}

func (g *leasingGate) CompletePush(_ context.Context, id string, _ gatehouse.PushResult) (*gatehouse.Push, error) {
	if id == "psh_0" {
		return nil, errCompleting
	}
	g.completed = append(g.completed, id)
	return &gatehouse.Push{}, nil
}

// TestHookCompletes: after a push that cannot be reported, the others are reported.
func TestHookCompletes(t *testing.T) {
	t.Parallel()
	gate := &leasingGate{}
	h := &Hook{Agent: "claude-code", Gate: gate}
	if err := h.complete(t.Context(), "mcp:claude-code", time.Second); !errors.Is(err, errCompleting) {
		t.Error(err)
	}
	if want := []string{"psh_1", "psh_2"}; !slices.Equal(gate.completed, want) {
		t.Errorf("completed %q, want %q", gate.completed, want)
	}
}
