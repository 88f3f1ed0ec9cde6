package mcp

import "testing"

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
