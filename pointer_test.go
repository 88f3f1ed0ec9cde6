package gatehouse_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
)

func TestPointers(t *testing.T) {
	t.Parallel()
	for pointer, steps := range map[string][]string{
		"/a": {"a"}, "/": {""}, "//": {"", ""}, "/a~1b/~0/0": {"a/b", "~", "0"}, "/~01/~0~1": {"~1", "~/"},
	} {
		if got := gatehouse.JoinPointer(steps...); got != pointer {
			t.Errorf("JoinPointer(%q) is %q, want %q", steps, got, pointer)
		}
		if got := gatehouse.SplitPointer(pointer); !slices.Equal(got, steps) {
			t.Errorf("SplitPointer(%q) is %q, want %q", pointer, got, steps)
		}
	}
	if got := gatehouse.JoinPointer(); got != "" {
		t.Errorf("no steps: %q", got)
	}
	for pointer, want := range map[string][]string{"a/b": {"a", "b"}, "": {""}, "/~/~2~": {"~", "~2~"}} {
		if got := gatehouse.SplitPointer(pointer); !slices.Equal(got, want) {
			t.Errorf("SplitPointer(%q) is %q, want %q", pointer, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.StringOf(rapid.SampledFrom([]rune("~/01a"))), 1, 4).Draw(t, "steps")
		if got := gatehouse.SplitPointer(gatehouse.JoinPointer(steps...)); !slices.Equal(got, steps) {
			t.Fatalf("%q became %q", steps, got)
		}
	})
}
