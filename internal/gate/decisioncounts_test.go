package gate_test

import (
	"context"
	"errors"
	"fmt"
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

// TestEditCounts: an edit with approve counts as a decision, also one that is refused or repeated. A dry run and an
// edit alone do not count.
func TestEditCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fmt.Sprintf(editing, 3))
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	edit := func(who context.Context, a *gatehouse.Action, e gatehouse.EditRequest, want gatehouse.Code) {
		t.Helper()
		_, err := w.gate.Edit(who, a.ID, e)
		var replay *gatehouse.Replay
		if errors.As(err, &replay) {
			err = nil
		}
		wantCode(t, err, want)
	}
	a := w.propose(bot, nil)
	e := editOf(a, "11.00", true)
	dry, plain, other := e, e, e
	dry.DryRun, plain.Approve, other.Digest = true, false, "sha256:0"
	edit(ana, a, dry, "")
	edit(ana, a, other, gatehouse.CodeDigestMismatch) // refused
	edit(bot, a, e, gatehouse.CodeRoleRequired)       // refused
	once := withKey(t, ana, "k", 1)
	edit(once, a, e, "")                              // won
	edit(once, a, e, "")                              // replayed
	edit(ben, a, e, gatehouse.CodeAlreadyDecided)     // conflict
	edit(ben, a, plain, gatehouse.CodeAlreadyDecided) // not counted
	pair := w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = "pair" })
	edit(ana, pair, editOf(pair, "11.00", true), "") // voted
	must(t, w.gate.StoreDecisionCounts(t.Context()))
	x, err := w.gate.Insights(ana, gatehouse.InsightFilter{})
	must(t, err)
	want := []gatehouse.DecisionCount{{Endpoint: "decide", Won: 1, Voted: 1, Replayed: 1, Conflict: 1, Refused: 2}}
	if diff := cmp.Diff(want, x.Decisions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
