package gate

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestFullCeilings: a ceiling that refused a claim counts as full for a while, for its tenant and scope only.
func TestFullCeilings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f fullCeilings
		of := func(tenant, ceiling, scope string) *gatehouse.Action {
			return &gatehouse.Action{Tenant: tenant, Ceilings: []gatehouse.CeilingClaim{
				{Ceiling: "free", Scope: scope}, {Ceiling: ceiling, Scope: scope},
			}}
		}
		full := of("acme", "daily", "tenant")
		if f.any(full) {
			t.Error("a ceiling is full that refused nothing")
		}
		f.add("acme", full.Ceilings[1])
		if !f.any(full) {
			t.Error("a ceiling that refused a claim is not full")
		}
		for _, other := range []*gatehouse.Action{
			of("globex", "daily", "tenant"), of("acme", "weekly", "tenant"), of("acme", "daily", "agent:x"), {},
		} {
			if f.any(other) {
				t.Errorf("%s: %v is full too", other.Tenant, other.Ceilings)
			}
		}
		time.Sleep(fullFor)
		if f.any(full) {
			t.Errorf("the ceiling is full after %s", fullFor)
		}
		for i := range 2 * maxFull {
			f.add("acme", gatehouse.CeilingClaim{Ceiling: strconv.Itoa(i)})
		}
		if len(f.at) > maxFull {
			t.Errorf("%d ceilings are remembered", len(f.at))
		}
	})
}
