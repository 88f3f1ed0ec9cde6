package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	xterm "golang.org/x/term"
)

// termIO is what a command runs with: its streams, what they are, and the clock.
type termIO struct {
	ctx context.Context
	// started is the word that started this program: "gatehouse", or a path such
	// as ./bin/gatehouse.
	started string
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	// json asks for the API's JSON, one document, in place of tables and texts.
	json bool
	// now is the clock by which times are shown as "3m ago".
	now func() time.Time
	// tty is true when stdout is a terminal, of that many columns; ttyErr when
	// stderr is one.
	tty, ttyErr bool
	columns     int
	// color is true when stdout may be coloured, colorErr when stderr may.
	color, colorErr bool
	// terminal opens the terminal that the person sits at, for a question that
	// only a person may answer; nil when there is none.
	terminal func() (io.ReadWriteCloser, error)
}

// newIO finds out what the standard streams are.
func newIO(ctx context.Context, stdin, stdout, stderr *os.File) termIO {
	g := termIO{ctx: ctx, started: os.Args[0], stdin: stdin, stdout: stdout, stderr: stderr, now: time.Now,
		columns: 80}
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	if fd := int(stdout.Fd()); xterm.IsTerminal(fd) {
		g.tty, g.color = true, !plain
		if w, _, err := xterm.GetSize(fd); err == nil && w > 0 {
			g.columns = w
		}
	}
	g.ttyErr = xterm.IsTerminal(int(stderr.Fd()))
	g.colorErr = g.ttyErr && !plain
	if xterm.IsTerminal(int(stdin.Fd())) {
		g.terminal = func() (io.ReadWriteCloser, error) { return openTerminal(stdin, stderr) }
	}
	return g
}

// program returns the word that starts this program again from the same folder,
// for commands to copy.
func (g *termIO) program() string {
	if strings.ContainsRune(g.started, filepath.Separator) {
		return shellWord(safe(g.started))
	}
	return "gatehouse"
}

// openTerminal opens the controlling terminal, so that what is asked is seen
// even when both outputs are redirected. Where there is no such device, stdin
// and stderr serve, if both are a terminal.
func openTerminal(stdin, stderr *os.File) (io.ReadWriteCloser, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err == nil {
		return tty, nil
	}
	if !xterm.IsTerminal(int(stderr.Fd())) {
		return nil, err
	}
	return struct {
		io.Reader
		io.Writer
		io.Closer
	}{stdin, stderr, io.NopCloser(nil)}, nil
}

// pause waits, or returns early with the context's error.
func (g *termIO) pause(d time.Duration) error {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-g.ctx.Done():
		return g.ctx.Err()
	}
}
