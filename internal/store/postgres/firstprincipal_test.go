package postgres

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// TestFirstPrincipalOfATenant lets an administrator of the default tenant create first
// principals of a new tenant concurrently: one is created, and the others fail with an error
// that says why.
func TestFirstPrincipalOfATenant(t *testing.T) {
	t.Parallel()
	g := gate.New(openTest(t, Config{}), nil, &wake.Hub{}, gate.Config{PolicySource: policy.DefaultSource()},
		slog.New(slog.DiscardHandler))
	boot, err := g.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Authenticate(t.Context(), boot.Key)
	if err != nil {
		t.Fatal(err)
	}
	root := gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: p, StepUp: true, Via: gatehouse.ViaAPI})
	for round := range 2 {
		tenant := fmt.Sprintf("acme%d", round)
		if _, err := g.CreateTenant(root, tenant); err != nil {
			t.Fatal(err)
		}
		const callers = 16
		errs := make([]error, callers)
		start := make(chan struct{})
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				<-start
				_, errs[i] = g.CreatePrincipal(root, gatehouse.NewPrincipal{
					Tenant: tenant, Name: fmt.Sprintf("ana%d", i), Kind: gatehouse.KindPerson,
					Roles: []gatehouse.Role{gatehouse.RoleAdmin},
				})
			})
		}
		close(start)
		wg.Wait()
		made := 0
		for _, err := range errs {
			switch {
			case err == nil:
				made++
			case gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired ||
				!strings.Contains(err.Error(), "the tenant "+tenant+" has principals"):
				t.Error(err)
			}
		}
		if made != 1 {
			t.Errorf("%d first principals were made, want 1", made)
		}
	}
}
