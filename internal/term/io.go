// Package term is what a command shares with the person who runs it: streams, safe text, tables, what an error
// says, and exit codes.
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

// IO is what a command runs with: its streams, what they are, and the clock.
type IO struct {
	Ctx context.Context
	// Started is the word that started this program: "gatehouse", or a path such
	// as ./bin/gatehouse.
	Started string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// JSON asks for the API's JSON, one document, in place of tables and texts.
	JSON bool
	// Now is the clock by which times are shown as "3m ago".
	Now func() time.Time
	// TTY is true when stdout is a terminal, of that many columns; ttyErr when
	// stderr is one.
	TTY, TTYErr bool
	Columns     int
	// Color is true when stdout may be coloured, colorErr when stderr may.
	Color, ColorErr bool
	// Terminal opens the terminal that the person sits at, for a question that
	// only a person may answer; nil when there is none.
	Terminal func() (io.ReadWriteCloser, error)
}

// New finds out what the standard streams are.
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

// Program returns the word that starts this program again from the same folder,
// for commands to copy.
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

// Pause waits, or returns early with the context's error.
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
