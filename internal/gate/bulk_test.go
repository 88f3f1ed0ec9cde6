package gate_test

import (
	"context"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestBulkDecisionsOfOnePersonAMinute counts bulk decisions over all channels, and
// over all principals of one human.
func TestBulkDecisionsOfOnePersonAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	a := w.propose(w.agent(), nil)
	ana, ben := w.person("ana"), w.person("ben")
	c, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
		Name: "ana-too", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover}, Person: "ana",
	})
	must(t, err)
	browser := w.browser(w.signIn(ana, gatehouse.Browser{}))
	ways := []context.Context{ana, browser, w.as(c)}
	d := gatehouse.BulkDecision{Decision: gatehouse.Approve,
		Items: []gatehouse.BulkItem{{ActionID: a.ID, Digest: "sha256:other"}}}
	for i := range 30 {
		if _, err := w.gate.BulkDecide(ways[i%3], d); err != nil {
			t.Fatalf("call %d: %v", i+1, err)
		}
	}
	for _, way := range ways {
		_, err := w.gate.BulkDecide(way, d)
		wantCode(t, err, gatehouse.CodeRateLimited)
	}
	if _, err := w.gate.BulkDecide(ben, d); err != nil {
		t.Errorf("another person: %v", err)
	}
	if _, err := w.gate.Decide(ana, a.ID, approve(a)); err != nil {
		t.Errorf("one by one: %v", err)
	}
}

// TestBulkItemsAreIndependent: a duplicate or unknown id affects only the result of its own
// item.
func TestBulkItemsAreIndependent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	a := w.propose(bot, nil)
	b := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-2" })
	item := func(id string, a *gatehouse.Action) gatehouse.BulkItem {
		return gatehouse.BulkItem{ActionID: id, Digest: a.Digest}
	}
	out, err := w.gate.BulkDecide(w.person("ana"),
		gatehouse.BulkDecision{Decision: gatehouse.Approve, Items: []gatehouse.BulkItem{
			item(a.ID, a), item(a.ID, a), item("act_0193b7e2c4d67aa1b2c3d4e5f6071829", a), item(b.ID, b), item(a.ID, a),
		}})
	must(t, err)
	for i, want := range []string{"decided", "duplicate", "not_found", "decided", "duplicate"} {
		if r := out.Results[i]; r.Result+r.Skipped != want {
			t.Errorf("item %d: %+v, want %s", i, r, want)
		}
	}
	if out.Decided != 2 || out.Skipped != 3 {
		t.Errorf("%d decided, %d skipped", out.Decided, out.Skipped)
	}
}
