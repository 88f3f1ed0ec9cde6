package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TestHelpNamesCommands: if the help of a group lists its commands, as in "Pushes: list, drain", it
// lists all.
func TestHelpNamesCommands(t *testing.T) {
	t.Parallel()
	c := &cli{Globals: globals{IO: term.IO{Stdout: io.Discard, Stderr: io.Discard}}}
	parser, err := newParser(c)
	must(t, err)
	looked := 0
	for _, group := range parser.Model.Children {
		_, list, ok := strings.Cut(strings.TrimSuffix(group.Help, "."), ": ")
		if !ok || len(group.Children) == 0 {
			continue
		}
		listed := strings.Split(list, ", ")
		for _, command := range group.Children {
			if command.Type != kong.CommandNode || command.Hidden || command.Tag.Default != "" {
				continue
			}
			looked++
			found := false
			for _, name := range listed {
				found = found || name == command.Name
			}
			if !found {
				t.Errorf("the help of gatehouse %s does not name %s: %q", group.Name, command.Name, group.Help)
			}
		}
	}
	if looked < 20 {
		t.Errorf("only %d commands were looked at", looked)
	}
}

// TestNoContextInUse: the error says what to do if no context is in use.
func TestNoContextInUse(t *testing.T) {
	t.Parallel()
	_, err := (&contexts{}).find("")
	if err == nil || strings.Contains(err.Error(), `""`) || !strings.Contains(err.Error(), "no context is in use") {
		t.Errorf("said %v", err)
	}
}
