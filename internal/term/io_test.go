package term

import (
	"bytes"
	"testing"
	"time"
)

// TestProgram: a command to copy names the program as it was started, even if it is not in the
// PATH.
func TestProgram(t *testing.T) {
	t.Parallel()
	for started, want := range map[string]string{
		"":                     "gatehouse",
		"gatehouse":            "gatehouse",
		"./bin/gatehouse":      "./bin/gatehouse",
		"/opt/gate house/gate": "'/opt/gate house/gate'",
	} {
		g := &IO{Started: started}
		if got := g.Program(); got != want {
			t.Errorf("started as %q: %q, want %q", started, got, want)
		}
	}
}

// piped is an IO whose outputs are not terminals.
func piped(t *testing.T) (g *IO, out, errOut *bytes.Buffer) {
	t.Helper()
	out, errOut = new(bytes.Buffer), new(bytes.Buffer)
	return &IO{Ctx: t.Context(), Stdout: out, Stderr: errOut, Columns: 80, Now: time.Now}, out, errOut
}
