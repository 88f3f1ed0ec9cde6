package proof

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestEdit has reviewers edit and approve an agent's proposals, over HTTP, on both engines.
func TestEdit(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		c := &contract{world: newWorldOn(t, e, 100, `dispatch: {hold: 0s, retries: 1, backoff: [50ms], lease: 5s}`)}
		c.ana = c.admin.create(t, "ana", "person", "approver")
		c.ben = c.admin.create(t, "ben", "person", "approver")
		c.cleo = c.admin.create(t, "cleo", "person", "approver")
		c.op = c.admin.create(t, "olga", "person", "operator")
		t.Run("rows", func(t *testing.T) {
			for name, row := range editRows {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					row(t, c)
				})
			}
		})
		c.check(t, newJournal())
	})
}

// edits sends an edit of the action that the person saw, by default of the price.
func (p *person) edits(a *gatehouse.Action, more object, headers ...string) answer {
	body := merged(object{"digest": a.Digest, "note": "too dear", "patch": object{"price": "11.00"}}, more)
	return p.post("/proposed-actions/"+a.ID+"/edit", body, headers...)
}

// edited is the action that an edit created.
func (c *contract) edited(t *testing.T, res answer) *gatehouse.Action {
	t.Helper()
	if res.status != http.StatusCreated {
		t.Fatal(res)
	}
	return c.admin.action(t, res.str("id"))
}

// untouched checks that a refused edit left the action as it was.
func (c *contract) untouched(t *testing.T, a *gatehouse.Action) {
	t.Helper()
	now := c.admin.action(t, a.ID)
	if now.Status != gatehouse.StatusPending || now.Superseded != "" || now.Digest != a.Digest {
		t.Errorf("a refused edit left %s %s", now.Status, now.Superseded)
	}
}

var editRows = map[string]func(*testing.T, *contract){
	"a price, by its editor alone": func(t *testing.T, c *contract) {
		old := c.ask(t, object{
			"rationale": "<b>the supplier", "magnitude": object{"amount": "2.50"},
			"evaluations": []object{
				{"name": "fits", "kind": "deterministic", "result": "pass"},
				{"name": "odd", "kind": "deterministic", "result": "warn"},
			},
			"artifact_diff": object{"type": "text", "text": "+12.50"},
		})
		a := c.edited(t, c.ana.edits(old, nil))
		if a.Revision != 2 || a.Supersedes != old.ID || a.Digest == old.Digest || a.ProposedBy != "bot" ||
			a.ProposerID != old.ProposerID || a.EditedBy != "ana" || a.ProposedChange != `{"price":"11.00"}` ||
			a.CurrentState != old.CurrentState || a.Target.Version != "1" || a.Rationale != old.Rationale ||
			a.Status != gatehouse.StatusPending || len(a.Approval.Votes) != 0 {
			t.Errorf("the revision: %+v", a)
		}
		want := gatehouse.Edit{
			ByID: c.ana.id, Note: "too dear", Of: old.ID,
			Changes: []gatehouse.EditedField{{Path: "/price", Before: `"12.50"`, After: `"11.00"`}},
		}
		if gatehouse.MustJSON(a.Edit) != gatehouse.MustJSON(want) {
			t.Errorf("it says %s", gatehouse.MustJSON(a.Edit))
		}
		if len(a.Evaluations) != 1 || a.Evaluations[0].Name != "odd" || a.ArtifactDiff != nil {
			t.Errorf("kept of the old change: %+v %+v", a.Evaluations, a.ArtifactDiff)
		}
		if a.Magnitude == nil || a.Magnitude.Amount.Cmp("1.00") != 0 {
			t.Errorf("the claim that agreed with the payload is %+v", a.Magnitude)
		}
		// The agent, which waits for the old action, gets the new one and the reason.
		was := c.agent.action(t, old.ID)
		now := c.agent.action(t, was.Superseded)
		if was.Status != gatehouse.StatusSuperseded || now.ID != a.ID || now.Edit == nil ||
			now.Edit.Note != "too dear" {
			t.Errorf("the agent reads %s, and %+v", was.Status, now.Edit)
		}
		must(t, c.ben.decide(old, "approved"), 409, "already_decided", "superseded_by")
		must(t, c.ben.decide(a, "approved", object{"digest": old.Digest}), 409, "digest_mismatch")
		must(t, c.ana.decide(a, "approved"), 200, "decided")
		c.oneEffect(t, a)
		if i := c.shop.items(t)[old.Target.EntityRef]; i.price != "11.00" {
			t.Errorf("the item: %+v", i)
		}
		if end := c.admin.action(t, a.ID); gatehouse.MustJSON(end.Edit) != gatehouse.MustJSON(want) {
			t.Errorf("after its end it says %s", gatehouse.MustJSON(end.Edit))
		}
		c.logged(t, a, c.ana)
	},
	"edit and approve at once": func(t *testing.T, c *contract) {
		old := c.ask(t)
		a := c.edited(t, c.ana.edits(old, object{"approve": true}, "Idempotency-Key", "edit-"+old.ID))
		if a.DecidedBy != "ana" || len(a.Approval.Votes) != 1 || a.Approval.Votes[0].Digest != a.Digest ||
			a.Approval.Votes[0].Notes != "too dear" {
			t.Errorf("it is %s: %+v", a.Status, a.Approval)
		}
		again := c.ana.edits(old, object{"approve": true}, "Idempotency-Key", "edit-"+old.ID)
		if again.status != http.StatusOK || again.str("id") != a.ID {
			t.Errorf("sent again: %s", again)
		}
		c.oneEffect(t, a)
	},
	"the whole change": func(t *testing.T, c *contract) {
		old := c.ask(t)
		a := c.edited(t, c.ana.edits(old, object{"patch": nil, "proposed_change": object{"price": "10.50"}}))
		if a.ProposedChange != `{"price":"10.50"}` {
			t.Errorf("the change is %s", a.ProposedChange)
		}
	},
	"a quorum counts the editor as one": func(t *testing.T, c *contract) {
		old := c.ask(t, object{"action_type": "pair"})
		must(t, c.ben.decide(old, "approved"), 200, "vote_recorded")
		a := c.edited(t, c.ana.edits(old, object{"approve": true}))
		if a.Status != gatehouse.StatusPending || len(a.Approval.Votes) != 1 || a.Approval.Votes[0].Name != "ana" {
			t.Errorf("it is %s with %+v", a.Status, a.Approval.Votes)
		}
		must(t, c.ana.decide(a, "approved"), 200, "vote_recorded")
		must(t, c.ben.decide(a, "approved"), 200, "decided")
		c.oneEffect(t, a)
	},
	"above L3 somebody else approves": func(t *testing.T, c *contract) {
		old := c.ask(t, object{"risk_level": 4})
		c.refusedEdit(t, old, c.ana.edits(old, object{"approve": true, "confirm": "11.00"}), 403, "self_approval", "")
		a := c.edited(t, c.ana.edits(old, nil))
		confirm := object{"confirm": a.Approval.Confirm.Value}
		must(t, c.ana.decide(a, "approved", confirm), 403, "self_approval")
		// Nor may they approve the next revision, whoever makes it; they may edit again.
		b := c.edited(t, c.ben.edits(a, object{"patch": object{"price": "10.75"}}))
		must(t, c.ana.decide(b, "approved", confirm), 403, "self_approval")
		must(t, c.ben.decide(b, "approved", confirm), 403, "self_approval")
		d := c.edited(t, c.ana.edits(b, object{"patch": object{"price": "10.80"}}))
		if d.Edit.Of != old.ID || string(d.Edit.Changes[0].Before) != `"12.50"` || len(d.Editors) != 2 {
			t.Errorf("it is compared with %+v, edited by %v", d.Edit, d.Editors)
		}
		must(t, c.cleo.decide(d, "approved", object{"confirm": d.Approval.Confirm.Value}), 200, "decided")
		c.oneEffect(t, d)
	},
	"at L5 as one of two": func(t *testing.T, c *contract) {
		old := c.agent.propose(t, contact("five-"+c.sku(), "update", "new", object{"risk_level": 5}))
		a := c.edited(t, c.ana.edits(old, object{"patch": object{"value": "newer"}}))
		confirm := object{"confirm": a.Approval.Confirm.Value}
		must(t, c.ana.decide(a, "approved", confirm), 200, "vote_recorded")
		must(t, c.ben.decide(a, "approved", confirm), 200, "decided")
		c.oneEffect(t, a)
	},
	"tried only": func(t *testing.T, c *contract) {
		old := c.ask(t)
		res := c.ana.edits(old, object{"dry_run": true, "note": nil})
		if res.status != http.StatusOK || res.str("id") != "" || res.str("edited_by") != "ana" ||
			res.str("status") != "pending" {
			t.Errorf("tried: %s", res)
		}
		res = c.ana.edits(old, object{"dry_run": true, "approve": true})
		if res.status != http.StatusOK || res.str("status") != "approved" {
			t.Errorf("tried with an approval: %s", res)
		}
		c.untouched(t, old)
	},
	"not by everybody": func(t *testing.T, c *contract) {
		old := c.ask(t, object{"on_behalf_of": "cleo"})
		c.refusedEdit(t, old, c.agent.edits(old, nil), 403, "role_required", "")
		c.refusedEdit(t, old, c.op.edits(old, nil), 403, "role_required", "")
		c.refusedEdit(t, old, c.cleo.edits(old, nil), 403, "self_approval", "")
		blank := *c.ana
		blank.edit = ""
		c.refusedEdit(t, old, blank.edits(old, nil), 403, "edit_token_required", "")
		c.admin.create(t, "nadia", "person", "approver")
		named := c.ask(t, object{"action_type": "named"})
		c.refusedEdit(t, named, c.ana.edits(named, nil), 403, "role_required", "")
	},
	"refused": func(t *testing.T, c *contract) {
		old, other := c.ask(t), c.ask(t)
		c.refusedEdit(t, old, c.ana.edits(other, object{"digest": old.Digest}), 409, "digest_mismatch", "")
		c.refusedEdit(t, old, c.ana.edits(old, object{"patch": object{"price": "12.50"}}), 409, "cannot_edit", "unchanged")
		c.refusedEdit(t, old, c.ana.edits(old, object{"note": " "}), 422, "invalid", "")
		// The connector's schema and the columns also apply to a reviewer.
		c.refusedEdit(t, old, c.ana.edits(old, object{"patch": object{"price": nil}}), 422, "invalid", "")
		bot := c.admin.create(t, "gone-"+c.sku(), "agent", "proposer")
		orphan := bot.propose(t, price(c.sku(), "12.50"))
		c.admin.call("PATCH", "/principals/"+bot.id, object{"disabled": true})
		c.refusedEdit(t, orphan, c.ana.edits(orphan, nil), 409, "cannot_edit", "proposer_disabled")
	},
	"a target that moved": func(t *testing.T, c *contract) {
		old := c.moved(t)
		c.refusedEdit(t, old, c.ana.edits(old, object{"approve": true}), 409, "target_changed", "")
		a := c.edited(t, c.ana.edits(old, nil))
		must(t, c.ana.decide(a, "approved"), 409, "target_changed", "expected", "actual")
		// A rebase keeps the editor and the edit.
		b := c.rebased(t, c.ben.rebase(a))
		if b.EditedBy != "ana" || b.Edit == nil || b.Edit.Of != old.ID || b.RebasedBy != "ben" ||
			b.Target.Version != "2" {
			t.Errorf("the rebase: %+v %+v", b, b.Edit)
		}
		must(t, c.ana.decide(b, "approved"), 200, "decided")
		if end := c.admin.finished(t, b.ID); end.Status != gatehouse.StatusApplied {
			t.Errorf("ended %s: %+v", end.Status, end.Failure)
		}
	},
	"a target that somebody marked": func(t *testing.T, c *contract) {
		old := c.agent.propose(t, contact("marked-"+c.sku(), "keyed", "new"))
		mark := object{"connector": "crm", "entity_type": "contact", "entity_ref": old.Target.EntityRef, "version": "9"}
		if res := c.op.post("/targets/changed", mark); res.status >= 300 {
			t.Fatal(res)
		}
		a := c.edited(t, c.ana.edits(old, object{"patch": object{"value": "newer"}}))
		if a.Approval.TargetChanged == nil {
			t.Error("the mark is gone")
		}
		must(t, c.ana.decide(a, "approved"), 409, "target_changed")
	},
	"by the agent again": func(t *testing.T, c *contract) {
		// The proposer's own revision is the proposer's change again, but the editor contributed to it.
		old := c.ask(t)
		a := c.edited(t, c.ana.edits(old, nil))
		res := c.agent.post("/proposed-actions/"+a.ID+"/revise", price(old.Target.EntityRef, "11.20"))
		b := c.edited(t, res)
		if b.EditedBy != "" || b.Edit != nil || len(b.Editors) == 0 {
			t.Errorf("the revision: %q %+v %v", b.EditedBy, b.Edit, b.Editors)
		}
	},
	"many at once": func(t *testing.T, c *contract) {
		// Editors, approvers and the agent: one wins, and nobody approves what they did
		// not see.
		for range 3 {
			old := c.ask(t)
			answers := storm(12, func(i int) answer {
				switch i % 4 {
				case 0:
					return c.ana.edits(old, object{"approve": i%8 == 0})
				case 1:
					return c.ben.edits(old, nil)
				case 2:
					return c.cleo.decide(old, "approved")
				}
				return c.agent.post("/proposed-actions/"+old.ID+"/revise", price(old.Target.EntityRef, "11.90"))
			})
			won := 0
			for _, res := range answers {
				switch {
				case res.status == http.StatusCreated, res.status == http.StatusOK && res.str("code") == "decided":
					won++
				case res.status == http.StatusOK:
					must(t, res, 200, "already_approved")
				default:
					must(t, res, 409, "already_decided")
				}
			}
			if won != 1 {
				t.Errorf("%d won", won)
			}
			last := c.admin.action(t, old.ID)
			for last.Superseded != "" {
				last = c.admin.action(t, last.Superseded)
			}
			for _, vote := range last.Approval.Votes {
				if vote.Digest != last.Digest {
					t.Errorf("%s approved %s, and it is %s", vote.Name, vote.Digest, last.Digest)
				}
			}
		}
	},
}

// refusedEdit checks that an edit was refused, and stored nothing.
func (c *contract) refusedEdit(t *testing.T, a *gatehouse.Action, res answer, status int, code, reason string) {
	t.Helper()
	must(t, res, status, code)
	if got := res.str("reason"); got != reason {
		t.Errorf("reason %q, want %q: %s", got, reason, res)
	}
	c.untouched(t, a)
}

// logged waits until the log has the edit on both actions.
func (c *contract) logged(t *testing.T, a *gatehouse.Action, by *person) {
	t.Helper()
	for _, x := range []struct{ action, event string }{{a.ID, "hitl.proposed"}, {a.Supersedes, "hitl.superseded"}} {
		until(t, "the log tells of the edit", func() bool {
			var evidence gatehouse.Evidence
			c.admin.get("/proposed-actions/"+x.action+"/evidence").decode(t, &evidence)
			for _, entry := range evidence.Entries {
				var leaf struct {
					Type, Actor string
					Data        struct {
						Edited struct {
							Of, Note string
							Fields   int
						}
					}
				}
				if err := json.Unmarshal([]byte(entry.Body), &leaf); err != nil {
					t.Fatal(err)
				}
				said := leaf.Data.Edited
				if leaf.Type == x.event && leaf.Actor == by.id && said.Of == a.Edit.Of && said.Note == a.Edit.Note &&
					said.Fields == len(a.Edit.Changes) {
					return true
				}
			}
			return false
		})
	}
}

// TestEditInRun has a reviewer edit the action that a run waits for: the run continues with the
// edited change, and the editor cannot decide actions of later steps that use it.
func TestEditInRun(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		c := &contract{world: newWorldOn(t, e, 20, quick)}
		c.ana, c.ben = c.admin.create(t, "ana", "person", "approver"), c.admin.create(t, "ben", "person", "approver")
		one, two := c.sku(), c.sku()
		step := func(id, sku, change string) string {
			return "  - id: " + id + `
    uses: connector.shop.update
    action_type: price_change
    risk: med
    with: {target: {entity_type: item, entity_ref: "` + sku +
				`", version: "1"}, current_state: {price: "10.00"}, change: ` + change + "}\n"
		}
		res := c.admin.call("PUT", "/workflows/pricing", "name: pricing\nsteps:\n"+
			step("first", one, `{price: "12.50"}`)+step("second", two, `{price: "${{ steps.first.output.change.price }}"}`),
			"Content-Type", "application/yaml")
		if res.status != http.StatusCreated {
			t.Fatal(res)
		}
		if res = c.agent.post("/workflows/pricing/runs", object{}); res.status != http.StatusCreated {
			t.Fatal(res)
		}
		run := res.str("id")
		asked := func(sku string) (a *gatehouse.Action) {
			until(t, "the run asks about "+sku, func() bool {
				var page gatehouse.Page[*gatehouse.Action]
				c.admin.get("/proposed-actions?status=pending&q="+sku).decode(t, &page)
				if len(page.Items) == 1 {
					a = page.Items[0]
				}
				return a != nil
			})
			return a
		}
		c.edited(t, c.ana.edits(asked(one), object{"approve": true}))
		next := asked(two)
		if !strings.Contains(string(next.ProposedChange), "11.00") {
			t.Errorf("the next step continues with %s", next.ProposedChange)
		}
		must(t, c.ana.decide(next, "approved"), 403, "self_approval")
		must(t, c.ben.decide(next, "approved"), 200, "decided")
		until(t, "the run is over", func() bool { return c.admin.get("/runs/"+run).str("status") == "succeeded" })
	})
}
