package mcp

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestRetried: the result of a second attempt replaces an earlier attempt whose outcome only the gate knows, and no
// other.
func TestRetried(t *testing.T) {
	t.Parallel()
	e := newExecuted()
	e.begin("act_1")
	e.settle("act_1", func(*execution) {})
	e.begin("act_1")
	e.settle("act_1", func(x *execution) {
		x.result, x.action = []byte("{}"), &gatehouse.Action{ID: "act_1"}
	})
	if x := e.of("act_1"); string(x.result) != "{}" {
		t.Errorf("the result of the second attempt is %q", x.result)
	}
	e.begin("act_1")
	if x := e.of("act_1"); string(x.result) != "{}" || len(e.order) != 1 {
		t.Errorf("a result that the server has given is %q, in order %q", x.result, e.order)
	}
}

// TestReleased: a call that stops waiting does not take the result from another one that waits for the same action, and
// results that were received do not count against maxExecuted.
func TestReleased(t *testing.T) {
	t.Parallel()
	e := newExecuted()
	waits := e.of("act_1")
	waits.begun.Store(true)
	e.release("act_1", false)
	e.settle("act_1", func(x *execution) { x.result = []byte("{}") })
	select {
	case <-waits.done:
	default:
		t.Fatal("the call that waits never learns the result")
	}

	e.release("act_1", true)
	if x := e.of("act_1"); x.result != nil {
		t.Error("a result is kept after a client received it")
	}
	if len(e.order) != 0 {
		t.Errorf("received results are kept in order: %q", e.order)
	}
}
