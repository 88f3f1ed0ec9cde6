package mcp

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestReversed: the model learns that its call was undone.
func TestReversed(t *testing.T) {
	t.Parallel()
	got := describe(&gatehouse.Action{ID: "act_1", Status: gatehouse.StatusReversed})
	if !strings.HasSuffix(got, " was carried out and later reversed.") {
		t.Error(got)
	}
}
