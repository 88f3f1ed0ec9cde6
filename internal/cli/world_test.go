package cli

import (
	"log/slog"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// openNode opens a node on a folder.
func openNode(t testing.TB, data string, cfg *config.Config) *serve.Node {
	t.Helper()
	n, err := serve.Open(t.Context(), data, cfg, slog.New(slog.DiscardHandler))
	must(t, err)
	return n
}

// startServer serves a node until the test ends.
func startServer(t testing.TB, n *serve.Node) *serve.Server {
	t.Helper()
	s, err := serve.Start(n, "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// serveConfig serves a configuration on a folder until the test ends, with an administrator.
func serveConfig(t testing.TB, data string, cfg *config.Config) (*serve.Server, *gatehouse.Credentials) {
	t.Helper()
	n := openNode(t, data, cfg)
	creds := servetest.Bootstrap(t, n.Gate)
	return startServer(t, n), creds
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
