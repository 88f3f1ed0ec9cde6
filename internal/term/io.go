// Package term has what commands need at the terminal: streams, safe text, tables, error texts
// and exit codes.
package term

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	xterm "golang.org/x/term"
)

// IO holds the streams of a command, their properties, and the clock.
type IO struct {
	Ctx context.Context
	// Started is the command word of this program: "gatehouse", or a path such as
	// ./bin/gatehouse.
	Started string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// JSON selects one document of the API's JSON instead of tables and texts.
	JSON bool
	// Now is the clock for relative times such as "3m ago".
	Now func() time.Time
	// TTY is true if stdout is a terminal, of this number of Columns; TTYErr is true if stderr is a
	// terminal.
	TTY, TTYErr bool
	Columns     int
	// Color is true if stdout may be coloured, ColorErr if stderr may.
	Color, ColorErr bool
	// Terminal opens the person's terminal, for questions that only a person may answer; nil if
	// stdin is not a terminal.
	Terminal func() (io.ReadWriteCloser, error)
}

// New detects the properties of the standard streams.
func New(ctx context.Context, stdin, stdout, stderr *os.File) IO {
	g := IO{Ctx: ctx, Started: os.Args[0], Stdin: stdin, Stdout: stdout, Stderr: stderr, Now: time.Now,
		Columns: 80}
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	if fd := int(stdout.Fd()); xterm.IsTerminal(fd) {
		g.TTY, g.Color = true, !plain
		if w, _, err := xterm.GetSize(fd); err == nil && w > 0 {
			g.Columns = w
		}
	}
	g.TTYErr = xterm.IsTerminal(int(stderr.Fd()))
	g.ColorErr = g.TTYErr && !plain
	if xterm.IsTerminal(int(stdin.Fd())) {
		g.Terminal = func() (io.ReadWriteCloser, error) { return openTerminal(stdin, stderr) }
	}
	return g
}

// Program returns the command word for commands that people copy: the path with which this program was started, or
// "gatehouse" if it was started without a path.
func (g *IO) Program() string {
	if strings.ContainsRune(g.Started, filepath.Separator) {
		return ShellWord(Safe(g.Started))
	}
	return "gatehouse"
}

// openTerminal opens the controlling terminal, so that people see a question even when
// both outputs are redirected. Without such a device, stdin and stderr take its place
// if both are terminals.
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

// Pause waits for d, or returns the context's error earlier.
func (g *IO) Pause(d time.Duration) error {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-g.Ctx.Done():
		return g.Ctx.Err()
	}
}
