package proof

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// gate is a server process on a data folder.
type gate struct {
	t     testing.TB
	data  string
	admin *person

	cmd    *exec.Cmd
	exited chan error
	url    atomic.Value // string
	log    tail
}

// newGate makes a data folder with the configuration, and an administrator,
// and starts a server on it. The test's end stops it.
func newGate(t testing.TB, config, policy string) *gate {
	t.Helper()
	g := &gate{t: t, data: filepath.Join(t.TempDir(), "data")}
	if err := os.MkdirAll(g.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if policy != "" {
		config += "\npolicy: {file: policy.yaml}\n"
		write(t, filepath.Join(g.data, "policy.yaml"), policy)
	}
	write(t, filepath.Join(g.data, "gatehouse.yaml"), config)
	out, err := exec.Command(binary, "init", "--data", g.data, "--json").Output()
	if err != nil {
		t.Fatalf("init: %v\n%s", err, stderrOf(err))
	}
	var made struct {
		AdminKey  string `json:"admin_key"`
		EditToken string `json:"edit_token"`
	}
	if err := json.Unmarshal(out, &made); err != nil || made.AdminKey == "" || made.EditToken == "" {
		t.Fatalf("init printed %s (%v)", out, err)
	}
	g.admin = &person{gate: g, name: "admin", key: made.AdminKey, edit: made.EditToken}
	g.start()
	t.Cleanup(func() {
		if g.cmd != nil {
			g.kill()
		}
		if t.Failed() {
			t.Logf("the server's last words:\n%s", g.log.String())
		}
	})
	return g
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func stderrOf(err error) string {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return string(e.Stderr)
	}
	return ""
}

// start runs the server on a free port and returns once it serves.
func (g *gate) start() {
	g.t.Helper()
	cmd := exec.Command(binary, "serve", "--data", g.data, "--listen", "127.0.0.1:0", "--log-format", "json")
	cmd.SysProcAttr = withParent()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	serving := make(chan string, 1)
	exited := make(chan error, 1)
	go func() {
		g.read(stderr, serving)
		exited <- cmd.Wait()
	}()
	g.cmd, g.exited = cmd, exited
	select {
	case url := <-serving:
		g.url.Store(url)
	case err := <-exited:
		g.cmd = nil
		g.t.Fatalf("the server ended at start: %v\n%s", err, g.log.String())
	case <-time.After(30 * time.Second):
		g.t.Fatalf("the server does not serve\n%s", g.log.String())
	}
}

func (g *gate) read(r io.Reader, serving chan<- string) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		g.log.add(lines.Text())
		if !bytes.Contains(lines.Bytes(), []byte(`"msg":"serving"`)) {
			continue
		}
		var l struct{ URL string }
		if json.Unmarshal(lines.Bytes(), &l) == nil {
			serving <- l.URL
		}
	}
}

// kill ends the process as a power cut would: nothing runs after it.
func (g *gate) kill() {
	_ = g.cmd.Process.Signal(syscall.SIGKILL)
	if err := <-g.exited; err == nil {
		g.t.Error("the killed server says that it ended well")
	}
	g.cmd = nil
}

// stop asks the server to end, and fails the test unless it does so cleanly.
func (g *gate) stop() {
	g.t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Fatal(err)
	}
	select {
	case err := <-g.exited:
		g.cmd = nil
		if err != nil {
			g.t.Fatalf("the server ended with %v after SIGTERM\n%s", err, g.log.String())
		}
	case <-time.After(30 * time.Second):
		g.t.Fatalf("the server did not end after SIGTERM\n%s", g.log.String())
	}
}

// cli runs a client command as a person and returns its standard output.
func (g *gate) cli(p *person, args ...string) (stdout string, err error) {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(),
		"GATEHOUSE_URL="+g.url.Load().(string), "GATEHOUSE_KEY="+p.key, "GATEHOUSE_EDIT_TOKEN="+p.edit)
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("gatehouse %s: %w: %s", strings.Join(args, " "), err, stderrOf(err))
	}
	return string(out), err
}

// tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (l *tail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) >= 60 {
		l.lines = l.lines[1:]
	}
	l.lines = append(l.lines, line)
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
