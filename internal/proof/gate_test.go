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

// gate is one store with its servers: one on a data folder, any number on a
// PostgreSQL database.
type gate struct {
	t       testing.TB
	data    string
	dsn     string // "" means the data folder
	admin   *person
	servers []*server
	turn    atomic.Uint64
	log     tail
	// address, if set, maps a server's URL to the URL that clients call.
	address func(url string) string
}

// server is one process of a gate; it can be killed and restarted.
type server struct {
	gate   *gate
	cmd    *exec.Cmd
	exited chan error
	url    atomic.Value // a string
	binary string
	args   []string
	env    []string
}

// newGate creates a data folder with the configuration and an administrator,
// and starts the engine's servers on it. They stop when the test ends.
func newGate(t testing.TB, e engine, config, policy string) *gate {
	t.Helper()
	g := &gate{t: t, data: filepath.Join(e.dir(t), "data"), dsn: e.database(t)}
	if err := os.MkdirAll(g.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if policy != "" {
		config += "\npolicy: {file: policy.yaml}\n"
		write(t, filepath.Join(g.data, "policy.yaml"), policy)
	}
	write(t, filepath.Join(g.data, "gatehouse.yaml"), config)
	init := exec.Command(binary, "init", "--data", g.data, "--json")
	init.Env = append(os.Environ(), databaseEnv(g.dsn)...)
	out, err := init.Output()
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
	g.addServers(e)
	g.start()
	return g
}

// databaseEnv returns the environment of a server on a database; nil for the data folder.
func databaseEnv(dsn string) []string {
	if dsn == "" {
		return nil
	}
	// Each start prepares the statements on every connection, so the short tests use fewer connections.
	return []string{"GATEHOUSE_DATABASE_URL=" + dsn, fmt.Sprint("GATEHOUSE_DATABASE_CONNECTIONS=", scale(5, 16))}
}

// addServers creates the gate's servers without starting them. They are killed when
// the test ends.
func (g *gate) addServers(e engine) {
	t := g.t
	for range e.replicas {
		g.servers = append(g.servers, &server{gate: g, binary: binary, env: databaseEnv(e.through(g.dsn)), args: e.flags})
	}
	t.Cleanup(func() {
		for _, s := range g.servers {
			if s.cmd != nil {
				s.kill()
			}
		}
		if t.Failed() {
			t.Logf("the last log lines of the servers:\n%s", g.log.String())
		}
	})
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

func (g *gate) start() {
	g.t.Helper()
	for _, s := range g.servers {
		s.start()
	}
}

// revive starts the servers that do not run.
func (g *gate) revive() {
	g.t.Helper()
	for _, s := range g.servers {
		if s.cmd == nil {
			s.start()
		}
	}
}

func (g *gate) stop() {
	g.t.Helper()
	for _, s := range g.servers {
		s.stop()
	}
}

// base returns the address for the next call: each server in turn.
func (g *gate) base() string {
	s := g.servers[g.turn.Add(1)%uint64(len(g.servers))]
	url, _ := s.url.Load().(string)
	if g.address != nil {
		return g.address(url)
	}
	return url
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// start runs the server on a free port and returns when it serves.
func (s *server) start() {
	g := s.gate
	g.t.Helper()
	if err := s.launch(); err != nil {
		g.t.Fatalf("the server ended at start: %v\n%s", err, g.log.String())
	}
}

// launch is start for a server that may end before it serves; it then returns how
// the process ended.
func (s *server) launch() error {
	g := s.gate
	g.t.Helper()
	cmd := exec.Command(s.binary,
		append([]string{"serve", "--data", g.data, "--listen", "127.0.0.1:0", "--log-format", "json"}, s.args...)...)
	cmd.Env = append(os.Environ(), s.env...)
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
	s.cmd, s.exited = cmd, exited
	select {
	case url := <-serving:
		s.url.Store(url)
	case err := <-exited:
		s.cmd = nil
		if err == nil {
			err = errors.New("without an error")
		}
		return err
	case <-time.After(60 * time.Second):
		g.t.Fatalf("the server does not serve\n%s", g.log.String())
	}
	return nil
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

// kill ends the process by SIGKILL: none of its clean-up runs.
func (s *server) kill() {
	_ = s.cmd.Process.Signal(syscall.SIGKILL)
	if err := <-s.exited; err == nil {
		s.gate.t.Error("the killed server reports a clean end")
	}
	s.cmd = nil
}

// stop terminates the server, and fails the test unless it ends cleanly.
func (s *server) stop() {
	g := s.gate
	g.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Fatal(err)
	}
	select {
	case err := <-s.exited:
		s.cmd = nil
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
		"GATEHOUSE_URL="+g.base(), "GATEHOUSE_KEY="+p.key, "GATEHOUSE_EDIT_TOKEN="+p.edit)
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("gatehouse %s: %w: %s", strings.Join(args, " "), err, stderrOf(err))
	}
	return string(out), err
}

// tail keeps the last lines of a log and counts its messages.
type tail struct {
	mu    sync.Mutex
	lines []string
	count map[string]int
}

func (l *tail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) >= 60 {
		l.lines = l.lines[1:]
	}
	l.lines = append(l.lines, line)
	if _, rest, ok := strings.Cut(line, `"msg":"`); ok {
		message, _, _ := strings.Cut(rest, `"`)
		if l.count == nil {
			l.count = make(map[string]int)
		}
		l.count[message]++
	}
}

// said returns how often a message was logged.
func (l *tail) said(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[message]
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
