package proof

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestRebase proposes changes again on the present state of real targets, over
// HTTP, on both engines.
func TestRebase(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		c := &contract{world: newWorldOn(t, e, 100, `dispatch: {hold: 0s, retries: 1, backoff: [50ms], lease: 5s}`)}
		c.ana = c.admin.create(t, "ana", "person", "approver")
		c.ben = c.admin.create(t, "ben", "person", "approver")
		c.cleo = c.admin.create(t, "cleo", "person", "approver")
		c.op = c.admin.create(t, "olga", "person", "operator")
		t.Run("rows", func(t *testing.T) {
			for name, row := range rebaseRows {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					row(t, c)
				})
			}
		})
		c.check(t, newJournal())
	})
}

func (p *person) rebase(a *gatehouse.Action, headers ...string) answer {
	return p.post("/proposed-actions/"+a.ID+"/rebase", nil, headers...)
}

// rebased is the action that a rebase created.
func (c *contract) rebased(t *testing.T, res answer) *gatehouse.Action {
	t.Helper()
	if res.status != http.StatusCreated {
		t.Fatal(res)
	}
	return c.admin.action(t, res.str("id"))
}

// moved is a pending action at the shop whose target has changed since.
func (c *contract) moved(t *testing.T, more ...object) *gatehouse.Action {
	t.Helper()
	a := c.ask(t, more...)
	c.move(t, a)
	return a
}

// move changes the target of an action behind the gate's back.
func (c *contract) move(t *testing.T, a *gatehouse.Action) {
	t.Helper()
	c.shop.exec(t, `UPDATE items SET price = '11.00', version = 2 WHERE sku = ?`, a.Target.EntityRef)
	t.Cleanup(func() { // the ledger counts from version 1
		c.shop.exec(t, `UPDATE items SET version = version - 1 WHERE sku = ? AND version > 1`, a.Target.EntityRef)
	})
}

// refused checks that a rebase created nothing.
func (c *contract) refused(t *testing.T, a *gatehouse.Action, res answer, status int, code, reason string) {
	t.Helper()
	must(t, res, status, code)
	if got := res.str("reason"); got != reason {
		t.Errorf("reason %q, want %q: %s", got, reason, res)
	}
	now := c.admin.action(t, a.ID)
	if now.Status != a.Status || now.Superseded != "" || now.Digest != a.Digest {
		t.Errorf("a refused rebase left %s %s", now.Status, now.Superseded)
	}
}

var rebaseRows = map[string]func(*testing.T, *contract){
	"a row of the shop": func(t *testing.T, c *contract) {
		old := c.ask(t, object{"action_type": "pair", "rationale": "cheaper"})
		must(t, c.ana.decide(old, "approved"), 200, "vote_recorded")
		c.move(t, old)
		stale := must(t, c.ben.decide(old, "approved"), 409, "target_changed", "expected", "actual")
		if stale.body["can_acknowledge"] != false || stale.body["can_rebase"] != true ||
			!c.admin.action(t, old.ID).CanRebase {
			t.Errorf("clients are not told that it can be rebased: %s", stale)
		}
		a := c.rebased(t, c.ben.rebase(old))
		if a.Supersedes != old.ID || a.Revision != 2 || a.Digest == old.Digest || a.RebasedBy != "ben" ||
			a.ProposedBy != "bot" ||
			a.Target.Version != "2" || a.CurrentState != `{"price":"11.00"}` ||
			a.ProposedChange != old.ProposedChange ||
			a.Rationale != "cheaper" || len(a.Approval.Votes) != 0 || a.Status != gatehouse.StatusPending {
			t.Errorf("the revision: %+v", a)
		}
		was := c.admin.action(t, old.ID)
		if was.Status != gatehouse.StatusSuperseded || was.Superseded != a.ID ||
			was.Approval.Status != gatehouse.ApprovalCanceled || was.CanRebase {
			t.Errorf("the old action: %s %s %v", was.Status, was.Superseded, was.CanRebase)
		}
		must(t, c.ana.decide(old, "approved"), 409, "already_decided", "superseded_by")

		// Requesting the present state is not a contribution to the content.
		must(t, c.ben.decide(a, "approved"), 200, "vote_recorded")
		must(t, c.ana.decide(a, "approved"), 200, "decided")
		if end := c.admin.finished(t, a.ID); end.Status != gatehouse.StatusApplied {
			t.Errorf("ended %s: %+v", end.Status, end.Failure)
		}
		if i := c.shop.items(t)[old.Target.EntityRef]; i.price != "12.50" || i.version != 3 {
			t.Errorf("the item: %+v", i)
		}
		c.said(t, a, "ben", "1", "2")
	},
	"a contact of the crm": func(t *testing.T, c *contract) {
		ref := "rebase-" + c.sku()
		old := c.agent.propose(t, contact(ref, "update", "new"))
		c.target.change(ref, "<b>\u202eother")
		a := c.rebased(t, c.agent.rebase(old))
		if a.Target.Version != "2" || a.CurrentState != `{"value":"<b>`+"\u202e"+`other"}` || a.RebasedBy != "bot" {
			t.Errorf("the revision is on %s of version %s, by %s", a.CurrentState, a.Target.Version, a.RebasedBy)
		}
		must(t, c.ana.decide(a, "approved"), 200, "decided")
		c.oneEffect(t, a)
	},
	"of a version alone": func(t *testing.T, c *contract) {
		old := c.moved(t, object{"current_state": nil})
		a := c.rebased(t, c.agent.rebase(old))
		if a.Target.Version != "2" || a.CurrentState != `{"price":"11.00"}` {
			t.Errorf("the revision is on %s of version %s", a.CurrentState, a.Target.Version)
		}
	},
	"many rows": func(t *testing.T, c *contract) {
		x, y := c.sku(), c.sku()
		old := c.agent.propose(t, object{
			"action_type": "price_change", "connector": "shop", "operation": "bulk_delete",
			"target": object{"entity_type": "item", "entity_refs": []string{x, y}},
			"current_state": object{x: object{"price": "10.00", "version": 1},
				y: object{"price": "10.00", "version": 1}},
			"proposed_change": object{},
		})
		c.shop.exec(t, `UPDATE items SET price = '11.00', version = 2 WHERE sku = ?`, y)
		a := c.rebased(t, c.ana.rebase(old))
		want := gatehouse.ObjectJSON(
			gatehouse.Member{Name: x, Value: `{"price":"10.00","version":1}`},
			gatehouse.Member{Name: y, Value: `{"price":"11.00","version":2}`})
		if a.CurrentState != want || a.Target.Version != "" {
			t.Errorf("the revision is on %s, want %s", a.CurrentState, want)
		}
		must(t, c.agent.post("/proposed-actions/"+a.ID+"/cancel", nil), 200, "canceled")
		c.shop.exec(t, `UPDATE items SET version = 1 WHERE sku = ?`, y)
	},
	"the policy judges again": func(t *testing.T, c *contract) {
		// Without people it would be allowed; people were asked before, so they
		// are asked again.
		ref := "judged-" + c.sku()
		old := c.agent.propose(t, contact(ref, "update", "new"))
		c.target.change(ref, "other")
		a := c.rebased(t, c.agent.rebase(old))
		if a.Status != gatehouse.StatusPending || a.Policy.Outcome != gatehouse.OutcomeNeedsApproval {
			t.Errorf("it is %s", a.Status)
		}
	},
	"under an Idempotency-Key": func(t *testing.T, c *contract) {
		old := c.moved(t)
		first := c.agent.rebase(old, "Idempotency-Key", "rebase-"+old.ID)
		again := c.agent.rebase(old, "Idempotency-Key", "rebase-"+old.ID)
		if first.status != 201 || again.str("id") != first.str("id") ||
			again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("first %s, then %s", first, again)
		}
		must(t, c.agent.rebase(old, "Idempotency-Key", "other-"+old.ID), 409, "already_decided", "superseded_by")
	},
	"not what is not pending": func(t *testing.T, c *contract) {
		for status, a := range c.ends(t) {
			if got := must(t, c.agent.rebase(a), 409, "already_decided",
				"current_status"); got.str("current_status") != string(status) {
				t.Errorf("%s: %s", status, got)
			}
		}
		soon := c.ask(t, object{"expires_in": "1s"})
		until(t, "it has expired", func() bool { return c.admin.action(t, soon.ID).Status == gatehouse.StatusExpired })
		must(t, c.agent.rebase(soon), 410, "expired")
	},
	"not what is unchanged": func(t *testing.T, c *contract) {
		a := c.ask(t)
		c.refused(t, a, c.agent.rebase(a), 409, "cannot_rebase", "unchanged")
	},
	"not what is gone": func(t *testing.T, c *contract) {
		row := c.ask(t)
		c.shop.exec(t, `DELETE FROM items WHERE sku = ?`, row.Target.EntityRef)
		c.refused(t, row, c.ana.rebase(row), 409, "cannot_rebase", "target_gone")
		c.shop.exec(t, `INSERT INTO items (sku, price, version) VALUES (?, '10.00', 1)`, row.Target.EntityRef)

		ref := "gone-" + c.sku()
		a := c.agent.propose(t, contact(ref, "update", "new"))
		c.target.answer(ref, http.NotFound)
		c.refused(t, a, c.ana.rebase(a), 409, "cannot_rebase", "target_gone")
	},
	"not where the connector cannot read": func(t *testing.T, c *contract) {
		blind := c.agent.propose(t, contact("blind-"+c.sku(), "blind", "new"))
		if c.admin.action(t, blind.ID).CanRebase {
			t.Error("clients are told that it can be rebased")
		}
		c.refused(t, blind, c.agent.rebase(blind), 409, "cannot_rebase", "unreadable")
		insert := c.agent.propose(t, object{
			"action_type": "price_change", "connector": "shop", "operation": "insert",
			"target":          object{"entity_type": "item", "entity_ref": "new-" + c.sku()},
			"proposed_change": object{"price": "1.00"},
		})
		c.refused(t, insert, c.agent.rebase(insert), 409, "cannot_rebase", "unreadable")
	},
	"not while the target is out of order": func(t *testing.T, c *contract) {
		for name, broken := range map[string]struct {
			answer       http.HandlerFunc
			status       int
			code, reason string
		}{
			"down": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, 503,
				"busy", ""},
			"no JSON": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version": 2, "state": {`) },
				503, "busy", ""},
			"no state": {func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w,
					`{"version": 2, "state": "gone fishing"}`)
			},
				409, "cannot_rebase", "unreadable"},
			"no version": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"state": {"value": "x"}}`) },
				409, "cannot_rebase", "unreadable"},
			"a control character in the version": {func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, `{"version": "2\u0000", "state": {"value": "x"}}`)
			}, 409, "cannot_rebase", "state_invalid"},
			"huge": {func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"version": 2, "state": {"value": %q}}`, strings.Repeat("x", 600<<10))
			}, 409, "cannot_rebase", "state_too_large"},
		} {
			ref := strings.ReplaceAll(name, " ", "-") + "-" + c.sku()
			a := c.agent.propose(t, contact(ref, "update", "new"))
			c.target.answer(ref, broken.answer)
			t.Log(name)
			c.refused(t, a, c.ana.rebase(a), broken.status, broken.code, broken.reason)
		}
	},
	"not by everybody": func(t *testing.T, c *contract) {
		old := c.moved(t)
		other := c.admin.create(t, "rebaser-"+c.sku(), "agent", "proposer")
		must(t, other.rebase(old), 404, "not_found")
		must(t, c.op.rebase(old), 403, "role_required")
		if c.admin.action(t, old.ID).Status != gatehouse.StatusPending {
			t.Error("it is not pending any more")
		}
	},
	"nobody slips in": func(t *testing.T, c *contract) {
		// An excluded person may request the present state, and stays excluded.
		old := c.moved(t, object{"on_behalf_of": "ana"})
		author := c.admin.create(t, "author-"+c.sku(), "person", "proposer,approver")
		res := author.post("/proposed-actions/"+old.ID+"/revise",
			price(old.Target.EntityRef, "13.00", object{"on_behalf_of": nil}))
		if res.status != 201 {
			t.Fatal(res)
		}
		a := c.rebased(t, c.ana.rebase(c.admin.action(t, res.str("id"))))
		if a.ProposedBy != author.name || a.RebasedBy != "ana" {
			t.Errorf("proposed by %s, rebased by %s", a.ProposedBy, a.RebasedBy)
		}
		must(t, c.ana.decide(a, "approved"), 403, "self_approval")
		must(t, author.decide(a, "approved"), 403, "self_approval")
		must(t, c.ben.decide(a, "approved"), 200, "decided")
	},
	"a reversal": func(t *testing.T, c *contract) {
		// It remains the only open reversal of the original action.
		ref := "undone-" + c.sku()
		done := c.agent.propose(t, contact(ref, "update", "new"))
		must(t, c.ana.decide(done, "approved"), 200, "decided")
		c.oneEffect(t, done)
		res := c.ana.post("/proposed-actions/"+done.ID+"/reverse", nil)
		if res.status != 201 {
			t.Fatal(res)
		}
		c.target.change(ref, "newer")
		a := c.rebased(t, c.ben.rebase(c.admin.action(t, res.str("id"))))
		if a.Reverses != done.ID || a.CurrentState != `{"value":"newer"}` || a.ProposedChange != `{"value":"old"}` {
			t.Errorf("it reverses %q: %s to %s", a.Reverses, a.CurrentState, a.ProposedChange)
		}
		must(t, c.ben.post("/proposed-actions/"+done.ID+"/reverse", nil), 409, "not_reversible")
		must(t, c.ben.decide(a, "approved"), 200, "decided")
		c.oneEffect(t, a)
		if got := c.admin.action(t, done.ID); got.Status != gatehouse.StatusReversed || got.ReversedBy != a.ID {
			t.Errorf("the original is %s, reversed by %q", got.Status, got.ReversedBy)
		}
	},
	"what a run waits for": func(t *testing.T, c *contract) {
		// The run continues with the new revision. Its starter stays excluded;
		// rebasing excludes nobody.
		name := "repricing-" + strings.ToLower(c.sku())
		sku := c.sku()
		res := c.admin.call("PUT", "/workflows/"+name, "name: "+name+`
steps:
  - id: price
    uses: connector.shop.update
    action_type: price_change
    risk: med
    with: {target: {entity_type: item, entity_ref: "`+sku+
			`", version: "1"}, current_state: {price: "10.00"}, change: {price: "12.50"}}
`, "Content-Type", "application/yaml")
		if res.status != http.StatusCreated {
			t.Fatal(res)
		}
		starter := c.admin.create(t, "starter-"+strings.ToLower(sku), "person", "proposer,approver")
		if res = starter.post("/workflows/"+name+"/runs", object{}); res.status != http.StatusCreated {
			t.Fatal(res)
		}
		run := res.str("id")
		var page gatehouse.Page[*gatehouse.Action]
		until(t, "the run asks", func() bool {
			c.admin.get("/proposed-actions?status=pending&q="+sku).decode(t, &page)
			return len(page.Items) == 1
		})
		c.move(t, page.Items[0])
		a := c.rebased(t, c.ana.rebase(page.Items[0]))
		must(t, starter.decide(a, "approved"), 403, "self_approval")
		must(t, c.ana.decide(a, "approved"), 200, "decided")
		until(t, "the run has gone on", func() bool { return c.admin.get("/runs/"+run).str("status") == "succeeded" })
	},
	"two at once": func(t *testing.T, c *contract) {
		ref := "twice-" + c.sku()
		old := c.agent.propose(t, contact(ref, "update", "new"))
		c.target.change(ref, "other")
		answers := storm(10, func(i int) answer { return []*person{c.ana, c.ben, c.agent}[i%3].rebase(old) })
		made := 0
		for _, res := range answers {
			if res.status == 201 {
				made++
				continue
			}
			must(t, res, 409, "already_decided", "superseded_by")
		}
		if made != 1 {
			t.Errorf("%d rebases made a revision", made)
		}
	},
	"beside a decision": func(t *testing.T, c *contract) {
		c.race(t, func(a *gatehouse.Action) answer { return c.ben.decide(a, "rejected") }, gatehouse.StatusRejected)
	},
	"beside a cancellation": func(t *testing.T, c *contract) {
		c.race(t, func(a *gatehouse.Action) answer { return c.agent.post("/proposed-actions/"+a.ID+"/cancel", nil) },
			gatehouse.StatusCanceled)
	},
	"beside a revision": func(t *testing.T, c *contract) {
		c.race(t, func(a *gatehouse.Action) answer {
			return c.agent.post("/proposed-actions/"+a.ID+"/revise", contact(a.Target.EntityRef, "update", "newer"))
		}, gatehouse.StatusSuperseded)
	},
}

// race lets something else happen while a rebase reads the target: the rebase
// conflicts and stores nothing.
func (c *contract) race(t *testing.T, other func(*gatehouse.Action) answer, end gatehouse.Status) {
	t.Helper()
	ref := "race-" + c.sku()
	old := c.agent.propose(t, contact(ref, "update", "new"))
	c.target.change(ref, "other")
	release := c.target.holdReads(ref)
	defer release()
	late := make(chan answer, 1)
	go func() { late <- c.ana.rebase(old) }()
	until(t, "the rebase reads the target", func() bool { return c.target.waiting(ref) == 1 })
	if res := other(old); res.status >= 300 {
		t.Fatal(res)
	}
	release()
	must(t, <-late, 409, "already_decided", "current_status")
	if now := c.admin.action(t, old.ID); now.Status != end {
		t.Errorf("it is %s, want %s", now.Status, end)
	}
}

// said checks the log entries of a rebase.
func (c *contract) said(t *testing.T, a *gatehouse.Action, by, from, to string) {
	t.Helper()
	id := c.admin.get("/principals/" + by).str("id")
	for _, x := range []struct{ action, event string }{{a.ID, "hitl.proposed"}, {a.Supersedes, "hitl.superseded"}} {
		// The log numbers its entries a moment later.
		for end := time.Now().Add(30 * time.Second); !c.says(t, x.action, x.event, id, from,
			to); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("the log has no %s of %s that says rebased by %s from %s to %s", x.event, x.action, id, from,
					to)
				break
			}
		}
	}
}

// says reports whether the log has such an entry now.
func (c *contract) says(t *testing.T, action, event, by, from, to string) bool {
	t.Helper()
	var evidence gatehouse.Evidence
	c.admin.get("/proposed-actions/"+action+"/evidence").decode(t, &evidence)
	for _, entry := range evidence.Entries {
		var leaf struct {
			Type, Actor string
			Data        struct {
				Rebased map[string]string `json:"rebased"`
			}
		}
		if err := json.Unmarshal([]byte(entry.Body), &leaf); err != nil {
			t.Fatal(err)
		}
		if leaf.Type == event && leaf.Actor == by && leaf.Data.Rebased["from_version"] == from &&
			leaf.Data.Rebased["to_version"] == to {
			return true
		}
	}
	return false
}
