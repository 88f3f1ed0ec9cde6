package gate_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// TestDecisionCounts decides at every endpoint and at two replicas, and expects one
// sum, shown only to readers of the whole tenant.
func TestDecisionCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	var actions []*gatehouse.Action
	for _, ref := range []string{"A", "B", "C", "D", "E"} {
		actions = append(actions, w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = ref }))
	}
	decide := func(g *gate.Gate, who context.Context, a *gatehouse.Action, d gatehouse.Decision, want gatehouse.Code) {
		t.Helper()
		if _, err := g.Decide(who, a.ID, d); gatehouse.CodeOf(err) != want {
			t.Fatalf("%v, want %q", err, want)
		}
	}
	answer := func(who context.Context, a *gatehouse.Action, d gatehouse.Decision, want gatehouse.Code) {
		t.Helper()
		if _, err := w.gate.Answer(who, a.ID, d); gatehouse.CodeOf(err) != want {
			t.Fatalf("%v, want %q", err, want)
		}
	}
	reject := gatehouse.Decision{Decision: gatehouse.Reject}
	replica := gate.New(w.store, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	decide(w.gate, ana, actions[0], approve(actions[0]), "")
	decide(w.gate, ana, actions[0], approve(actions[0]), "")
	decide(replica, ben, actions[0], reject, gatehouse.CodeAlreadyDecided)
	decide(replica, bot, actions[1], approve(actions[1]), gatehouse.CodeRoleRequired)
	answer(ana, actions[1], approve(actions[1]), "")
	answer(ben, actions[1], approve(actions[1]), "")
	answer(ben, actions[1], reject, gatehouse.CodeNotAwaitingApproval)
	answer(ben, actions[2], reject, "")
	item := func(a *gatehouse.Action) gatehouse.BulkItem {
		return gatehouse.BulkItem{ActionID: a.ID, Digest: a.Digest}
	}
	_, err := w.gate.BulkDecide(ana,
		gatehouse.BulkDecision{Decision: gatehouse.Approve, Items: []gatehouse.BulkItem{item(actions[2]), item(actions[3])}})
	must(t, err)
	decide(w.gate, w.browser(w.signIn(ben, gatehouse.Browser{})), actions[4], reject, "")

	// A store that does not answer loses no counts.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.gate.StoreDecisionCounts(gone); err == nil {
		t.Error("counts are stored without a store")
	}
	for range 2 { // the second time, nothing is left to store
		for _, g := range []*gate.Gate{w.gate, replica} {
			must(t, g.StoreDecisionCounts(t.Context()))
		}
	}

	read := func(who context.Context, f gatehouse.InsightFilter) []gatehouse.DecisionCount {
		t.Helper()
		x, err := w.gate.Insights(who, f)
		must(t, err)
		return x.Decisions
	}
	want := []gatehouse.DecisionCount{
		{Endpoint: "approve", Won: 1, Replayed: 1}, {Endpoint: "bulk-decide", Won: 1, Conflict: 1},
		{Endpoint: "console", Won: 1},
		{Endpoint: "decide", Won: 1, Replayed: 1, Conflict: 1, Refused: 1}, {Endpoint: "reject", Won: 1, Conflict: 1},
	}
	for _, f := range []gatehouse.InsightFilter{{}, {ActionType: "none"}, {Since: w.clock.Now()}} {
		if diff := cmp.Diff(want, read(ana, f)); diff != "" {
			t.Errorf("with %+v (-want +got):\n%s", f, diff)
		}
	}
	if got := read(ana, gatehouse.InsightFilter{Since: w.clock.Now().Add(24 * time.Hour)}); len(got) != 0 {
		t.Errorf("tomorrow: %+v", got)
	}
	if got := read(bot, gatehouse.InsightFilter{}); got == nil || len(got) != 0 {
		t.Errorf("an agent reads %+v", got)
	}
	if _, err := w.gate.CreateTenant(w.admin, "acme"); err != nil {
		t.Fatal(err)
	}
	boss, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
		Tenant: "acme", Name: "boss", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleAdmin},
	})
	must(t, err)
	if got := read(w.as(boss), gatehouse.InsightFilter{}); len(got) != 0 {
		t.Errorf("another tenant reads %+v", got)
	}
}
