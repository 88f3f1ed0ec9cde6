package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/bench"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// smallest are the flags of the runs here, whose speed is not checked.
var smallest = []string{"--scale", "100", "--parked", "100", "--duration", "30ms", "--clients", "1,8"}

// A small run on SQLite prints each of its figures, with both sides, their ratio and the
// requested number of rounds.
func TestBench(t *testing.T) {
	t.Parallel()
	names := slices.DeleteFunc(bench.Names(), func(name string) bool { return name == "flat" }) // PostgreSQL's
	wantFigures(t, names, 1)
	wantFigures(t, []string{"decide"}, 2)
}

// The same on PostgreSQL: the bench creates its own databases and removes them, and leaves nothing
// in the given one.
func TestBenchPostgres(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t)
	databaseURL := cluster.DSN("postgres")
	// The others have no statements of their own for PostgreSQL.
	wantFigures(t, []string{"propose", "decide", "dispatch", "inbox", "process", "size", "steps", "flat"}, 1,
		"--database-url", databaseURL)
	conn, err := pgx.Connect(t.Context(), databaseURL)
	must(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	var left int
	if err := conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_database WHERE datname LIKE 'gatehouse%') +
  (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases and tables are left, %v", left, err)
	}
}

// wantFigures runs the bench and looks at each line that it prints.
func wantFigures(t *testing.T, names []string, rounds int, args ...string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "gatehouse",
		slices.Concat([]string{"bench", "--json", "--data", dir, "--only", strings.Join(names, ","),
			"--rounds", strconv.Itoa(rounds)}, smallest, args)...)
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, words.Bytes())
	}
	var report struct {
		Store string
		Lines []bench.Line
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	if report.Store == "" {
		t.Error("the machine is not described")
	}
	seen := map[string]int{}
	for _, l := range report.Lines {
		seen[l.Figure]++
		if l.Rounds != rounds || l.Unit == "" || l.Baseline == "" || l.Bare.Median <= 0 {
			t.Errorf("%s: %+v", l.Name, l)
		}
		// Memory may not grow, or may shrink.
		if grows := l.Figure == "process" && strings.HasPrefix(l.Name, "more memory"); !grows &&
			(l.Ours.Min <= 0 || l.Ratio.Min <= 0) {
			t.Errorf("%s: %+v", l.Name, l)
		}
	}
	for _, name := range names {
		if seen[name] == 0 {
			t.Errorf("the figure %s is not printed", name)
		}
	}
	wantEmpty(t, dir)
}

// An interrupt ends the bench soon, and nothing is left behind.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "gatehouse", "bench", "--only", "policy,decide", "--duration", "1h",
		"--clients", "1", "--data", dir)
	var words bytes.Buffer
	cmd.Stderr = &words
	must(t, cmd.Start())
	// The folder is created before anything is measured.
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		list, err := os.ReadDir(dir)
		must(t, err)
		if len(list) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the bench has not begun")
		}
	}
	must(t, cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != term.ExitCanceled {
		t.Errorf("ended with %v\n%s", err, words.Bytes())
	}
	wantEmpty(t, dir)
}

func TestBenchUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--scale", "0"}, {"--rounds", "0"}, {"--duration", "1us"}, {"--clients", "0"}, {"--only", "nothing"},
		{"--only", "flat"},
	} {
		g, _, words := testGlobals(t)
		if code := run(*g, slices.Concat([]string{"bench", "--data", t.TempDir()}, args)); code != term.ExitUsage {
			t.Errorf("bench %v: exit code %d: %s", args, code, words)
		}
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	d, err := os.Open(dir)
	must(t, err)
	defer func() { _ = d.Close() }()
	if names, err := d.Readdirnames(1); !errors.Is(err, io.EOF) {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
