package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/mcp"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/version"
)

type mcpServeCmd struct {
	mcpStateFlags
	Listen string             `placeholder:"HOST:PORT" help:"Serve streamable HTTP there instead of stdio."`
	Prompt string             `placeholder:"AGENT" help:"Serve the tool approve for this agent's permission prompts."`
	Hold   gatehouse.Duration `default:"45s" help:"How long approve waits for people."`
}

func (*mcpServeCmd) Help() string {
	return `
Serves Gatehouse itself as an MCP server, with tools to propose, read, await, cancel
and revise an action, to evaluate the policy, to read decisions and notes, and to
answer reviewers' questions. No tool decides.

With --prompt claude-code there is also the tool approve, on stdio. Claude Code asks
it before it runs a tool of its own, when it is started with
--permission-prompt-tool mcp__gatehouse__approve and this server is called gatehouse
in its configuration. The call becomes an action of the connector mcp:claude-code.

On stdio it acts with the key of GATEHOUSE_KEY. Over HTTP each request carries
the key of its caller as the bearer token, and requests of other sites' pages are
refused; put a proxy with TLS in front of an address that is not loopback.

Examples:

    gatehouse mcp serve
    gatehouse mcp serve --prompt claude-code --hold 10m
    gatehouse mcp serve --listen 127.0.0.1:8090
`
}

// Run serves until the command is interrupted or, on stdio, the client closes stdin.
func (c *mcpServeCmd) Run(g *globals) error {
	switch {
	case c.Listen != "" && c.Prompt != "":
		return term.Usagef("--prompt serves one agent, on stdio: it cannot be combined with --listen")
	case c.Listen != "":
		return c.serveHTTP(g)
	}
	api, err := g.agent()
	if err != nil {
		return err
	}
	var permission *mcp.Hook
	if c.Prompt != "" {
		if !gatehouse.ValidName("mcp:" + c.Prompt) {
			return term.Usagef("%s cannot name an agent: letters, digits, or any of ._@+-", gatehouse.Quote(c.Prompt))
		}
		folder, err := c.folder(g.URL, c.Prompt)
		if err != nil {
			return err
		}
		permission = &mcp.Hook{Agent: c.Prompt, Gate: api, Folder: folder, Hold: c.Hold.D()}
	}
	err = mcp.NewServer(version.Number, api, permission).Run(g.Ctx, mcp.Stdio(g.Stdin, g.Stdout))
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (c *mcpServeCmd) serveHTTP(g *globals) error {
	if err := g.resolve(); err != nil {
		return err
	}
	if _, err := client.New(g.URL, ""); err != nil {
		return g.badURL()
	}
	log := slog.New(slog.NewTextHandler(g.Stderr, nil))
	handler := mcp.NewHandler(version.Number, func(key string) (mcp.Service, error) { return client.New(g.URL, key) })
	// The longest wait of a tool, 45 s, is shorter.
	return serveMCP(g, c.Listen, handler, log, gatehouse.MaxWait+30*time.Second)
}

// newMCPServer returns a server with the time limits of a public address; write is its WriteTimeout.
// ReadTimeout bounds only the reading of a request, not a streamed response.
func newMCPServer(handler http.Handler, log *slog.Logger, write time.Duration) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: write,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// serveMCP serves a handler of MCP on an address until it is interrupted.
func serveMCP(g *globals, address string, handler http.Handler, log *slog.Logger, write time.Duration) error {
	listener, err := (&net.ListenConfig{}).Listen(g.Ctx, "tcp", address)
	if err != nil {
		return err
	}
	s := newMCPServer(handler, log, write)
	if local, ok := listener.Addr().(*net.TCPAddr); !ok || !local.IP.IsLoopback() {
		log.Warn("other machines can reach this address, and keys would cross the network unencrypted: " +
			"put a TLS proxy in front of it")
	}
	log.Info("serving MCP", "url", "http://"+listener.Addr().String())
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-g.Ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), serve.RequestGrace)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return s.Close()
	}
	return nil
}
