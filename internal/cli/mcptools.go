package cli

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	mcpconn "github.com/gatehouse-dev/gatehouse/connector/mcp"
	"github.com/gatehouse-dev/gatehouse/internal/mcp"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// mcpToolsCmd groups the commands about a server's tools.
type mcpToolsCmd struct {
	List   mcpToolsListCmd   `cmd:"" default:"withargs" help:"List the pinned tools with their levels."`
	Accept mcpToolsAcceptCmd `cmd:"" help:"Accept the tools of a server that have changed."`
}

type mcpToolsListCmd struct {
	mcpStateFlags
	Name string `arg:"" help:"The server."`
}

func (*mcpToolsListCmd) Help() string {
	return `
Shows the tools that are pinned on this machine, and how the policy judges a call of
each: its level and outcome. Levels are set in the server's configuration
(connectors."mcp:NAME".tools.TOOL.floor) and in the policy's risk table.

Piped, the columns are: tool, level, outcome, hints.

Examples:

    gatehouse mcp tools files
    gatehouse mcp tools list files --json
`
}

// shownTool is a pinned tool, with the policy's judgement of a call of this tool.
type shownTool struct {
	Name    string              `json:"name"`
	Level   gatehouse.RiskLevel `json:"level"`
	Outcome gatehouse.Outcome   `json:"outcome"`
	Hints   []string            `json:"hints"`
}

func (c *mcpToolsListCmd) Run(g *globals, api service) error {
	folder, err := c.folder(g.URL, c.Name)
	if err != nil {
		return err
	}
	pinned, err := mcp.Pinned(folder, c.Name)
	if err != nil {
		return err
	}
	list := make([]shownTool, len(pinned))
	t := &term.Table{Header: []string{"TOOL", "LEVEL", "OUTCOME", "HINTS"}, Wide: 3}
	for i, tool := range pinned {
		e, err := api.ExplainPolicy(g.Ctx, tool.Proposal)
		if err != nil {
			return err
		}
		list[i] = shownTool{tool.Name, e.RiskLevel, e.Outcome, tool.Hints}
		t.Add(tool.Name, e.RiskLevel.String(), string(e.Outcome), strings.Join(tool.Hints, ","))
	}
	return showList(g, map[string]any{"items": list}, nil, "No tool of this server is pinned on this machine.",
		func() *term.Table { return t })
}

type mcpToolsAcceptCmd struct {
	Name    string           `arg:"" help:"The server."`
	Digest  gatehouse.Digest `placeholder:"DIGEST" help:"The digest of what you saw."`
	Confirm string           `placeholder:"VALUE" help:"The value to retype: the server's name."`
	Notes   string           `placeholder:"TEXT" help:"Kept with your vote."`
}

func (*mcpToolsAcceptCmd) Help() string {
	return `
Approves the pending action of a proxy whose tools have changed: it shows the old
text beside the new one. Until then the proxy serves the old text and refuses calls
of the changed tools. To refuse the change, reject that action. Without --digest the
change is shown on the terminal and you are asked.

Examples:

    gatehouse mcp tools accept files
    gatehouse mcp tools accept files --confirm files \
      --digest sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
`
}

// Run approves the pending action that the server's proxy proposed.
func (c *mcpToolsAcceptCmd) Run(g *globals, api service) error {
	filter := gatehouse.ActionFilter{
		Status: gatehouse.StatusPending, ActionType: mcpconn.PinsOperation, Limit: gatehouse.MaxLimit,
	}
	var found []string
	for {
		page, err := api.ListActions(g.Ctx, filter)
		if err != nil {
			return err
		}
		for _, a := range page.Items {
			if a.Connector == "mcp:"+c.Name {
				found = append(found, a.ID)
			}
		}
		if filter.Cursor = page.NextCursor; filter.Cursor == "" {
			break
		}
	}
	switch len(found) {
	case 0:
		return gatehouse.E(gatehouse.CodeNotFound, "no tools of %s wait to be accepted", gatehouse.Quote(c.Name))
	case 1:
		return (&approveCmd{ID: found[0], Digest: c.Digest, Confirm: c.Confirm, Notes: c.Notes}).Run(g, api)
	}
	return term.Usagef("several proxies of %s ask: approve one of %s", term.Safe(c.Name), strings.Join(found, ", "))
}
