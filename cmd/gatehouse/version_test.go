package main

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/client"
)

// TestBuild: the linker's word stands above version control, a date of another
// zone is told in UTC, and a server tells what `gatehouse version` tells.
func TestBuild(t *testing.T) { //nolint:paralleltest // sets what the linker sets
	defer func() { commit, date = "", "" }()
	commit, date = "c0ffee", "2026-01-02T15:04:05+02:00"
	b := thisBuild()
	if want := time.Date(2026, 1, 2, 13, 4, 5, 0, time.UTC); b.Version != version || b.Commit != "c0ffee" ||
		b.Date != want {
		t.Errorf("built from %+v", b)
	}
	s, _, _ := testServer(t, []role{roleSweeper})
	defer s.Close()
	c, err := client.New(s.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Health(t.Context())
	if err != nil || h.Status != "ok" || h.Build != b {
		t.Errorf("the server tells %+v, %v", h, err)
	}
	commit, date = "", "yesterday"
	if b := thisBuild(); !b.Date.IsZero() {
		t.Errorf("a date that is none is %v", b.Date)
	}
}
