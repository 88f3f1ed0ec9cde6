package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
)

// TestPreviewIsSeenFirst: a preview that differs from the proposal must be on the screen before an
// approval. A preview that matches need not be, and leaves out the fields of the change.
func TestPreviewIsSeenFirst(t *testing.T) {
	t.Parallel()
	a := &gatehouse.Action{ID: "act_1", Status: gatehouse.StatusPending, Approval: &gatehouse.Approval{Required: 1}}
	a.Connector, a.Operation, a.ProposedChange = "shop", "update", `{"price":"12.50"}`
	page := func(p *gatehouse.Preview) (payload int, seen string) {
		out := cardPage(a, view{width: 80, preview: sheet.Preview{Answer: p}})
		return out.payload, strings.Join(out.lines[:out.payload], "\n")
	}
	change := gatehouse.PreviewChange{Path: "/price", After: `"12.50"`, How: gatehouse.PreviewAsProposed}
	without, _ := page(nil)
	good := &gatehouse.Preview{Rows: 1, Changes: []gatehouse.PreviewChange{change}}
	if n, seen := page(good); n != without {
		t.Errorf("%d lines are to be seen instead of %d: %s", n, without, seen)
	}
	lines := (sheet.Preview{Answer: good}).Lines(a, time.Time{})
	if slices.ContainsFunc(lines, func(l sheet.PreviewLine) bool {
		return strings.Contains(l.Text, "price")
	}) {
		t.Errorf("the change is repeated: %v", lines)
	}
	refused := &gatehouse.Preview{Failure: &gatehouse.PreviewFailure{Code: "x", Detail: "the books are closed"}}
	if n, seen := page(refused); n <= without || !strings.Contains(seen, "the books are closed") {
		t.Errorf("the refusal need not be seen: %s", seen)
	}
}
