package mcp

import (
	"strings"
	"testing"
)

// TestKeptDepth: a result that is nested too deep for the request that reports it is kept in part.
func TestKeptDepth(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]string{keptDepth: "result", keptDepth + 1: "excerpt"} {
		out := keepResult([]byte(strings.Repeat("[", depth) + strings.Repeat("]", depth)))
		if _, ok := out.Get(want); !ok {
			t.Errorf("%d levels: %s, want %s", depth, out, want)
		}
	}
}
