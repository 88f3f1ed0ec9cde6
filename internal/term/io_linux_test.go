package term

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// openPTY returns both ends of a pseudo-terminal of that many columns.
func openPTY(t *testing.T, columns uint16) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 24}); err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// TestTerminals is not parallel: it sets the environment.
func TestTerminals(t *testing.T) {
	_, tty := openPTY(t, 97)
	pipe, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	for _, c := range []struct {
		name                string
		in, out, errOut     *os.File
		noColor, term       string
		tty, color, colorEr bool
		person              bool
		columns             int
	}{
		{name: "all", in: tty, out: tty, errOut: tty, term: "xterm", tty: true, color: true, colorEr: true, person: true,
			columns: 97},
		{name: "NO_COLOR", in: tty, out: tty, errOut: tty, term: "xterm", noColor: "1", tty: true, person: true, columns: 97},
		{name: "dumb", in: tty, out: tty, errOut: tty, term: "dumb", tty: true, person: true, columns: 97},
		{name: "output piped", in: tty, out: pipe, errOut: tty, term: "xterm", colorEr: true, person: true, columns: 80},
		{name: "input piped", in: pipe, out: tty, errOut: pipe, term: "xterm", tty: true, color: true, columns: 97},
		{name: "none", in: pipe, out: pipe, errOut: pipe, term: "xterm", columns: 80},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", c.noColor)
			t.Setenv("TERM", c.term)
			g := New(t.Context(), c.in, c.out, c.errOut)
			if g.TTY != c.tty || g.Color != c.color || g.ColorErr != c.colorEr || (g.Terminal != nil) != c.person ||
				g.Columns != c.columns {
				t.Errorf("tty %v, color %v, colorErr %v, terminal %v, columns %d", g.TTY, g.Color, g.ColorErr,
					g.Terminal != nil, g.Columns)
			}
		})
	}
}
