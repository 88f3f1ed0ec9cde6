package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

type mcpAddCmd struct {
	serve.DataFlags
	Name string `arg:"" help:"A name for the server."`
	mcpServerFlags
}

func (*mcpAddCmd) Help() string {
	return `
Declares the connector mcp:NAME in the server's configuration, and prints the command
line of the proxy. The file is checked before it is replaced; comments stay. The
server reads it at its next start.

Examples:

    gatehouse mcp add notes -- npx -y @modelcontextprotocol/server-filesystem /srv/notes
    gatehouse mcp add crm --upstream https://mcp.example.com/mcp
`
}

func (c *mcpAddCmd) Run(g *globals) error {
	connector := "mcp:" + c.Name
	if err := checkServerName(c.Name); err != nil {
		return err
	}
	name := cmp.Or(c.Config, filepath.Join(c.Data, "gatehouse.yaml"))
	source, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("%w; `gatehouse config init` writes a first one", err)
	}
	cfg, err := config.Load(name)
	if err != nil {
		return err
	}
	if _, there := cfg.Connectors[connector]; there {
		g.Say("%s has the connector %s already.", term.ShownPath(name), connector)
	} else if err := declare(name, source, connector); err != nil {
		return err
	} else {
		g.Say("Declared %s in %s; the server reads it at its next start.", connector, term.ShownPath(name))
	}
	_, err = fmt.Fprintln(g.Stdout, shellLine(c.proxyLine(g.Program(), c.Name)))
	return err
}

func checkServerName(name string) error {
	if !gatehouse.ValidName("mcp:" + name) {
		return term.Usagef("%s cannot name a server: a name consists of letters, digits and ._@+-", gatehouse.Quote(name))
	}
	return nil
}

// declare adds a connector to a file, below the key connectors. If the file has no such key, declare adds the key, too.
func declare(name string, source []byte, connector string) error {
	entry := fmt.Sprintf("%q: {type: mcp}\n", connector)
	lines := slices.Collect(bytes.Lines(source))
	at := slices.IndexFunc(lines, func(line []byte) bool {
		return string(bytes.TrimRight(line, " \r\n")) == "connectors:"
	})
	edited := slices.Clone(source)
	switch {
	case at >= 0:
		indent := "  "
		for _, line := range lines[at+1:] { // use the indent of the neighbouring entries
			text := bytes.TrimLeft(line, " ")
			if len(bytes.TrimSpace(text)) > 0 && text[0] != '#' {
				indent = strings.Repeat(" ", max(len(line)-len(text), 1))
				break
			}
		}
		edited = bytes.Join(slices.Insert(lines, at+1, []byte(indent+entry)), nil)
	default:
		if len(edited) > 0 && edited[len(edited)-1] != '\n' {
			edited = append(edited, '\n')
		}
		edited = append(edited, "connectors:\n  "+entry...)
	}
	draft, err := os.CreateTemp(filepath.Dir(name), ".gatehouse-*.yaml") // beside the files that it names
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	_, err = draft.Write(edited)
	if err := closing(draft, err); err != nil {
		return err
	}
	cfg, err := config.Load(draft.Name())
	if err == nil && cfg.Connectors[connector].Type != "mcp" {
		err = errors.New("the edited file does not parse as expected")
	}
	if err != nil {
		return fmt.Errorf("%s cannot be edited (%w): add this line below connectors: %s", term.ShownPath(name), err,
			entry)
	}
	return replaceFile(name, edited)
}

// proxyLine is the command line of a proxy for the server.
func (f *mcpServerFlags) proxyLine(program, name string) []string {
	return append([]string{program, "mcp", "proxy", "--name", name}, f.serverArgs()...)
}

func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = term.ShellWord(w)
	}
	return strings.Join(quoted, " ")
}

type mcpInstallCmd struct {
	Client string `arg:"" enum:"claude,cursor,vscode,codex" help:"The agent: claude, cursor, vscode or codex."`
	Name   string `required:"" placeholder:"NAME" help:"The server's name."`
	mcpServerFlags
}

func (*mcpInstallCmd) Help() string {
	return `
Prints the entry that an agent's configuration needs to reach a server through the
gate, and, on stderr, the file to put it in. The entry does not contain the key: the
agent takes it from the environment, or asks for it.

Examples:

    gatehouse mcp install claude --name files -- npx -y @modelcontextprotocol/server-filesystem /srv/notes
    gatehouse mcp install codex --name files -- npx -y @modelcontextprotocol/server-filesystem /srv/notes
    gatehouse mcp install cursor --name crm --upstream https://mcp.example.com/mcp
`
}

// stdioEntry is the form in which most agents configure a server on stdio.
type stdioEntry struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

func (c *mcpInstallCmd) Run(g *globals) error {
	if err := g.resolve(); err != nil {
		return err
	}
	if err := checkServerName(c.Name); err != nil {
		return err
	}
	line := c.proxyLine(g.Program(), c.Name)
	entry := stdioEntry{Command: line[0], Args: line[1:], Env: map[string]string{"GATEHOUSE_URL": g.URL}}
	var document any
	switch c.Client {
	case "claude":
		g.Say("For .mcp.json of the project:")
		entry.Env["GATEHOUSE_KEY"] = "${GATEHOUSE_KEY}"
		document = map[string]any{"mcpServers": map[string]any{c.Name: entry}}
	case "cursor":
		g.Say("For .cursor/mcp.json of the project:")
		entry.Env["GATEHOUSE_KEY"] = "${env:GATEHOUSE_KEY}"
		document = map[string]any{"mcpServers": map[string]any{c.Name: entry}}
	case "vscode":
		g.Say("For .vscode/mcp.json of the project:")
		entry.Type, entry.Env["GATEHOUSE_KEY"] = "stdio", "${input:gatehouse-key}"
		document = map[string]any{
			"inputs": []map[string]any{{
				"id": "gatehouse-key", "type": "promptString", "password": true,
				"description": "The agent's key for Gatehouse",
			}},
			"servers": map[string]any{c.Name: entry},
		}
	case "codex":
		g.Say("Put this into ~/.codex/config.toml:")
		return c.printTOML(g, entry)
	}
	return term.WriteJSON(g.Stdout, document)
}

// printTOML prints the entry for Codex. Codex passes the key, and the variables of the headers, from
// its own environment to the proxy.
func (c *mcpInstallCmd) printTOML(g *globals, entry stdioEntry) error {
	args, err := json.Marshal(entry.Args) // a JSON array of strings is a TOML one
	if err != nil {
		return err
	}
	vars, err := json.Marshal(append([]string{"GATEHOUSE_KEY"}, c.headerVariables()...))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.Stdout, `[mcp_servers.%s]
command = %s
args = %s
env = { GATEHOUSE_URL = %s }
env_vars = %s
`, gatehouse.StringJSON(c.Name), gatehouse.StringJSON(entry.Command), args, gatehouse.StringJSON(g.URL), vars)
	return err
}
