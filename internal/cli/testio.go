// Package termtest has a terminal for tests.
package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// testIO is what a command in a test runs with: no input, 80 columns, a clock that
// stands, and what was written to stdout and to stderr.
func testIO(t testing.TB) (g *termIO, out, errOut *bytes.Buffer) {
	t.Helper()
	out, errOut = new(bytes.Buffer), new(bytes.Buffer)
	return &termIO{
		ctx: t.Context(), stdin: strings.NewReader(""), stdout: out, stderr: errOut, columns: 80,
		now: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
	}, out, errOut
}
