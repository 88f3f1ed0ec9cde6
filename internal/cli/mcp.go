package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/mcp"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// mcpCmd groups the commands for agents that speak the Model Context Protocol.
type mcpCmd struct {
	Proxy   mcpProxyCmd   `cmd:"" help:"Put the gate in front of the tools of an MCP server."`
	Serve   mcpServeCmd   `cmd:"" help:"Serve Gatehouse itself as an MCP server."`
	Tools   mcpToolsCmd   `cmd:"" help:"The pinned tools of a server: list, accept."`
	Add     mcpAddCmd     `cmd:"" help:"Declare an MCP server in the configuration."`
	Install mcpInstallCmd `cmd:"" help:"Print the entry for an agent's configuration."`
}

// mcpStateFlags name the folder for the pins of a proxy, and for the open calls of a proxy or hook.
type mcpStateFlags struct {
	State string `help:"Keep pins and open calls in this folder." placeholder:"DIR"`
}

// folder opens the folder of --state or, by default, one for the name of an MCP server or agent
// and the URL of the gate.
func (f *mcpStateFlags) folder(url, name string) (*mcp.Folder, error) {
	if err := checkServerName(name); err != nil {
		return nil, err
	}
	if f.State != "" {
		return mcp.OpenFolder(f.State)
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, term.Usagef("there is no folder for the user's configuration: give --state")
	}
	sum := sha256.Sum256([]byte(url))
	return mcp.OpenFolder(filepath.Join(dir, "gatehouse", "mcp", name+"-"+hex.EncodeToString(sum[:4])))
}

// mcpServerFlags say how to start or reach a server.
type mcpServerFlags struct {
	Upstream string   `placeholder:"URL" help:"A server over streamable HTTP, instead of a command."`
	Header   []string `sep:"none" placeholder:"NAME=VALUE" help:"A header to send to --upstream. Repeatable."`
	Command  []string `arg:"" optional:"" placeholder:"COMMAND" help:"The server's command line, after --."`
}

// Validate requires exactly one server.
func (f *mcpServerFlags) Validate() error {
	switch {
	case f.Upstream == "" && len(f.Command) == 0:
		return errors.New("give the server's command line after --, or its address with --upstream")
	case f.Upstream != "" && len(f.Command) > 0:
		return errors.New("a server at --upstream takes no command line")
	case f.Upstream == "" && len(f.Header) > 0:
		return errors.New("--header needs --upstream")
	}
	for _, h := range f.Header {
		if name, _, ok := strings.Cut(h, "="); !ok || !httpguts.ValidHeaderFieldName(name) {
			return errors.New("--header takes NAME=VALUE, with the name of an HTTP header")
		}
	}
	return nil
}

// headerVariables returns the names of the environment variables in the headers.
func (f *mcpServerFlags) headerVariables() (names []string) {
	for _, h := range f.Header {
		_, value, _ := strings.Cut(h, "=")
		expand(value, func(name string) string {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			return ""
		})
	}
	return names
}

// expand replaces each ${NAME} in a header's value. Any other $ stands for itself.
func expand(value string, lookup func(name string) string) string {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(value, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			return out.String() + value
		}
		out.WriteString(before + lookup(name))
		value = after
	}
}

// serverArgs returns the arguments of the proxy that name the server.
func (f *mcpServerFlags) serverArgs() []string {
	if f.Upstream == "" {
		return append([]string{"--"}, f.Command...)
	}
	out := []string{"--upstream", f.Upstream}
	for _, h := range f.Header {
		out = append(out, "--header", h)
	}
	return out
}

type mcpProxyCmd struct {
	mcpStateFlags
	mcpServerFlags
	Name     string             `required:"" placeholder:"NAME" help:"The server's name; its connector is mcp:NAME."`
	Env      []string           `sep:"none" placeholder:"NAME[=VALUE]" help:"A variable for the server. Repeatable."`
	ReadOnly []string           `name:"read-only-hint-is-read" placeholder:"TOOL,…" help:"Tools whose calls pass without an action while their pinned definition has readOnlyHint."`
	Hold     gatehouse.Duration `default:"45s" help:"How long a call is held for people."`
	Lease    gatehouse.Duration `default:"60s" help:"How long after a crash a call is sent again (class A) or becomes unknown."`
	Timeout  gatehouse.Duration `default:"10m" help:"How long a tool may take."`
	Listen   string             `placeholder:"HOST:PORT" help:"Serve streamable HTTP there instead of stdio."`
	Host     []string           `placeholder:"NAME" help:"A name by which clients may reach --listen. Repeatable."`
	Idle     gatehouse.Duration `default:"30m" help:"End a session of --listen after this time without use. The shared server of 2026-07-28 ends after 24 h."`
}

func (*mcpProxyCmd) Help() string {
	return `
Is a proxy for an MCP server that it starts, or reaches over HTTP: it speaks the
Model Context Protocol on stdin and stdout. Each tool call becomes an action of the
connector mcp:NAME, which the server's configuration declares with "mcp:NAME:
{type: mcp}"; other messages pass unchanged. A call that the policy allows is
carried out at once. A call that needs approval is held, then answered as pending,
and carried out after the approval.

The key (GATEHOUSE_KEY) belongs to an agent with the roles proposer and worker. If
GATEHOUSE_WORKER_KEY is set, that key, with the role worker, carries out the calls, and
the agent needs only the role proposer. The started server gets PATH, HOME and a few
more variables, never a key. Tools are pinned when they are first seen: a changed tool
is refused until a person accepts the change.

A server at --upstream gets the headers given with --header, in which ${NAME}
stands for a variable of the environment, so that no secret is on the command
line. Redirects are not followed.

With --listen, agents reach the proxy over streamable HTTP. Each request carries the
key of its caller as the bearer token; GATEHOUSE_KEY is not used. The proxy serves one
tenant: that of the worker's key, or else of the first key. Each session has its own
server. Requests from pages of other sites are refused. Put a proxy with TLS in front
of an address that is not loopback.

Examples:

    gatehouse mcp proxy --name files -- npx -y @modelcontextprotocol/server-filesystem /srv/notes
    gatehouse mcp proxy --name shop --read-only-hint-is-read search_objects --env DSN -- dbhub --transport stdio
    gatehouse mcp proxy --name crm --upstream https://mcp.example.com/mcp --header 'Authorization=Bearer ${CRM_TOKEN}'
    gatehouse mcp proxy --name files --listen 127.0.0.1:8091 -- npx -y @modelcontextprotocol/server-filesystem /srv/notes
`
}

// Run proxies until the command is interrupted or, on stdio, the client closes stdin.
func (c *mcpProxyCmd) Run(g *globals) error {
	if c.Listen == "" && len(c.Host) > 0 {
		return term.Usagef("--host needs --listen")
	}
	if c.Upstream != "" && len(c.Env) > 0 {
		return term.Usagef("--env is for a server that is started")
	}
	if err := g.resolve(); err != nil {
		return err
	}
	folder, err := c.folder(g.URL, c.Name)
	if err != nil {
		return err
	}
	config := mcp.Config{
		Name: c.Name, Folder: folder, ReadOnly: c.ReadOnly,
		Hold: c.Hold.D(), Lease: c.Lease.D(), Timeout: c.Timeout.D(),
		Log: slog.New(slog.NewTextHandler(g.Stderr, nil)),
	}
	if c.Upstream != "" {
		config.Relist = relist
	}
	if key := os.Getenv(workerKeyVariable); key != "" {
		if config.Worker, err = g.agentWith(key); err != nil {
			return err
		}
	}
	if c.Listen != "" {
		return c.listen(g, config)
	}
	if config.Gate, err = g.agent(); err != nil {
		return err
	}
	if config.Upstream, err = c.start(config.Log); err != nil {
		return err
	}
	return mcp.Run(g.Ctx, config, g.Stdin, g.Stdout)
}

// workerKeyVariable names the environment variable with the key that carries out the calls of agents.
const workerKeyVariable = "GATEHOUSE_WORKER_KEY"

// start starts the server, or prepares to reach it.
func (c *mcpProxyCmd) start(log *slog.Logger) (mcp.Upstream, error) {
	if c.Upstream != "" {
		return c.connect(log)
	}
	return mcp.Start(mcp.Command{Args: c.Command, Env: c.Env}, log)
}

// listen serves agents over HTTP until it is interrupted.
func (c *mcpProxyCmd) listen(g *globals, config mcp.Config) error {
	if _, err := client.New(g.URL, ""); err != nil {
		return g.badURL()
	}
	if c.Upstream != "" { // report invalid headers at the start
		if _, err := c.connect(config.Log); err != nil {
			return err
		}
	} else if _, err := exec.LookPath(c.Command[0]); err != nil {
		return err
	}
	if err := config.CheckWorker(g.Ctx, ""); err != nil {
		_, unreachable := errors.AsType[*url.Error](err)
		if e, ok := errors.AsType[*gatehouse.Error](err); !unreachable && (!ok || !e.Code.Retryable()) {
			return err
		}
		config.Log.Warn("the worker's key could not be checked yet", "error", err)
	}
	hosts := make([]string, len(c.Host))
	for i, host := range c.Host {
		hosts[i] = strings.ToLower(host)
	}
	front, err := mcp.NewFront(mcp.FrontConfig{
		Config: config, Hosts: hosts, Idle: c.Idle.D(),
		Start: func() (mcp.Upstream, error) { return c.start(config.Log) },
		GateFor: func(key string) (mcp.Gate, error) {
			return g.agentWith(key)
		},
	})
	if err != nil {
		return term.Usagef("%v", err)
	}
	defer front.Close()
	// Each write of a stream has a deadline of its own.
	return serveMCP(g, c.Listen, front, config.Log, time.Minute)
}

// relist is how long a list of tools is valid over HTTP, where some servers do not report changes.
const relist = 30 * time.Second

// connect prepares to reach the server over HTTP.
func (f *mcpServerFlags) connect(log *slog.Logger) (mcp.Upstream, error) {
	header := http.Header{}
	for _, h := range f.Header {
		name, value, _ := strings.Cut(h, "=")
		var unset []string
		value = expand(value, func(variable string) string {
			v, ok := os.LookupEnv(variable)
			if !ok {
				unset = append(unset, variable)
			}
			return v
		})
		switch {
		case len(unset) > 0:
			return nil, term.Usagef("--header %s: %s is not set", name, strings.Join(unset, ", "))
		case !httpguts.ValidHeaderFieldValue(value):
			return nil, term.Usagef("--header %s: the value has characters that a header cannot have", name)
		}
		header.Add(name, value)
	}
	upstream, err := mcp.Connect(mcp.Remote{URL: f.Upstream, Header: header}, log)
	if err != nil {
		return nil, term.Usagef("--upstream: %v", err)
	}
	return upstream, nil
}

// agent makes the client of a program that proposes and carries out actions.
func (g *globals) agent() (*client.Client, error) {
	if err := g.resolve(); err != nil {
		return nil, err
	}
	if g.Key == "" {
		return nil, term.Usagef("an agent's key is needed: set GATEHOUSE_KEY")
	}
	return g.agentWith(g.Key)
}

// agentWith makes the client of a program that uses a key.
func (g *globals) agentWith(key string) (*client.Client, error) {
	c, err := client.New(g.URL, key, client.WithRetries(4, 100*time.Millisecond))
	if err != nil {
		return nil, g.badURL()
	}
	return c, nil
}
