package term

import (
	"slices"
	"testing"
)

func TestShortIDs(t *testing.T) {
	t.Parallel()
	g, _, _ := piped(t)
	ids := []string{
		"act_01a20778634e7a9d97a8f46f86fe11a2", "act_01a20778634e7a9d97a8f46f86fe11a3",
		"act_01a207786350770097a8f46f86fe11a2", "act_1", "act_01a20778634e7a9d97a8f46f86fe11a2",
	}
	if got := g.shortIDs(ids); !slices.Equal(got, ids) {
		t.Errorf("piped: %q", got)
	}
	g.TTY = true
	want := []string{ids[0], ids[1], "act_01a207786350", "act_1", ids[0]}
	if got := g.shortIDs(ids); !slices.Equal(got, want) {
		t.Errorf("on a terminal: %q", got)
	}
}
