package serve

import (
	"log/slog"
	"os"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// openNode opens a node on a new folder.
func openNode(t *testing.T, cfg *config.Config) *Node {
	t.Helper()
	n, err := Open(t.Context(), t.TempDir(), cfg, slog.New(slog.DiscardHandler))
	must(t, err)
	return n
}

// startServer serves a node until the test ends.
func startServer(t *testing.T, n *Node) *Server {
	t.Helper()
	s, err := Start(n, "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// serveSource serves a configuration on a new folder until the test ends, with an administrator.
func serveSource(t *testing.T, source string) (*Server, *gatehouse.Credentials) {
	t.Helper()
	n := openNode(t, servetest.Config(t, source))
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
