package postgres

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestFullCeilings: a ceiling that refused a claim counts as full for a while, and no other ceiling does.
func TestFullCeilings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f fullCeilings
		full := query{rows: []any{ceilingLock{1}, ceilingLock{2}}}
		if f.any(full) {
			t.Error("a ceiling that refused nothing counts as full")
		}
		f.add(2)
		if !f.any(full) {
			t.Error("a ceiling that refused a claim is not full")
		}
		if f.any(query{rows: []any{ceilingLock{1}, ceilingLock{3}}}) || f.any(query{}) {
			t.Error("another ceiling is full")
		}
		time.Sleep(fullFor)
		if f.any(full) {
			t.Errorf("the ceiling is full after %s", fullFor)
		}
		for i := range int64(2 * maxFull) {
			f.add(i)
		}
		if len(f.at) > maxFull {
			t.Errorf("%d ceilings are remembered", len(f.at))
		}
	})
}
