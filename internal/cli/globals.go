package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"
)

// globals holds the flags that every command takes and what a command runs
// with. It is what each command's Run gets.
type globals struct {
	URL       string `help:"The server to speak to; that of the context, or http://127.0.0.1:8080, if absent." env:"GATEHOUSE_URL" placeholder:"URL" group:"global"`
	Context   string `help:"The named server to speak to; see gatehouse context." env:"GATEHOUSE_CONTEXT" placeholder:"NAME" group:"global"`
	Key       string `help:"Your API key. Better in the environment, where other users of the machine do not see it." env:"GATEHOUSE_KEY" placeholder:"KEY" group:"global"`
	EditToken string `help:"Your edit token, which deciding needs. Better in the environment." env:"GATEHOUSE_EDIT_TOKEN" placeholder:"TOKEN" group:"global"`
	JSON      bool   `name:"json" help:"Print the API's JSON, one document." group:"global"`

	// resolved says that the context has been read.
	resolved bool
	ctx      context.Context
	// named is the id of the action that a decision is about, for hints.
	named string
	// started is the word that started this program: "gatehouse", or a path such
	// as ./bin/gatehouse.
	started string
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
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

// newGlobals finds out what the standard streams are.
func newGlobals(ctx context.Context, stdin, stdout, stderr *os.File) globals {
	g := globals{ctx: ctx, started: os.Args[0], stdin: stdin, stdout: stdout, stderr: stderr, now: time.Now,
		columns: 80}
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	if fd := int(stdout.Fd()); term.IsTerminal(fd) {
		g.tty, g.color = true, !plain
		if w, _, err := term.GetSize(fd); err == nil && w > 0 {
			g.columns = w
		}
	}
	g.ttyErr = term.IsTerminal(int(stderr.Fd()))
	g.colorErr = g.ttyErr && !plain
	if term.IsTerminal(int(stdin.Fd())) {
		g.terminal = func() (io.ReadWriteCloser, error) { return openTerminal(stdin, stderr) }
	}
	return g
}

// program returns the word that starts this program again from the same folder,
// for commands to copy.
func (g *globals) program() string {
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
	if !term.IsTerminal(int(stderr.Fd())) {
		return nil, err
	}
	return struct {
		io.Reader
		io.Writer
		io.Closer
	}{stdin, stderr, io.NopCloser(nil)}, nil
}
