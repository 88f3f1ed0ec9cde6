package proof

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// failed returns an action that its target has refused permanently.
func (c *contract) failed(t *testing.T) *gatehouse.Action {
	t.Helper()
	ref := "refused-" + c.sku()
	c.target.script(ref, 422)
	a := c.agent.propose(t, contact(ref, "update", "new"))
	must(t, c.ana.decide(a, "approved"), 200, "decided")
	end := c.admin.finished(t, a.ID)
	if end.Status != gatehouse.StatusFailed || end.Failure == nil || end.Push.Status != gatehouse.PushFailed {
		t.Fatalf("it is %s: %+v", end.Status, end.Failure)
	}
	return end
}

// unknown returns an action of class C whose only call was answered 500.
func (c *contract) unknown(t *testing.T) *gatehouse.Action {
	t.Helper()
	ref := "unclear-" + c.sku()
	c.target.script(ref, 500)
	a := c.agent.propose(t, contact(ref, "once", "new"))
	must(t, c.ana.decide(a, "approved"), 200, "decided")
	end := c.admin.finished(t, a.ID)
	if end.Status != gatehouse.StatusUnknown || c.target.callsFor(a.IdempotencyKey) != 1 {
		t.Fatalf("it is %s after %d calls", end.Status, c.target.callsFor(a.IdempotencyKey))
	}
	return end
}

func (c *contract) deadLetter(t *testing.T, a *gatehouse.Action) *gatehouse.DeadLetter {
	t.Helper()
	for cursor := ""; ; {
		var page gatehouse.Page[*gatehouse.DeadLetter]
		c.op.get("/dead-letters?limit=200&cursor="+cursor).decode(t, &page)
		for _, d := range page.Items {
			if d.ActionID == a.ID {
				return d
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
}

func (c *contract) replay(t *testing.T, ids ...string) []gatehouse.DeadLetterResult {
	t.Helper()
	var out gatehouse.ReplayAnswer
	c.admin.post("/dead-letters/replay", object{"ids": ids}).decode(t, &out)
	return out.Results
}

var dispatchRows = map[string]func(*testing.T, *contract){
	"a dead letter, and its replay": func(t *testing.T, c *contract) {
		a := c.failed(t)
		d := c.deadLetter(t, a)
		if d == nil || d.ID != a.Push.ID || d.Error == "" || d.ErrorCode != "http_422" || d.Attempts != 1 ||
			d.LastAt.IsZero() || d.Advice == "" ||
			!strings.Contains(string(d.Payload), `"new"`) {
			t.Fatalf("the dead letter: %+v", d)
		}
		must(t, c.op.post("/dead-letters/replay", object{"ids": []string{d.ID}}), 403, "role_required")
		if r := c.replay(t, d.ID)[0]; r.Result != "queued" {
			t.Fatalf("replayed: %+v", r)
		}
		c.oneEffect(t, a)
		if n := c.target.callsFor(a.IdempotencyKey); n != 2 {
			t.Errorf("%d calls under the key", n)
		}
		if r := c.replay(t, d.ID)[0]; r.Skipped != "already_applied" {
			t.Errorf("replayed again: %+v", r)
		}
		if c.deadLetter(t, a) != nil {
			t.Error("it is still a dead letter")
		}
	},
	"a push that is not a dead letter": func(t *testing.T, c *contract) {
		held := c.ask(t, object{"action_type": "held"})
		must(t, c.ana.decide(held, "approved"), 200, "decided")
		results := c.replay(t, "psh_nothing", c.admin.action(t, held.ID).Push.ID, c.approved(t).Push.ID)
		if results[0].Skipped != "not_found" || results[1].Skipped != "not_failed" ||
			results[2].Skipped != "already_applied" {
			t.Errorf("replayed: %+v", results)
		}
		must(t, c.admin.post("/dead-letters/replay", object{}), 422, "invalid", "errors")
		must(t, c.admin.post("/dead-letters/replay", object{"all": true, "ids": []string{"psh_1"}}), 422, "invalid", "errors")
	},
	"replayed at once by many": func(t *testing.T, c *contract) {
		a := c.failed(t)
		answers := storm(20, func(int) answer {
			return c.admin.post("/dead-letters/replay", object{"ids": []string{a.Push.ID}})
		})
		queued := 0
		for _, res := range answers {
			var out gatehouse.ReplayAnswer
			res.decode(t, &out)
			switch r := out.Results[0]; {
			case r.Result == "queued":
				queued++
			case r.Skipped != "not_failed" && r.Skipped != "already_applied":
				t.Errorf("skipped as %+v", r)
			}
		}
		if queued != 1 {
			t.Errorf("%d of them put it back", queued)
		}
		c.oneEffect(t, a)
		if n := c.target.callsFor(a.IdempotencyKey); n != 2 {
			t.Errorf("%d calls", n)
		}
	},
	"a class A call that fails is called again, then dead": func(t *testing.T, c *contract) {
		ref := "down-" + c.sku()
		c.target.script(ref, 429, 429)
		a := c.agent.propose(t, contact(ref, "update", "new"))
		must(t, c.ana.decide(a, "approved"), 200, "decided")
		end := c.admin.finished(t, a.ID)
		if end.Status != gatehouse.StatusFailed || end.Push.Attempts != 2 || c.target.callsFor(a.IdempotencyKey) != 2 {
			t.Fatalf("%s after %d attempts", end.Status, end.Push.Attempts)
		}
		if r := c.replay(t, end.Push.ID)[0]; r.Result != "queued" {
			t.Fatal(r)
		}
		c.oneEffect(t, a)
	},
	"an unknown is resolved as applied": func(t *testing.T, c *contract) {
		a := c.unknown(t)
		path := "/pushes/" + a.Push.ID + "/resolve"
		must(t, c.agent.post(path, object{"outcome": "applied", "reason": "x"}), 403, "role_required")
		must(t, c.ana.post(path, object{"outcome": "applied", "reason": "x"}), 403, "role_required")
		must(t, c.op.post(path, object{"outcome": "applied"}), 422, "invalid", "errors")
		must(t, c.op.post(path, object{"outcome": "perhaps", "reason": "x"}), 422, "invalid", "errors")
		must(t, c.ana.short(a, "approve"), 200, "already_approved")
		if r := c.replay(t, a.Push.ID)[0]; r.Skipped != "resolve_first" {
			t.Errorf("an unknown was replayed: %+v", r)
		}
		res := must(t, c.op.post(path, object{"outcome": "applied", "reason": "seen in the crm"}), 200, "applied")
		if res.str("id") != a.Push.ID {
			t.Errorf("answered %s", res)
		}
		must(t, c.op.post(path, object{"outcome": "failed", "reason": "x"}), 409, "not_unknown", "current_status")
		got := c.admin.action(t, a.ID)
		if got.Status != gatehouse.StatusApplied || got.Receipt == nil || got.Receipt.Source != "operator" {
			t.Errorf("it is %s with %+v", got.Status, got.Receipt)
		}
		if n := c.target.callsFor(a.IdempotencyKey); n != 1 {
			t.Errorf("%d calls", n)
		}
	},
	"an unknown is resolved as failed": func(t *testing.T, c *contract) {
		a := c.unknown(t)
		must(t, c.op.post("/pushes/"+a.Push.ID+"/resolve", object{"outcome": "failed", "reason": "not in the crm"}), 200,
			"failed")
		if d := c.deadLetter(t, a); d == nil || d.ErrorCode != "resolved_failed" {
			t.Fatalf("the dead letter: %+v", d)
		}
		// A person has stated that nothing happened, so a person may replay.
		if r := c.replay(t, a.Push.ID)[0]; r.Result != "queued" {
			t.Fatalf("replayed: %+v", r)
		}
		c.oneEffect(t, a)
		if n := c.target.callsFor(a.IdempotencyKey); n != 2 {
			t.Errorf("%d calls", n)
		}
	},
	"resolve what is not there": func(t *testing.T, c *contract) {
		must(t, c.op.post("/pushes/psh_0/resolve", object{"outcome": "failed", "reason": "x"}), 404, "not_found")
		must(t, c.agent.post("/pushes/psh_0/resolve", object{"outcome": "failed", "reason": "x"}), 404, "not_found")
		must(t, c.op.post("/pushes/"+c.approved(t).Push.ID+"/resolve", object{"outcome": "failed", "reason": "x"}), 409,
			"not_unknown", "current_status")
	},
}

// TestDrain keeps the only worker busy, so that due pushes wait.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, `dispatch: {hold: 0s, retries: 1, backoff: [50ms], lease: 60s, workers: 1}`)
	ana := w.admin.create(t, "ana", "person", "approver")
	op := w.admin.create(t, "olga", "person", "operator")
	busy := w.agent.propose(t, contact("busy", "update", "new"))
	release := w.target.holdReads("busy")
	defer release()
	must(t, ana.decide(busy, "approved", object{"acknowledge_stale": true}), 200, "decided")
	until(t, "worker at the target", func() bool { return w.target.waiting("busy") > 0 })
	var waiting []*gatehouse.Action
	for range 3 {
		a := w.agent.propose(t, price(w.sku(), "12.50"))
		must(t, ana.decide(a, "approved"), 200, "decided")
		waiting = append(waiting, a)
	}
	for _, dry := range []any{nil, object{}, object{"dry_run": true}, object{"limit": 2}} {
		var out gatehouse.DrainAnswer
		op.post("/pushes/drain", dry).decode(t, &out)
		want := 3
		if o, _ := dry.(object); o["limit"] != nil {
			want = 2
		}
		if !out.DryRun || len(out.Items) != want {
			t.Fatalf("a dry run (%v) shows %+v", dry, out)
		}
		for _, i := range out.Items {
			n := slices.IndexFunc(waiting, func(a *gatehouse.Action) bool { return a.ID == i.ActionID })
			if n < 0 || i.Outcome != "due" || i.Digest != waiting[n].Digest || i.Key != waiting[n].IdempotencyKey {
				t.Errorf("a dry run shows %+v", i)
			}
		}
	}
	for _, a := range waiting {
		if w.effects(t, a) != 0 {
			t.Error("a dry run had an effect")
		}
		// Its hold has ended; a busy worker makes no difference.
		must(t, ana.cancel(a), 409, "too_late", "current_status")
	}
	must(t, w.agent.post("/pushes/drain", object{"dry_run": false}), 403, "role_required")
	must(t, ana.post("/pushes/drain", object{"dry_run": false}), 403, "role_required")
	drained := make(chan answer, 1)
	go func() { drained <- op.post("/pushes/drain", object{"dry_run": false}) }()
	release()
	var out gatehouse.DrainAnswer
	(<-drained).decode(t, &out)
	if out.DryRun {
		t.Error("the answer says that it was a dry run")
	}
	for _, i := range out.Items {
		if i.Outcome != "applied" {
			t.Errorf("drained: %+v", i)
		}
	}
	for _, a := range append(waiting, busy) {
		w.oneEffect(t, a)
	}
	w.check(t, newJournal())
}

// TestDefinition edits a connector's template between approval and dispatch: the request would
// differ from the approved one, so nothing is sent.
func TestDefinition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, quick)
	ana := w.admin.create(t, "ana", "person", "approver")
	a := w.agent.propose(t, contact("moved", "update", "new", object{"action_type": "rested"}))
	must(t, ana.decide(a, "approved"), 200, "decided")
	w.stop()
	path := filepath.Join(w.data, "gatehouse.yaml")
	config, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(config), `path: "/{entity_type}/{entity_ref}"`,
		`path: "/{entity_type}/{entity_ref}?force=1"`, 1)
	if edited == string(config) {
		t.Fatal("the configuration was not edited")
	}
	write(t, path, edited)
	w.start()
	end := w.admin.finished(t, a.ID)
	if end.Status != gatehouse.StatusFailed || end.Failure.Code != "digest_mismatch" || len(w.target.log()) != 0 {
		t.Fatalf("it is %s (%+v) after %d calls", end.Status, end.Failure, len(w.target.log()))
	}
	var out gatehouse.ReplayAnswer
	w.admin.post("/dead-letters/replay", object{"all": true}).decode(t, &out)
	if len(out.Results) != 1 || out.Results[0].Skipped != "digest_mismatch" {
		t.Errorf("replayed: %+v", out)
	}
	w.stop()
	write(t, path, string(config)) // the approved definition
	w.start()
	w.admin.post("/dead-letters/replay", object{"all": true}).decode(t, &out)
	if out.Replayed != 1 {
		t.Errorf("not replayed: %+v", out)
	}
	w.oneEffect(t, a)
	w.check(t, newJournal())
}
