package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// pasteScript pastes a file into an interactive shell on a terminal, and then ends the shell.
const pasteScript = `
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
text = open(sys.argv[1], "rb").read() + b"exit\n"
while text:
    text = text[os.write(fd, text[:256]):]
while True:
    try:
        output = os.read(fd, 4096)
    except OSError:
        break
    if not output:
        break
    sys.stdout.buffer.write(output)
    sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`

// TestReadmeAgent runs the agent of the README exactly as printed: as an sh script, and pasted into
// a terminal. The decision must come less than a minute after the gate's start.
func TestReadmeAgent(t *testing.T) {
	t.Parallel()
	var blocks []string
	for _, f := range fences(t, "../../README.md") {
		if f.language != "sh" && f.language != "text" {
			t.Errorf("line %d: no test runs a block of %q", f.line, f.language)
		}
		blocks = append(blocks, f.text)
	}
	i := slices.IndexFunc(blocks, func(b string) bool { return strings.Contains(b, "proposed-actions") })
	if i != 2 || blocks[0] != "git clone https://github.com/gatehouse-dev/gatehouse && cd gatehouse\nmake demo\n" ||
		blocks[1] != "make dev\n" {
		t.Fatalf("README.md must begin with clone and `make demo`, `make dev`, and the agent: %q", blocks)
	}
	plan, err := exec.Command("make", "-C", "../..", "--no-print-directory", "-n", "dev").Output()
	if err != nil || !strings.HasSuffix(string(plan), "-o bin/gatehouse ./cmd/gatehouse\n./bin/gatehouse dev\n") {
		t.Errorf("make dev would run\n%s%v", plan, err)
	}
	program, err := exec.LookPath("gatehouse")
	must(t, err)
	for name, command := range map[string][]string{
		"script": {"sh", "agent.sh"}, "pasted": {"python3", "-c", pasteScript, "agent.sh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &quickstart{t: t, dir: t.TempDir()}
			q.write("agent.sh", blocks[i])
			must(t, os.Mkdir(filepath.Join(q.dir, "bin"), 0o700))
			must(t, os.Symlink(program, filepath.Join(q.dir, "bin", "gatehouse")))
			began := time.Now()
			server := startDev(t, q.dir)
			var output bytes.Buffer
			agent := q.command(command[0], command[1:]...)
			agent.Stdout, agent.Stderr = &output, &output
			must(t, agent.Start())
			admin := servetest.MustClient(t, strings.TrimSuffix(server.api, "/api/v1"), devEnv(t, q.dir, "admin"))
			approveFirst(t, admin)
			if took := time.Since(began); took > time.Minute {
				t.Errorf("the first decision came after %v", took)
			}
			err := agent.Wait()
			if words := strings.Fields(output.String()); err != nil || !slices.Contains(words, "applied") {
				t.Errorf("%v, and the agent printed\n%s", err, &output)
			}
			server.stop()
		})
	}
}

// approveFirst waits for a proposal, a minute at most, and approves it.
func approveFirst(t *testing.T, admin service) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("nothing was proposed")
		}
		page, err := admin.ListActions(t.Context(), gatehouse.ActionFilter{Status: gatehouse.StatusPending})
		must(t, err)
		if len(page.Items) == 0 {
			continue
		}
		a := page.Items[0]
		if _, err := admin.Decide(t.Context(), a.ID,
			gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}); err != nil {
			t.Fatal(err)
		}
		return
	}
}
