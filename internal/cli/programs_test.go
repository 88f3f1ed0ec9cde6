package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Under "go test -race", tests run two builds of the program. The test binary itself has the race
// detector. It runs the concurrent programs: the server that the scripts' command "server" starts,
// gatehouse dev, mcp proxy, mcp serve, review and run watch, and every command of the scripts in
// serving. All other commands, also gatehouse bench and a server that a script starts itself, run a
// plain build, which starts in a third of the time.

// serving names the scripts whose commands all run with the race detector, because demo serves itself.
var serving = []string{"script-demo", "script-demo_terminal"}

// watched is the path of the program with the race detector, if the tests run with it.
var watched string

func TestMain(m *testing.M) {
	testscript.Main(programs{m}, map[string]func(){"gatehouse": func() { os.Exit(Main()) }, "mcppeer": peerMain})
}

// programs runs the tests with the plain build first in PATH.
type programs struct{ *testing.M }

func (p programs) Run() int {
	code, err := p.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func (p programs) run() (code int, err error) {
	if watched, err = exec.LookPath("gatehouse"); err != nil || !race {
		return p.M.Run(), err
	}
	dir, err := os.MkdirTemp("", "gatehouse-cli-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	plain := filepath.Join(dir, "gatehouse")
	if built := os.Getenv("GATEHOUSE_BINARY"); built != "" { // by scripts/test
		if err := os.Symlink(built, plain); err != nil {
			return 1, err
		}
	} else if out, err := buildProgram(plain, "./cmd/gatehouse"); err != nil {
		return 1, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	if err := os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		return 1, err
	}
	return p.M.Run(), nil
}

// buildProgram builds a command with the flags of a release, with which scripts/test has already
// compiled most packages.
func buildProgram(path, command string) (output []byte, err error) {
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, command)
	cmd.Dir = filepath.Join("..", "..")
	if flags := os.Getenv("GATEHOUSE_TEST_GOFLAGS"); flags != "" {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+flags)
	}
	return cmd.CombinedOutput()
}
