package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// fence is a code block of a page.
type fence struct {
	line           int
	language, text string
}

func fences(t *testing.T, path string) []fence {
	t.Helper()
	src, err := os.ReadFile(path)
	must(t, err)
	var all []fence
	var open *fence
	for n, line := range strings.SplitAfter(string(src), "\n") {
		language, mark := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "```")
		switch {
		case mark && open == nil:
			open = &fence{line: n + 1, language: language}
		case mark:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block has no end", path, open.line)
	}
	return all
}

// answerYes runs a script on a terminal of its own, and types y when asked.
const answerYes = `
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "-eu", sys.argv[1]])
said, typed = b"", False
while True:
    try:
        more = os.read(fd, 4096)
    except OSError:
        more = b""
    if not more:
        break
    said += more
    if b"[y/N]" in said and not typed:
        typed = os.write(fd, b"y\n") > 0
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`

// quickstart runs the page in a folder in place of the clone.
type quickstart struct {
	t      *testing.T
	dir    string
	server *devServer
}

// TestQuickstart runs every block of the page, in their order. Instead of cloning and building, it
// checks that the targets of make exist.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("python3", "-c",
		"import sys; assert sys.version_info >= (3, 9)").CombinedOutput(); err != nil {
		t.Fatalf("this test makes a terminal with python3, 3.9 or later: %v %s", err, out)
	}
	root, err := filepath.Abs("../..")
	must(t, err)
	q := &quickstart{t: t, dir: t.TempDir()}
	ran := map[string]int{}
	for _, f := range fences(t, filepath.Join(root, "docs", "quickstart.md")) {
		ran[f.language]++
		switch {
		case f.language == "text":
			if got := anonymous(q.server.banner); got != anonymous(f.text) {
				t.Errorf("line %d: the block of dev is\n%s", f.line, got)
			}
		case f.language != "sh":
			t.Errorf("line %d: nothing runs a block of %q", f.line, f.language)
		case strings.TrimSpace(f.text) == "gatehouse dev":
			q.server = startDev(t, q.dir)
		case strings.Contains(f.text, "gatehouse approve"):
			q.decide(f)
		default:
			// The clone exists already.
			q.run(f.line,
				`git() { [ "$1" = clone ]; }; cd() { :; }; make() { command make -C '`+root+`' -n "$@" > make.out; }`+"\n"+f.text)
		}
	}
	if ran["sh"] < 5 || ran["text"] != 1 {
		t.Errorf("the page has other blocks than it had: %v", ran)
	}
	admin := servetest.MustClient(t, strings.TrimSuffix(q.server.api, "/api/v1"), devEnv(t, q.dir, "admin"))
	page, err := admin.ListActions(t.Context(), gatehouse.ActionFilter{Status: gatehouse.StatusApplied})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("applied: %d of 2, %v", len(page.Items), err)
	}
	q.server.stop()
}

// anonymous hides what differs each time.
func anonymous(banner string) string {
	var words []string
	for _, w := range strings.Fields(banner) {
		switch {
		case strings.HasPrefix(w, "gth_"):
			w = "KEY"
		case strings.HasPrefix(w, "http://127.0.0.1:"):
			w = "URL"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func (q *quickstart) write(name, text string) {
	path := filepath.Join(q.dir, name)
	must(q.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(q.t, os.WriteFile(path, []byte(text), 0o600))
}

func (q *quickstart) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = q.dir, cleanEnv()
	return cmd
}

func (q *quickstart) run(line int, script string) {
	q.t.Helper()
	if out, err := q.command("bash", "-euc", script).CombinedOutput(); err != nil {
		q.t.Fatalf("line %d: %v\n%s", line, err, out)
	}
}

// decide runs the block that approves, on a terminal.
func (q *quickstart) decide(f fence) {
	q.t.Helper()
	q.write("approve.sh", f.text)
	out, err := q.command("python3", "-c", answerYes, "approve.sh").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("applied")) {
		q.t.Fatalf("line %d: %v\n%s", f.line, err, out)
	}
}
