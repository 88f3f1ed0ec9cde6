package mcpconn_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	mcpconn "github.com/gatehouse-dev/gatehouse/connector/mcp"
)

func TestNew(t *testing.T) {
	t.Parallel()
	for want, tools := range map[string]map[string]mcpconn.Tool{
		"cannot name a tool":  {strings.Repeat("x", 129): {}},
		"is not a valid tool": {mcpconn.PinsOperation: {}},
		"must be 1 to 5":      {"write": {Floor: 6}},
		"must be A or C":      {"write": {Class: "B"}},
	} {
		if _, err := mcpconn.New(mcpconn.Config{Tools: tools}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestTools: undeclared tools have the careful defaults.
func TestTools(t *testing.T) {
	t.Parallel()
	c, err := mcpconn.New(mcpconn.Config{Tools: map[string]mcpconn.Tool{
		"read_file": {Floor: 1, Class: connector.ClassA}, "drop": {Floor: 5},
	}})
	connectortest.Must(t, err)
	for name, want := range map[string]struct {
		class connector.Class
		floor gatehouse.RiskLevel
	}{
		"write_file": {connector.ClassC, 3}, "delete_file": {connector.ClassC, 4}, "read_file": {connector.ClassA, 1},
		"drop": {connector.ClassC, 5}, "any/Tool name": {connector.ClassC, 3},
		mcpconn.PinsOperation: {connector.ClassA, 4},
	} {
		op, ok := c.Operation(name)
		if !ok || op.Class != want.class {
			t.Errorf("%s: %+v", name, op)
		}
		if got := connector.FloorOf(c, op, connector.Call{Operation: name}); got != want.floor {
			t.Errorf("%s: floor %d, want %d", name, got, want.floor)
		}
	}
	if _, ok := c.Operation(""); ok {
		t.Error("a tool without a name")
	}
	declared := []connector.Declaration{{Operation: "drop", Level: 5}, {Operation: "read_file", Level: 1}}
	if got := c.Declarations(); !slices.Equal(got, declared) {
		t.Errorf("declared: %+v", got)
	}
	var failure *connector.Error
	_, err = c.Execute(t.Context(), connector.Call{})
	if !errors.As(err, &failure) || failure.Kind != connector.NotSent {
		t.Errorf("called from within: %v", err)
	}
}
