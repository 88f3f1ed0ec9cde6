package version

import (
	"testing"
	"time"
)

// TestBuild: the linker's values take precedence over version control, and a date of another zone
// is reported in UTC.
func TestBuild(t *testing.T) { //nolint:paralleltest // sets what the linker sets
	defer func() { commit, date = "", "" }()
	commit, date = "c0ffee", "2026-01-02T15:04:05+02:00"
	b := Build()
	if want := time.Date(2026, 1, 2, 13, 4, 5, 0, time.UTC); b.Version != Number || b.Commit != "c0ffee" ||
		b.Date != want {
		t.Errorf("built from %+v", b)
	}
	commit, date = "", "yesterday"
	if b := Build(); !b.Date.IsZero() {
		t.Errorf("an invalid date is %v", b.Date)
	}
}
