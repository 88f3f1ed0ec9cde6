package runs

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestShareChargesNothing: a lane does not pay for a lease that failed or found
// nothing, only for the steps that it got.
func TestShareChargesNothing(t *testing.T) {
	t.Parallel()
	f := &fair{weights: func(string, string) (int, int) { return 1, 1 }}
	due := []gatehouse.DueLane{
		{Lane: gatehouse.Lane{Tenant: "acme", Workflow: "a"}, Ready: 9},
		{Lane: gatehouse.Lane{Tenant: "acme", Workflow: "b"}, Ready: 9},
	}
	next := func() string {
		shares := f.share(due, 1, func(gatehouse.Lane) (workflow, tenant int, ok bool) { return 0, 0, true })
		if len(shares) != 1 {
			t.Fatalf("shared %+v", shares)
		}
		return shares[0].Workflow
	}
	for range 3 {
		if got := next(); got != "a" {
			t.Fatalf("after leases that failed, %s is next", got)
		}
	}
	f.charge([]*gatehouse.Step{{Tenant: "acme", Workflow: "a"}})
	if got := next(); got != "b" {
		t.Errorf("after a lease of a, %s is next", got)
	}
}
