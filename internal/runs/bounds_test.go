package runs_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestFailureWithNUL: a failure that quotes a NUL of the input is stored.
func TestFailureWithNUL(t *testing.T) { onBoth(t, testFailureWithNUL) }

func testFailureWithNUL(t *testing.T, w *world) {
	w.apply("nul", `name: nul
steps:
  - {id: a, uses: transform, with: {x: '${{ input.k.matches(input.k + "(") }}'}}
`)
	run := w.status(w.start("nul", `{"k":"a\u0000b"}`).ID, gatehouse.RunFailed)
	if run.Failure.Code != "expression" || !strings.Contains(run.Failure.Detail, "a\uFFFDb") {
		t.Errorf("%s", describe(run))
	}
}
