package mcp

import (
	"errors"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
)

// PinnedTool is the pinned definition of a tool.
type PinnedTool struct {
	Name string
	// Hints are the annotations that the tool claims, such as readOnlyHint.
	Hints []string
	// Proposal is a call without arguments, for the policy to explain.
	Proposal *gatehouse.Proposal
}

// ErrNoPins says that no proxy has seen the server yet.
var ErrNoPins = errors.New("no tools are pinned: start the proxy once")

// Pinned lists the pinned tools of a server in a folder.
func Pinned(f *Folder, name string) ([]PinnedTool, error) {
	pinned, err := f.pins()
	if errors.Is(err, errAbsent) {
		return nil, ErrNoPins
	}
	if err != nil {
		return nil, fmt.Errorf("the pins cannot be read: %w", err)
	}
	p := &Proxy{Config: Config{Name: name}}
	out := make([]PinnedTool, len(pinned.Tools))
	for i, t := range pinned.Tools {
		empty := &call{tool: toolName(t), arguments: "{}"}
		out[i] = PinnedTool{Name: empty.tool, Proposal: p.proposal(empty, t, pinned.pin(t))}
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if hasHint(t, hint) {
				out[i].Hints = append(out[i].Hints, hint)
			}
		}
	}
	return out, nil
}
