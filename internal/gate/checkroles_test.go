package gate_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// outsideTargets are targets with connectors of outside workers.
type outsideTargets struct{ *targets }

func (outsideTargets) Lane(_, connector string) string {
	if strings.HasPrefix(connector, "outside") {
		return connector
	}
	return ""
}

// TestLateLanes checks which pushes that wait for outside workers are reported, and to whom.
func TestLateLanes(t *testing.T) {
	t.Parallel()
	const source = "version: 1\nrisk: {price_change: 2}\nrules: [{id: all, when: 'true', then: allow}]\n"
	w := newWorld(t, source)
	// The connectors of the pushes may be removed meanwhile.
	late := func(tenant string) (late []gatehouse.LateWork) {
		t.Helper()
		g := gate.New(w.store, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
		found, err := g.CheckRoles(gatehouse.NewContext(t.Context(), &gatehouse.Caller{
			Principal: &gatehouse.Principal{Tenant: tenant, Roles: []gatehouse.Role{gatehouse.RoleOperator}}}))
		must(t, err)
		for _, l := range found.Late {
			if l.Connector != "" {
				late = append(late, l)
			}
		}
		return late
	}
	of := func(n int, waited time.Duration, busy bool) gatehouse.LateWork {
		name := fmt.Sprintf("outside%02d", n)
		return gatehouse.LateWork{Role: "worker", Connector: name, Waited: gatehouse.Duration(waited), Busy: busy,
			What: "a push of the connector " + name + " has been due"}
	}
	same := func(what string, got []gatehouse.LateWork, want ...gatehouse.LateWork) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	hold := time.Duration(0)
	w.gate = gate.New(w.store, outsideTargets{w.targets}, &wake.Hub{}, gate.Config{PolicySource: []byte(source), Hold: &hold},
		slog.New(slog.DiscardHandler))
	bot := w.agent()
	propose := func(connector string) {
		t.Helper()
		w.propose(bot, func(p *gatehouse.Proposal) {
			p.Connector, p.Target.EntityRef = connector, fmt.Sprint(connector, w.clock.Now())
		})
	}
	const tenant = gatehouse.DefaultTenant
	propose("outside05")
	w.clock.Advance(30 * time.Second)
	same("after 30 seconds", late(tenant))
	w.clock.Advance(time.Second)
	same("after 31 seconds", late(tenant), of(5, 31*time.Second, false))
	same("for another tenant", late("acme"))

	propose("outside05")
	must(t, w.store.Update(t.Context(), tenant, func(tx gatehouse.Tx) error {
		_, err := tx.ClaimLane(gatehouse.LaneClaim{
			Owner: "somebody", Lease: time.Minute, Lanes: []string{"outside05"}, Limit: 1,
		})
		return err
	}))
	w.clock.Advance(40 * time.Second)
	same("behind a leased one", late(tenant), of(5, 40*time.Second, true))
	w.clock.Advance(30 * time.Second)
	same("behind one whose lease has ended", late(tenant), of(5, 70*time.Second, false))

	var first []gatehouse.LateWork
	for i := range 20 {
		propose(fmt.Sprintf("outside%02d", i))
		first = append(first, of(i, time.Minute, false))
	}
	first[5] = of(5, 130*time.Second, false)
	w.clock.Advance(time.Minute)
	same("at most 16", late(tenant), first[:16]...)
}
