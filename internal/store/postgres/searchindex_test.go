package postgres

import "testing"

// TestSearchHead: row numbers are complete only when every transaction that began before they were read has
// ended, and maxForeignTx has passed, since the start of another role's transaction is not visible.
func TestSearchHead(t *testing.T) {
	t.Parallel()
	const second = 1_000_000
	var h searchHead
	for i, step := range []struct{ seq, now, oldest, complete int64 }{
		{100, 10 * second, 9 * second, 0},
		{200, 13 * second, 9 * second, 0},  // one is still under way
		{300, 13 * second, 10 * second, 0}, // it may have begun in that moment
		{300, 13 * second, 11 * second, 100},
		{400, 14 * second, 14 * second, 100}, // one of another role may be under way
		{500, 16 * second, 16 * second, 300},
		{500, 20 * second, 20 * second, 500},
	} {
		h.advance(step.seq, step.now, step.oldest)
		if got := h.completeUpTo(); got != step.complete {
			t.Errorf("step %d: complete up to %d, want %d", i, got, step.complete)
		}
	}
}
