package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// failingCloser cannot be closed.
type failingCloser struct{}

func (failingCloser) Close() error { return errors.New("the disk is full") }

// TestResetPrintsTheSecrets: after a reset, the new secrets are printed even if the store cannot be closed. The error
// is returned nonetheless.
func TestResetPrintsTheSecrets(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir(), &config.Config{})
	t.Cleanup(func() { _ = n.Close() })
	servetest.Bootstrap(t, n.Gate)
	g, out, _ := testGlobals(t)
	c := adminResetCmd{Name: "admin", Tenant: "default"}
	if err := c.reset(g, n.Gate, failingCloser{}); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(out.String(), "gth_") || !strings.Contains(out.String(), "gte_") {
		t.Errorf("the secrets are lost: %q", out)
	}
	out.Reset()
	c.Name = "eve"
	if err := c.reset(g, n.Gate, failingCloser{}); err == nil || !strings.Contains(err.Error(), "the disk is full") ||
		!strings.Contains(err.Error(), "eve") || out.Len() > 0 {
		t.Errorf("an unknown administrator: %v, %q", err, out)
	}
}
