package client

import (
	"strings"
	"testing"
)

// TestKeepResult: a result that the server would refuse is left out of the receipt.
func TestKeepResult(t *testing.T) {
	t.Parallel()
	nested := func(depth int) (value any) {
		for range depth {
			value = []any{value}
		}
		return value
	}
	for what, c := range map[string]struct {
		result any
		kept   bool
	}{
		"an object": {map[string]any{"ok": true}, true},
		"30 levels": {nested(30), true},
		"31 levels": {nested(31), false},
		"too long":  {strings.Repeat("x", maxKept), false},
		"not JSON":  {func() {}, false},
	} {
		if _, kept := keepResult(c.result).Get("result"); kept != c.kept {
			t.Errorf("%s: kept is %v", what, kept)
		}
	}
}
