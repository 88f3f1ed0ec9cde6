package mcp

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// catalogue has a server's tools and instructions, as canonical JSON, and its
// identity.
type catalogue struct {
	Upstream     string           `json:"upstream"`
	Instructions gatehouse.JSON   `json:"instructions,omitempty"`
	Tools        []gatehouse.JSON `json:"tools"`
}

// The bounds of a catalogue.
const (
	maxTools = 1000
	maxPages = 100
)

// reserved is the prefix of the proxy's own tools.
const reserved = "gatehouse_"

// add adds tools to the catalogue, in the server's order.
func (c *catalogue) add(tools [][]byte) error {
	known := c.byName()
	for _, raw := range tools {
		t, err := gatehouse.Canonicalize(raw)
		if err != nil {
			return fmt.Errorf("a tool is not valid JSON: %w", err)
		}
		name := toolName(t)
		switch {
		case name == "" || len(name) > maxToolName:
			return fmt.Errorf("a tool has no name of 1 to %d bytes", maxToolName)
		case strings.HasPrefix(name, reserved):
			return fmt.Errorf("the tool %s has a name that only the gate's own tools have", gatehouse.Quote(name))
		case known[name] != "":
			return fmt.Errorf("two tools are named %s", gatehouse.Quote(name))
		case len(c.Tools) == maxTools:
			return fmt.Errorf("the server has more than %d tools", maxTools)
		}
		c.Tools, known[name] = append(c.Tools, t), t
	}
	return nil
}

// maxToolName is the maximum length of an action's operation.
const maxToolName = 128

func toolName(tool gatehouse.JSON) string {
	value, _ := tool.Get("name")
	name, _ := value.Text()
	return name
}

// byName returns the tools' definitions by name: to look up every tool with the method tool takes quadratic time.
func (c *catalogue) byName() map[string]gatehouse.JSON {
	out := make(map[string]gatehouse.JSON, len(c.Tools))
	for _, t := range c.Tools {
		out[toolName(t)] = t
	}
	return out
}

// tool returns a tool's definition, "" for none.
func (c *catalogue) tool(name string) gatehouse.JSON {
	for _, t := range c.Tools {
		if toolName(t) == name {
			return t
		}
	}
	return ""
}

// pin returns the hash of a pinned tool's definition, to which an action's approval is
// bound. The hash covers the server's identity and instructions, too.
func (c *catalogue) pin(definition gatehouse.JSON) string {
	return "sha256:" + hash("pin", c.Upstream, string(c.Instructions), string(definition))
}

// hasHint reports whether the annotation named hint is true in a tool's definition.
func hasHint(definition gatehouse.JSON, hint string) bool {
	annotations, _ := definition.Get("annotations")
	v, _ := annotations.Get(hint)
	return v == "true"
}

// differences are the differences between a catalogue and its pin: old and new
// text, by "upstream", "instructions" and "tool NAME". An absent text is "".
type differences map[string]difference

type difference struct{ was, is gatehouse.JSON }

func diff(pinned, found *catalogue) differences {
	d := differences{}
	note := func(name string, was, is gatehouse.JSON) {
		if was != is {
			d[name] = difference{was, is}
		}
	}
	note("upstream", gatehouse.StringJSON(pinned.Upstream), gatehouse.StringJSON(found.Upstream))
	note("instructions", pinned.Instructions, found.Instructions)
	was, is := pinned.byName(), found.byName()
	for name := range was {
		note("tool "+name, was[name], is[name])
	}
	for name := range is {
		note("tool "+name, was[name], is[name])
	}
	return d
}

// whole reports whether the difference concerns every tool.
func (d differences) whole() bool {
	_, upstream := d["upstream"]
	_, instructions := d["instructions"]
	return upstream || instructions
}

// quarantines reports whether a tool must not be called.
func (d differences) quarantines(name string) bool {
	_, changed := d["tool "+name]
	return changed || d.whole()
}

// sides returns the differences as two objects for people to compare.
func (d differences) sides() (was, is gatehouse.JSON) {
	var old, now []gatehouse.Member
	for _, name := range slices.Sorted(maps.Keys(d)) {
		old = append(old, gatehouse.Member{Name: name, Value: d[name].was})
		now = append(now, gatehouse.Member{Name: name, Value: d[name].is})
	}
	return gatehouse.ObjectJSON(old...), gatehouse.ObjectJSON(now...)
}

var errAbsent = errors.New("no tools are pinned")
