// Package termtest has a terminal for tests.
package termtest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// New returns the IO of a command in a test: no input, 80 columns, a stopped clock, and buffers for
// stdout and stderr.
func New(t testing.TB) (g *term.IO, out, errOut *bytes.Buffer) {
	t.Helper()
	out, errOut = new(bytes.Buffer), new(bytes.Buffer)
	return &term.IO{
		Ctx: t.Context(), Stdin: strings.NewReader(""), Stdout: out, Stderr: errOut, Columns: 80,
		Now: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
	}, out, errOut
}
