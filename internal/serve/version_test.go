package serve

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/version"
)

// TestHealthReportsTheVersion: a server reports the same build as `gatehouse version`.
func TestHealthReportsTheVersion(t *testing.T) {
	t.Parallel()
	s, _, _ := testServer(t, []Role{RoleSweeper})
	defer s.Close()
	c, err := client.New(s.URL, "")
	must(t, err)
	h, err := c.Health(t.Context())
	if err != nil || h.Status != "ok" || h.Build != version.Build() {
		t.Errorf("the server reports %+v, %v", h, err)
	}
}
