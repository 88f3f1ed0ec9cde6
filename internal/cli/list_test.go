package cli

import (
	"context"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestCollectReadsOn: a page without items that has a cursor, as after a filter, does not end a list.
func TestCollectReadsOn(t *testing.T) {
	t.Parallel()
	pages := map[string]gatehouse.Page[int]{
		"": {NextCursor: "a"}, "a": {Items: []int{1}, NextCursor: "b"}, "b": {NextCursor: "c"}, "c": {Items: []int{2}},
	}
	read := func(_ context.Context, cursor string, _ int) (gatehouse.Page[int], error) { return pages[cursor], nil }
	for name, p := range map[string]*paging{"a limit": {Limit: 2}, "all": {Limit: 1, All: true}} {
		page, err := collect(t.Context(), p, read)
		if err != nil || !slices.Equal(page.Items, []int{1, 2}) || page.NextCursor != "" {
			t.Errorf("%s: %+v, %v", name, page, err)
		}
	}
}
