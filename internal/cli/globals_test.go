package cli

import "testing"

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
		g := &globals{started: started}
		if got := g.program(); got != want {
			t.Errorf("started as %q: %q, want %q", started, got, want)
		}
	}
}
