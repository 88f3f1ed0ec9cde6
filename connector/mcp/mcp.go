// Package mcpconn is the connector of type mcp: the tools of one MCP server. The gatehouse mcp
// proxy in front of that server carries out approved actions: it leases the push over the API and
// sends the stored arguments. Gatehouse itself makes no call, and needs no list of the tools.
package mcpconn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// PinsOperation is the operation by which a proxy proposes to accept changed tools. Its floor is L4.
// The proxy refuses a server whose tools have names that begin with gatehouse_.
const PinsOperation = "gatehouse_accept_tools"

// MaxToolName limits the name of a tool, in bytes.
const MaxToolName = 128

// Config defines a connector of type mcp.
type Config struct {
	// Type is "mcp".
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector. The server enforces it, not the
	// connector.
	Tenants []string `yaml:"tenants"`
	// Workers are the names or ids of the principals that may lease the approved changes. By default, every
	// principal with the role worker may.
	Workers []string `yaml:"workers"`
	// Tools declares single tools. Others are of class C, with floor 3 (delete 4, bulk 5).
	Tools map[string]Tool `yaml:"tools"`
}

// Tool holds an operator's declarations for a tool.
type Tool struct {
	// Class is A (harmless to repeat) or C, the default.
	Class connector.Class `yaml:"class"`
	// Floor is the minimum level of the tool, 1 to 5.
	Floor gatehouse.RiskLevel `yaml:"floor"`
	// Amounts are the fields that hold money. By default, fields are recognized by their names.
	Amounts []gatehouse.AmountField `yaml:"amounts"`
}

// Connector leaves its pushes to the proxy in front of the server.
type Connector struct {
	tools       map[string]Tool
	workers     gatehouse.WorkerNames
	fingerprint string
}

var (
	_ connector.Connector = (*Connector)(nil)
	_ connector.Floorer   = (*Connector)(nil)
	_ connector.Declarer  = (*Connector)(nil)
	_ connector.Outside   = (*Connector)(nil)
)

// New makes a connector.
func New(c Config) (*Connector, error) {
	workers := gatehouse.WorkerNames(c.Workers)
	if err := workers.Validate(); err != nil {
		return nil, fmt.Errorf("workers: %w", err)
	}
	out := &Connector{tools: make(map[string]Tool, len(c.Tools)), workers: workers}
	h := sha256.New()
	fmt.Fprintln(h, "mcp")
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		t := c.Tools[name]
		switch {
		case name == "" || len(name) > MaxToolName:
			return nil, fmt.Errorf("tools: %s cannot name a tool", gatehouse.Quote(name))
		case name == PinsOperation:
			return nil, fmt.Errorf("tools.%s: is not a valid tool name", name)
		case t.Floor != 0 && !t.Floor.Valid():
			return nil, fmt.Errorf("tools.%s.floor: must be 1 to 5", name)
		}
		if err := gatehouse.CheckAmountFields(t.Amounts); err != nil {
			return nil, fmt.Errorf("tools.%s.amounts: %w", name, err)
		}
		switch t.Class {
		case "":
			t.Class = connector.ClassC
		case connector.ClassA, connector.ClassC:
		default:
			return nil, fmt.Errorf("tools.%s.class: must be A or C, not %s", name, gatehouse.Quote(string(t.Class)))
		}
		out.tools[name] = t
		// The floors are left out, because they affect approval and not the call.
		if t.Class != connector.ClassC {
			fmt.Fprintf(h, "%q %s\n", name, t.Class)
		}
	}
	out.fingerprint = hex.EncodeToString(h.Sum(nil))
	return out, nil
}

// Fingerprint covers the classes of the tools. The definition of a tool is covered by its hash,
// which is the version of the action's target.
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Operation describes a tool, whether it is listed or not.
func (c *Connector) Operation(name string) (connector.Operation, bool) {
	if name == "" || len(name) > MaxToolName {
		return connector.Operation{}, false
	}
	class := connector.ClassC
	switch t, ok := c.tools[name]; {
	case name == PinsOperation:
		class = connector.ClassA // the proxy writes the same file again
	case ok:
		class = t.Class
	}
	return connector.Operation{Name: name, Class: class, Amounts: c.tools[name].Amounts}, true
}

// Floor implements [connector.Floorer].
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	if call.Operation == PinsOperation {
		return gatehouse.L4
	}
	if t := c.tools[call.Operation]; t.Floor != 0 {
		return t.Floor
	}
	return connector.UndeclaredFloor(call.Operation, false, len(call.Target.EntityRefs) > 0)
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, name := range slices.Sorted(maps.Keys(c.tools)) {
		out = append(out, connector.Levels{Floor: c.tools[name].Floor}.Declarations(name, "")...)
	}
	return out
}

// Workers implements [connector.Outside].
func (c *Connector) Workers() gatehouse.WorkerNames { return c.workers }

// Execute makes no call: the dispatcher never calls it.
func (*Connector) Execute(context.Context, connector.Call) (connector.Result, error) {
	return connector.Result{}, &connector.Error{
		Kind: connector.NotSent, Code: "outside",
		Detail: "only the proxy in front of the MCP server can carry this out",
	}
}
