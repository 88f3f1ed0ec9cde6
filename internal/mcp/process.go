package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Upstream is the MCP server behind a proxy.
type Upstream interface {
	// Identity describes how the server is started or reached; it is part of
	// the pin.
	Identity() string
	// Send sends one frame. ctx limits the sending, not the wait for an answer, which Abandon ends. After an error,
	// a part of the frame may have been sent; errNotSent means that the server has done nothing.
	Send(ctx context.Context, frame []byte) error
	// Abandon says that the answer to the request is no longer needed.
	Abandon(id []byte)
	// Receive returns the next frame. After [errTooLong] there may be more
	// frames, after any other error there are none. An error that wraps
	// errServerGone says how the server has ended.
	Receive() ([]byte, error)
	// Close ends the server.
	Close() error
}

// Command is how a server is started.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Env lists environment variables for the server besides the few that every
	// program needs: NAME to pass one on, or NAME=VALUE.
	Env []string
}

// passedOn are the variables that every server gets.
var passedOn = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TERM",
	// Few Windows programs start without these.
	"SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES", "TEMP", "TMP", "PATHEXT", "COMSPEC",
}

// environment returns the server's environment.
func (c *Command) environment(lookup func(string) (string, bool)) []string {
	var out []string
	for _, name := range append(slices.Clone(passedOn), c.Env...) {
		if strings.Contains(name, "=") {
			out = append(out, name)
		} else if value, ok := lookup(name); ok {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// identity covers the command line and the names of the variables.
func (c *Command) identity(path string) string {
	names := make([]string, len(c.Env))
	for i, e := range c.Env {
		names[i], _, _ = strings.Cut(e, "=")
	}
	slices.Sort(names)
	b, _ := json.Marshal(struct { // strings always encode
		Path string   `json:"path"`
		Args []string `json:"args"`
		Env  []string `json:"env,omitempty"`
	}{path, c.Args, names})
	return string(b)
}

// process is a server connected by two pipes.
type process struct {
	identity string
	cmd      *exec.Cmd
	kill     context.CancelFunc
	stdin    io.WriteCloser
	lines    *lines
	// turn is held while a frame is written. began is when that began, 0 while none is written.
	turn  chan struct{}
	began atomic.Int64
	// wait waits until the process has ended. If it is called before the output was read to its end, the rest of
	// the output is lost.
	wait func() error
	// Receive closes over at the end of the output. Before that, it sets how, the
	// error that it then returns.
	over chan struct{}
	how  error
}

// whyNotStarted says why a program did not start, without its path and its arguments; "" for an
// error of another kind.
func whyNotStarted(err error) string {
	var unknown *exec.Error
	var failed *fs.PathError
	switch {
	case errors.As(err, &unknown):
		return ": " + unknown.Err.Error()
	case errors.As(err, &failed):
		return ": " + failed.Err.Error()
	}
	return ""
}

// Start starts a server. Its standard error is logged, quoted and bounded.
func Start(c Command, log *slog.Logger) (Upstream, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("there is no command to start")
	}
	path, err := exec.LookPath(c.Args[0])
	if err != nil {
		return nil, err
	}
	ctx, kill := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, c.Args[1:]...) //nolint:gosec // the operator's own command line
	p := &process{
		identity: c.identity(path), kill: kill, cmd: cmd, turn: make(chan struct{}, 1), over: make(chan struct{}),
	}
	stderr := &loggedLines{log: log}
	p.wait = sync.OnceValue(func() error {
		err := cmd.Wait()
		if len(stderr.line) > 0 {
			_, _ = stderr.Write([]byte("\n"))
		}
		return err
	})
	p.cmd.Env = c.environment(os.LookupEnv)
	p.cmd.Stderr = stderr
	p.cmd.WaitDelay = time.Second
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		kill()
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		kill()
		return nil, err
	}
	p.lines = newLines(out, maxServerFrame)
	if err := p.cmd.Start(); err != nil {
		kill()
		return nil, fmt.Errorf("start the server: %w", err)
	}
	return p, nil
}

// maxLogged bounds one logged line of a server's standard error, in bytes.
const maxLogged = 1 << 10

// loggedLines logs what is written to it, line by line.
type loggedLines struct {
	log  *slog.Logger
	line []byte
	long bool
}

func (l *loggedLines) Write(b []byte) (int, error) {
	for _, c := range b {
		switch {
		case c == '\n':
			l.log.Info("the MCP server wrote to standard error", "line", string(l.line), "cut", l.long)
			l.line, l.long = l.line[:0], false
		case len(l.line) < maxLogged:
			l.line = append(l.line, c)
		default:
			l.long = true
		}
	}
	return len(b), nil
}

func (p *process) Identity() string { return p.identity }

// errUnread says that the server did not read a frame in time.
var errUnread = errors.New("the MCP server does not read its input")

// unreadAfter is how long other frames wait while the server does not read one. After that they fail at once.
const unreadAfter = 30 * time.Second

// patience is how long another frame may wait for its turn.
func (p *process) patience() time.Duration {
	began := p.began.Load()
	if began == 0 {
		return unreadAfter
	}
	return unreadAfter - time.Since(time.Unix(0, began))
}

// Send returns when ctx ends, even if the server reads nothing. The rest of a frame that was sent in part
// follows once the server reads, before any other frame.
func (p *process) Send(ctx context.Context, frame []byte) error {
	for mine := false; !mine; {
		select {
		case p.turn <- struct{}{}:
			mine = true
		case <-ctx.Done():
			return errNotSent{errUnread}
		case <-time.After(p.patience()):
			if p.patience() <= 0 {
				return errNotSent{errUnread}
			}
		}
	}
	if ctx.Err() != nil { // select chooses at random
		<-p.turn
		return errNotSent{context.Cause(ctx)}
	}
	p.began.Store(time.Now().UnixNano())
	written := make(chan error, 1)
	go func() {
		_, err := p.stdin.Write(append(frame[:len(frame):len(frame)], '\n'))
		p.began.Store(0)
		<-p.turn
		written <- err
	}()
	var err error
	select {
	case err = <-written:
	case <-ctx.Done():
		return errUnread
	}
	if err == nil {
		return nil
	}
	select {
	case <-p.over:
		return p.how
	case <-time.After(exitGrace + time.Second):
		return err
	}
}

// Abandon does nothing: a later answer is dropped.
func (p *process) Abandon([]byte) {}

func (p *process) Receive() ([]byte, error) {
	line, err := p.lines.next()
	if !errors.Is(err, io.EOF) {
		return line, err
	}
	ended := make(chan struct{})
	go func() { _ = p.wait(); close(ended) }()
	select {
	case <-ended:
		p.how = fmt.Errorf("%w: %s", errServerGone, p.cmd.ProcessState)
	case <-time.After(exitGrace):
		p.how = fmt.Errorf("%w: it closed its output", errServerGone)
	}
	close(p.over)
	return nil, p.how
}

// exitGrace is how long a server may take to exit after it has closed its output. It is longer than
// the WaitDelay.
const exitGrace = 2 * time.Second

// closeGrace is how long a server may take to end by itself.
const closeGrace = 3 * time.Second

// Close closes the server's input, which tells it to end, and kills it if it
// does not. It does not kill the programs that the server has started.
func (p *process) Close() error {
	_ = p.stdin.Close()
	kill := time.AfterFunc(closeGrace, p.kill)
	defer kill.Stop()
	defer p.kill()
	var exit *exec.ExitError
	if err := p.wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return err
	}
	return nil
}

// hash is the SHA-256 of the parts, each prefixed with its length so that no
// two lists collide.
func hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
