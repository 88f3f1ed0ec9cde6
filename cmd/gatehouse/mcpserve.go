package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/mcp"
)

type mcpServeCmd struct {
	Listen string `placeholder:"HOST:PORT" help:"Serve streamable HTTP there instead of stdio."`
}

func (*mcpServeCmd) Help() string {
	return `
Serves Gatehouse itself as an MCP server, with tools to propose a change, look it
up, wait, cancel, revise, ask what the policy would say, and read decisions and
notes. No tool decides.

On stdio it acts with the key of GATEHOUSE_KEY. Over HTTP each request carries
the key of its caller as the bearer token, and requests of other sites' pages are
refused; put a proxy with TLS before an address that is not loopback.

Examples:

    gatehouse mcp serve
    gatehouse mcp serve --listen 127.0.0.1:8090
`
}

// Run serves until it is interrupted, or the client closes stdin.
func (c *mcpServeCmd) Run(g *globals) error {
	if c.Listen != "" {
		return c.serveHTTP(g)
	}
	api, err := g.agent()
	if err != nil {
		return err
	}
	err = mcp.NewServer(version, api).Run(g.ctx, &sdk.IOTransport{
		Reader: io.NopCloser(g.stdin), Writer: nopWriteCloser{g.stdout},
	})
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

func (c *mcpServeCmd) serveHTTP(g *globals) error {
	if err := g.resolve(); err != nil {
		return err
	}
	if _, err := client.New(g.URL, ""); err != nil {
		return usagef("--url or GATEHOUSE_URL is not the address of a server, such as http://127.0.0.1:8080")
	}
	listener, err := (&net.ListenConfig{}).Listen(g.ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(g.stderr, nil))
	s := &http.Server{
		Handler: mcp.NewHandler(version, func(key string) (mcp.Service, error) { return client.New(g.URL, key) }),
		// A tool may wait for 45 s.
		ReadHeaderTimeout: 10 * time.Second, WriteTimeout: gatehouse.MaxWait + 30*time.Second,
		IdleTimeout: 2 * time.Minute,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	log.Info("serving MCP", "url", "http://"+listener.Addr().String())
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-g.ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestGrace)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return s.Close()
	}
	return nil
}
