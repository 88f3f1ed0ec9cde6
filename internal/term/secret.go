package term

import (
	"fmt"
	"os"
	"strings"

	xterm "golang.org/x/term"
)

// ReadSecret reads a secret from a file, from stdin for "-" or if stdin is not a terminal, or else
// from the terminal without echo. It removes one line break at the end.
func ReadSecret(g *IO, file, prompt string) (string, error) {
	if file == "" && g.Terminal != nil {
		return askHidden(g, prompt)
	}
	if file == "" {
		file = "-"
	}
	b, err := ReadInput(g, file)
	return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), err
}

func askHidden(g *IO, prompt string) (string, error) {
	tty, err := g.Terminal()
	if err != nil {
		return "", err
	}
	defer tty.Close()
	f, ok := tty.(*os.File)
	if !ok {
		return "", Usagef("name a file with --file, or pipe the value in")
	}
	_, _ = fmt.Fprint(f, prompt)
	b, err := xterm.ReadPassword(int(f.Fd()))
	_, _ = fmt.Fprintln(f)
	return string(b), err
}
