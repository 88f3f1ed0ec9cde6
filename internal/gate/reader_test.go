package gate_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// TestAgentsReadTheirOwn: an agent finds its own proposals and their revisions, and
// nothing of another agent's, whatever the route.
func TestAgentsReadTheirOwn(t *testing.T) {
	w := newWorld(t, "")
	mine := w.principal("mine", gatehouse.KindAgent, gatehouse.RoleProposer, gatehouse.RoleAuditor)
	other := w.principal("other", gatehouse.KindAgent, gatehouse.RoleProposer)
	editor := w.principal("editor", gatehouse.KindPerson, gatehouse.RoleProposer, gatehouse.RoleApprover)
	worker := w.principal("lathe", gatehouse.KindService, gatehouse.RoleWorker)

	var ours []string
	for range 3 {
		w.propose(other, nil)
		ours = append(ours, w.propose(mine, nil).ID)
	}
	secret := w.propose(other, func(p *gatehouse.Proposal) { p.IdempotencyKey = "k-1" })
	revised, err := w.gate.Revise(editor, ours[0],
		proposal(func(p *gatehouse.Proposal) { p.ProposedChange = `{"price":"11.00"}` }))
	must(t, err)
	ours = append(ours, revised.ID)
	if _, err := (&audit.Sequencer{Store: w.store, Logger: slog.New(slog.DiscardHandler)}).Once(t.Context()); err != nil {
		t.Fatal(err)
	}

	if got := w.pages(mine); !slices.Equal(got, slices.Sorted(slices.Values(ours))) {
		t.Errorf("listed %v, want %v", got, ours)
	}
	for who, c := range map[string]context.Context{"mine": mine, "lathe": worker} {
		inbox, _, err := w.gate.Inbox(c, gatehouse.ActionFilter{})
		if want := map[string]int{"mine": len(ours)}[who]; err != nil || len(inbox.Items) != want {
			t.Errorf("the inbox of %s has %d actions, want %d (%v)", who, len(inbox.Items), want, err)
		}
	}
	if _, err := w.gate.FindAction(mine, revised.ID); err != nil {
		t.Errorf("the revision of its own: %v", err)
	}
	found, err := w.gate.FindActions(mine, []string{revised.ID, secret.ID, secret.Approval.ID, "act_none"})
	if err != nil || len(found) != 1 || found[revised.ID] == nil {
		t.Errorf("found %v, %v; want the revision only", found, err)
	}
	refusals := map[string]error{}
	_, refusals["find"] = w.gate.FindAction(mine, secret.ID)
	_, refusals["find by approval"] = w.gate.FindAction(mine, secret.Approval.ID)
	_, refusals["wait"] = w.gate.WaitAction(mine, secret.ID, 0, gatehouse.UntilDecided)
	_, refusals["evidence"] = w.gate.Evidence(mine, secret.ID)
	_, refusals["cancel"] = w.gate.Cancel(mine, secret.ID)
	_, refusals["revise"] = w.gate.Revise(mine, secret.ID, proposal(nil))
	_, refusals["reverse"] = w.gate.Reverse(mine, secret.ID, gatehouse.ReverseRequest{})
	_, refusals["decide"] = w.gate.Decide(mine, secret.ID, approve(secret))
	_, refusals["approve"] = w.gate.Answer(mine, secret.ID, approve(secret))
	refusals["exists"] = w.gate.Exists(mine, "action", secret.ID)
	_, refusals["a worker"] = w.gate.FindAction(worker, secret.ID)
	for what, err := range refusals {
		if code := gatehouse.CodeOf(err); code != gatehouse.CodeNotFound {
			t.Errorf("%s: %q (%v), want not_found", what, code, err)
		}
	}
	if got := w.pages(worker); len(got) != 0 {
		t.Errorf("a worker lists %v", got)
	}

	// The same key and content from another agent: the error only says that the key is in use.
	_, _, err = w.gate.Propose(mine, proposal(func(p *gatehouse.Proposal) { p.IdempotencyKey = "k-1" }))
	wantCode(t, err, gatehouse.CodeDuplicateKey)

	entries, err := w.gate.ListEntries(mine, 0, 200)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for _, e := range entries {
		action, _ := e.Body.Get("action_id")
		if id, _ := action.Text(); !slices.Contains(ours, id) {
			t.Errorf("an entry about %q: %s", id, e.Body)
		}
	}
	insights, err := w.gate.Insights(mine, gatehouse.InsightFilter{})
	if err != nil || insights.All.Proposed != len(ours) {
		t.Errorf("insights count %+v, %v; want %d", insights.All, err, len(ours))
	}

	// A person reads everything, and so does an agent if the configuration says so.
	everything := len(ours) + 4
	if got := w.pages(editor); len(got) != everything {
		t.Errorf("a person lists %d, want %d", len(got), everything)
	}
	wide := gate.New(w.store, w.targets, &wake.Hub{}, gate.Config{AgentsSeeTenant: true}, slog.New(slog.DiscardHandler))
	if _, err := wide.FindAction(mine, secret.ID); err != nil {
		t.Errorf("with agents_see: tenant: %v", err)
	}
	if _, err := wide.FindAction(worker, secret.ID); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		t.Errorf("a worker with agents_see: tenant: %v", err)
	}
}

// stoppedShop is a drainer and the targets of one connector, whose breaker is open.
type stoppedShop struct {
	gate.Drainer
	*targets
}

func (stoppedShop) Names(string) []string { return []string{"shop"} }

func (stoppedShop) Breakers(string) []gatehouse.BreakerState {
	return []gatehouse.BreakerState{{
		Connector: "shop", State: gatehouse.BreakerOpen, Failures: 5, ErrorCode: "http_503",
		Cause: "too many calls in a row have failed, the last with http_503: customer C-7 is locked",
	}}
}

// TestCauseOfABreaker: the target's answer to the call of another agent is not for an agent that reads only its own
// actions.
func TestCauseOfABreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	shop := stoppedShop{targets: w.targets}
	w.gate = gate.New(w.store, shop, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	w.gate.SetDrainer(shop)
	for name, c := range map[string]struct {
		who   context.Context
		cause bool
	}{"agent": {w.agent(), false}, "person": {w.person("ana"), true}} {
		list, err := w.gate.ListBreakers(c.who)
		must(t, err)
		health, err := w.gate.DispatchHealth(c.who)
		must(t, err)
		for _, b := range append(list, health.Connectors[0].Breaker) {
			if b.State != gatehouse.BreakerOpen || b.ErrorCode != "http_503" || (b.Cause != "") != c.cause {
				t.Errorf("%s: %+v", name, b)
			}
		}
	}
}

// pages walks the list of actions, two per page, and returns the ids in order. A
// duplicate id fails the test.
func (w *world) pages(ctx context.Context) (ids []string) {
	w.t.Helper()
	for cursor := ""; ; {
		page, err := w.gate.ListActions(ctx, gatehouse.ActionFilter{Limit: 2, Cursor: cursor})
		must(w.t, err)
		for _, a := range page.Items {
			if slices.Contains(ids, a.ID) {
				w.t.Errorf("%s came twice", a.ID)
			}
			ids = append(ids, a.ID)
		}
		if cursor = page.NextCursor; cursor == "" {
			slices.Sort(ids)
			return ids
		}
	}
}

// TestBulkCallsAreCountedInTheStore: the bound holds over replicas and restarts.
func TestBulkCallsAreCountedInTheStore(t *testing.T) {
	w := newWorld(t, "")
	ana := w.person("ana")
	call := func(g *gate.Gate) error {
		_, err := g.BulkDecide(ana,
			gatehouse.BulkDecision{Decision: gatehouse.Reject, Items: []gatehouse.BulkItem{{ActionID: "act_0"}}})
		return err
	}
	for i := range 30 {
		replica := gate.New(w.store, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
		if err := call(replica); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	wantCode(t, call(w.gate), gatehouse.CodeRateLimited)
	w.clock.Advance(61e9)
	if err := call(w.gate); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}
