package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TestEmptyDatabaseURL: an unset variable must not create a new store in the data folder.
func TestEmptyDatabaseURL(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"serve", "--database-url", "", "--listen", "nowhere"},
		{"init", "--database-url="},
		{"doctor", "--deep", "--database-url", " "},
		{"migrate-store", "--database-url", ""},
		{"serve", "--database-url", "postgres://127.0.0.1:1/x", "--database-connections", "1"},
	} {
		g, _, words := testGlobals(t)
		data := filepath.Join(t.TempDir(), "data")
		if code := run(*g, append(args, "--data", data)); code != term.ExitUsage ||
			!strings.Contains(words.String(), "--database-") {
			t.Errorf("%q: exit code %d: %s", args, code, words)
		}
		if _, err := os.Stat(data); err == nil {
			t.Errorf("%q made a data folder", args)
		}
	}
}

// TestServeArguments: the value of an unset variable or a typing error is refused before a data
// folder is created.
func TestServeArguments(t *testing.T) {
	t.Parallel()
	for flag, wrong := range map[string][]string{
		"--roles":    {"", " ", ",", "api,", "api,boss"},
		"--listen":   {"", "nowhere", "127.0.0.1", "127.0.0.1:", ":port", ":70000"},
		"--nats-url": {"", "nats://", "http://127.0.0.1:4222", "nats://a:4222,postgres://b"},
	} {
		for _, value := range wrong {
			g, _, words := testGlobals(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			g.Ctx = ctx
			data := filepath.Join(t.TempDir(), "data")
			if code := run(*g, []string{"serve", "--data", data, "--listen", "127.0.0.1:0", flag,
				value}); code != term.ExitUsage || !strings.Contains(words.String(), flag) {
				t.Errorf("%s %q: exit code %d: %s", flag, value, code, words)
			}
			cancel()
			if _, err := os.Stat(data); err == nil {
				t.Errorf("%s %q made a data folder", flag, value)
			}
		}
	}
	g, _, _ := testGlobals(t)
	c := &cli{Globals: *g}
	parser, err := newParser(c, nil)
	must(t, err)
	if _, err := parser.Parse(
		[]string{"serve", "--roles", "api, dispatcher", "--roles", "feed", "--listen", "[::1]:http", "--nats-url",
			"nats://a:4222,b:4222"}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Serve.Roles); got != "[api dispatcher feed]" {
		t.Errorf("roles %s", got)
	}
}

// TestReportKeepsLines: an error of several lines keeps its lines.
func TestReportKeepsLines(t *testing.T) {
	t.Parallel()
	g, _, words := testGlobals(t)
	g.report(fmt.Errorf("failed to connect:\n\ta: refused\n\tb: \x1b[31m%w", context.DeadlineExceeded))
	if want := "error: failed to connect:\n  a: refused\n  b: <U+001B>[31mcontext deadline exceeded\n"; !bytes.Equal(
		words.Bytes(), []byte(want)) {
		t.Errorf("got %q, want %q", words, want)
	}
}
