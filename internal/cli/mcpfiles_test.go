package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// filesystemServer is the program of a third-party server.
func filesystemServer(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../.tools/mcp/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: scripts/tools installs it", err)
	}
	return path
}

// TestMCPFilesystem puts the gate before the filesystem server: a file is written after approval,
// reads pass, and the agent gets the server's own refusals.
func TestMCPFilesystem(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	w.command = []string{"node", filesystemServer(t), w.dir}
	c := w.proxy("--read-only-hint-is-read", "read_text_file", "--hold", "30s")
	if got := c.request("tools/list", `{}`).Result.Tools; len(got) != 16 {
		t.Errorf("%d tools, want 14 and the gate's two", len(got))
	}
	path := gatehouse.StringJSON(filepath.Join(w.dir, "a.txt"))
	id := c.begin("tools/call", callOf("write_file", `{"path":`+string(path)+`,"content":"Zoë: 12.50 €"}`))
	a := w.pending("write_file")
	if a.RiskLevel != gatehouse.L4 { // the tool has destructiveHint
		t.Errorf("proposed %+v", a)
	}
	w.decide(a, gatehouse.Approve, "")
	if got := c.await(id); got.Result == nil || got.Result.IsError || got.Result.Structured == nil {
		t.Errorf("%s", got.raw)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, "a.txt")); err != nil || string(b) != "Zoë: 12.50 €" {
		t.Errorf("%v: %q", err, b)
	}
	if got := c.call("read_text_file", `{"path":`+string(path)+`}`); got.text() != "Zoë: 12.50 €" {
		t.Errorf("read %+v", got)
	}
	id = c.begin("tools/call", callOf("create_directory", `{"path":"/elsewhere"}`))
	a = w.pending("create_directory")
	w.decide(a, gatehouse.Approve, "")
	if got := c.await(id).Result; !got.IsError || !strings.Contains(got.text(), "Access denied") {
		t.Errorf("outside of its folder: %+v", got)
	}
	a, err := w.admin.FindAction(t.Context(), a.ID)
	if err != nil || a.Status != gatehouse.StatusFailed || a.Failure.Code != "tool_error" {
		t.Errorf("%v: %+v", err, a)
	}
}

// TestReadmeMCP runs the block of the README on a development server, and starts the resulting
// entry as an agent would.
func TestReadmeMCP(t *testing.T) {
	t.Parallel()
	var block string
	for _, f := range fences(t, "../../README.md") {
		if strings.Contains(f.text, "mcp install") {
			block = f.text
		}
	}
	server := filesystemServer(t)
	q := &quickstart{t: t, dir: t.TempDir()}
	dev := startDev(t, q.dir)
	defer dev.stop()
	q.write("block.sh", "set -eu\n"+block)
	// The package that npx would fetch is installed already.
	must(t, os.Mkdir(filepath.Join(q.dir, "bin"), 0o700))
	npx := "#!/bin/sh\n[ \"$1 $2\" = '-y @modelcontextprotocol/server-filesystem' ] && exec node " +
		term.ShellQuote(server) + " \"$3\"\n"
	must(t, os.WriteFile(filepath.Join(q.dir, "bin", "npx"), []byte(npx), 0o700))
	if out, err := q.command("sh", "block.sh").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var config struct {
		Servers map[string]stdioEntry `json:"mcpServers"`
	}
	b, err := os.ReadFile(filepath.Join(q.dir, ".mcp.json"))
	if err == nil {
		err = json.Unmarshal(b, &config)
	}
	must(t, err)
	entry := config.Servers["files"]
	agent := devEnv(t, q.dir, "agent")
	admin := servetest.MustClient(t, strings.TrimSuffix(dev.api, "/api/v1"), devEnv(t, q.dir, "admin"))
	w := &mcpWorld{TB: t, admin: admin, dir: q.dir}
	program, err := exec.LookPath("gatehouse")
	if err != nil || entry.Command != "gatehouse" {
		t.Fatalf("%v: %+v", err, entry)
	}
	cmd := exec.Command(program, slices.Insert(entry.Args, 2, "--state", t.TempDir())...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(q.dir, "bin")+":"+os.Getenv("PATH"),
		"GATEHOUSE_URL="+entry.Env["GATEHOUSE_URL"],
		"GATEHOUSE_KEY="+os.Expand(entry.Env["GATEHOUSE_KEY"], func(string) string { return agent.Key }))
	c := w.start(cmd)
	path := gatehouse.StringJSON(filepath.Join(q.dir, "note.txt"))
	id := c.begin("tools/call", callOf("write_file", `{"path":`+string(path)+`,"content":"hello"}`))
	w.decide(w.pending("write_file"), gatehouse.Approve, "")
	if got := c.await(id); got.Result == nil || got.Result.IsError {
		t.Errorf("%s", got.raw)
	}
	if b, err := os.ReadFile(filepath.Join(q.dir, "note.txt")); err != nil || string(b) != "hello" {
		t.Errorf("%v: %q", err, b)
	}
}
