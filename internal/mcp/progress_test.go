package mcp

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestProgress: the server's progress on the proxy's own call reaches the
// watchers of the action, with their own tokens and only when it grows.
func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p, _ := newRecorded(t, &out)
	a := &gatehouse.Action{ID: "act_1"}
	stop := p.progress(t.Context(), &call{progress: []byte(`"mine"`)}, a)
	tell := func(action, progress string) {
		p.serverFrame(
			fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s}}`,
				progressToken(action), progress))
	}
	for _, progress := range []string{"0", "2", "1", "2", `"x"`, "3.5"} {
		tell("act_1", progress)
	}
	tell("act_2", "9")
	stop()
	tell("act_1", "10")
	want := ""
	for _, progress := range []string{"0", "2", "3.5"} {
		want += `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":` + progress +
			"}}\n"
	}
	if got := out.String(); got != want {
		t.Errorf("the client received %s", strings.TrimSpace(got))
	}
}

// TestProgressGrows: the progress of a waiting interval grows beside large numbers, too.
func TestProgressGrows(t *testing.T) {
	t.Parallel()
	for _, progress := range []float64{-1e300, -1, 0, 1, 1e10, 1e15, 1e300} {
		if next := after(progress); next <= progress {
			t.Errorf("%g follows %g", next, progress)
		}
	}
	if next := after(math.MaxFloat64); next != math.MaxFloat64 {
		t.Errorf("%g follows the largest number", next)
	}
}

// TestEarlyProgress: a call can report before the client's wait for it begins.
func TestEarlyProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p, _ := newRecorded(t, &out)
	tell := func(action string, progress int) {
		p.serverFrame(
			fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`,
				progressToken(action), progress))
	}
	p.done.of("act_1").begun.Store(true)
	for n := range maxEarly + 2 {
		tell("act_1", n)
	}
	tell("act_2", 1) // of a call that is not in progress
	p.progress(t.Context(), &call{progress: []byte(`"first"`)}, &gatehouse.Action{ID: "act_1"})()
	p.progress(t.Context(), &call{progress: []byte(`"second"`)}, &gatehouse.Action{ID: "act_1"})()
	p.progress(t.Context(), &call{progress: []byte(`"other"`)}, &gatehouse.Action{ID: "act_2"})()
	if got := strings.Count(out.String(), `"first"`); got != maxEarly || strings.Count(out.String(), "\n") != maxEarly {
		t.Errorf("the client received %s", out.String())
	}
}
