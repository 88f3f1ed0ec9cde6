package cli

import (
	"bytes"
	"testing"
	"time"
)

// TestProgram: a command to copy starts the program as it was started, also
// where it is not in the PATH.
func TestProgram(t *testing.T) {
	t.Parallel()
	for started, want := range map[string]string{
		"":                     "gatehouse",
		"gatehouse":            "gatehouse",
		"./bin/gatehouse":      "./bin/gatehouse",
		"/opt/gate house/gate": "'/opt/gate house/gate'",
	} {
		g := &termIO{started: started}
		if got := g.program(); got != want {
			t.Errorf("started as %q: %q, want %q", started, got, want)
		}
	}
}

// piped is an IO whose outputs are no terminals.
func piped(t *testing.T) (g *termIO, out, errOut *bytes.Buffer) {
	t.Helper()
	out, errOut = new(bytes.Buffer), new(bytes.Buffer)
	return &termIO{ctx: t.Context(), stdout: out, stderr: errOut, columns: 80, now: time.Now}, out, errOut
}
