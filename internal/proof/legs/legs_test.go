package legs

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLog stores legs, reads them, sums the successful ones, and shows the
// failed ones.
func TestLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if all, err := Read(path); err != nil || all != nil {
		t.Fatalf("a log that is not there: %v, %v", all, err)
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, l := range []*Leg{
		{Storm: "crash", Engine: "sqlite", Seed: 1, Began: at, Seconds: 30,
			Counts: map[string]int{"SIGKILLs at random": 50, "SIGKILLs at failpoints": 2},
			Points: map[string]int{"decide/voted": 1, "decide/pushed": 1}},
		{Storm: "crash", Engine: "sqlite", Seed: 2, Began: at, Seconds: 31, Counts: map[string]int{"SIGKILLs at random": 40},
			Failed: true},
		{Storm: "crash", Engine: "postgres", Seed: 3, Began: at, Seconds: 32,
			Counts: map[string]int{"SIGKILLs at random": 25},
			Points: map[string]int{"decide/voted": 3, "decide/pushed": 2}},
	} {
		if err := Append(path, l); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Read(path)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d legs, %v", len(all), err)
	}
	if n := Sum(all, "crash", "sqlite", "SIGKILLs at random"); n != 50 {
		t.Errorf("%d on sqlite: a leg that failed proves nothing", n)
	}
	if n := Sum(all, "", "", "SIGKILLs at random"); n != 75 {
		t.Errorf("%d in all", n)
	}
	var out strings.Builder
	if err := Markdown(&out, all, []string{"decide/voted", "decide/pushed", "never/met"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Legs that failed: 1, of 3", "| SIGKILLs under load | 2000 | 52 | 25 | 1 |", "At each of 2 failpoints",
		"at least 1 times on SQLite and 2 times on PostgreSQL", "on at least one engine: `never/met`.",
		"| crash | sqlite | 2 | 2026-11-20 12:00:00 | 31s |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}
