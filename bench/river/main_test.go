package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/bench"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// Both sides execute their stored jobs, and are timed.
func TestRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := run(t.Context(),
		[]string{"--database-url", pgtest.Database(t), "--duration", "100ms", "--rounds", "2", "--json"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Lines []bench.Line }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	// Pushes, and steps 16 and 64 at a time, in rows and alone.
	if len(report.Lines) != 5 {
		t.Fatalf("%d lines: %s", len(report.Lines), out.Bytes())
	}
	for _, l := range report.Lines {
		wantLine(t, l)
	}
}

func wantLine(t *testing.T, l bench.Line) {
	t.Helper()
	if l.Rounds != 2 || l.Ours.Min <= 0 || l.Bare.Min <= 0 || l.Ratio.Min <= 0 || !strings.HasPrefix(l.Baseline, "River") {
		t.Errorf("%+v", l)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--database-url", "host=localhost"}} {
		if err := run(t.Context(), args, new(bytes.Buffer)); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
