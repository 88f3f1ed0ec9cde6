package proof

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func (p *person) cancel(a *gatehouse.Action) answer {
	return p.post("/proposed-actions/"+a.ID+"/cancel", nil)
}

var cancelRows = map[string]func(*testing.T, *contract){
	"by the proposer while pending": func(t *testing.T, c *contract) {
		a := c.ask(t)
		must(t, c.agent.cancel(a), 200, "canceled", "action")
		must(t, c.agent.cancel(a), 200, "already_canceled", "action")
		must(t, c.ana.cancel(a), 200, "already_canceled", "action")
		c.noEffect(t, a)
	},
	"by another": func(t *testing.T, c *contract) {
		a := c.ask(t)
		must(t, c.ana.cancel(a), 403, "role_required")
		other := c.admin.create(t, "other-"+c.sku(), "agent", "proposer")
		must(t, other.cancel(a), 404, "not_found") // an agent reads only its own actions
		must(t, c.op.cancel(a), 403, "role_required")
		if got := c.admin.action(t, a.ID); got.Status != gatehouse.StatusPending {
			t.Errorf("it is %s", got.Status)
		}
	},
	"by an approver inside the hold": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "held"})
		must(t, c.ana.decide(a, "approved"), 200, "decided")
		must(t, c.agent.cancel(a), 409, "too_late", "current_status")
		must(t, (&person{gate: c.gate, key: c.ben.key}).cancel(a), 403, "edit_token_required")
		must(t, c.ben.cancel(a), 200, "canceled", "action")
		must(t, c.ben.cancel(a), 200, "already_canceled", "action")
		got := c.admin.action(t, a.ID)
		if got.Status != gatehouse.StatusCanceled || got.Push.Status != gatehouse.PushCanceled || c.effects(t, a) != 0 {
			t.Errorf("it is %s, its push %s", got.Status, got.Push.Status)
		}
		must(t, c.ana.short(a, "approve"), 409, "not_awaiting_approval", "current_status")
	},
	"too late": func(t *testing.T, c *contract) {
		applied, rejected := c.approved(t), c.ask(t)
		must(t, c.ana.decide(rejected, "rejected"), 200, "decided")
		for status, a := range map[string]*gatehouse.Action{"applied": applied, "rejected": rejected} {
			for _, who := range []*person{c.agent, c.ana} {
				if res := must(t, who.cancel(a), 409, "too_late", "current_status"); res.str("current_status") != status {
					t.Errorf("told %s", res)
				}
			}
		}
	},
	"an hour's hold is no effect": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "held"})
		must(t, c.ana.decide(a, "approved"), 200, "decided")
		drained := c.op.post("/pushes/drain", object{"dry_run": false})
		var out gatehouse.DrainAnswer
		drained.decode(t, &out)
		for _, i := range out.Items {
			if i.ActionID == a.ID {
				t.Errorf("it was drained inside its hold: %+v", i)
			}
		}
		if got := c.admin.action(t, a.ID); got.Status != gatehouse.StatusApproved || c.effects(t, a) != 0 {
			t.Errorf("it is %s", got.Status)
		}
	},
}

var reviseRows = map[string]func(*testing.T, *contract){
	"a new action": func(t *testing.T, c *contract) {
		old := c.ask(t, object{"action_type": "pair"})
		must(t, c.ana.decide(old, "approved"), 200, "vote_recorded")
		res := c.agent.post("/proposed-actions/"+old.ID+"/revise",
			price(old.Target.EntityRef, "13.00", object{"action_type": "pair"}))
		if res.status != 201 {
			t.Fatal(res)
		}
		a := c.admin.action(t, res.str("id"))
		if a.Supersedes != old.ID || a.Revision != 2 || a.Digest == old.Digest || len(a.Approval.Votes) != 0 ||
			a.Status != gatehouse.StatusPending {
			t.Errorf("the revision: %+v", a)
		}
		was := c.admin.action(t, old.ID)
		if was.Status != gatehouse.StatusSuperseded || was.Superseded != a.ID ||
			was.Approval.Status != gatehouse.ApprovalCanceled {
			t.Errorf("the old action: %s %s", was.Status, was.Superseded)
		}
		late := must(t, c.ben.decide(old, "approved"), 409, "already_decided", "current_status", "superseded_by")
		if late.str("superseded_by") != a.ID {
			t.Errorf("told %s", late)
		}
		must(t, c.ben.decide(a, "approved", object{"digest": old.Digest}), 409, "digest_mismatch")
		must(t, c.ben.decide(a, "approved"), 200, "vote_recorded")
		must(t, c.ana.decide(a, "approved"), 200, "decided")
		c.oneEffect(t, a)
		if c.effects(t, old) != 0 {
			t.Error("the old revision had an effect")
		}
	},
	"not any more": func(t *testing.T, c *contract) {
		done := c.approved(t)
		must(t, c.agent.post("/proposed-actions/"+done.ID+"/revise", price(c.sku(), "13.00")), 409, "already_decided",
			"current_status")
		old := c.ask(t)
		if res := c.agent.post("/proposed-actions/"+old.ID+"/revise",
			price(old.Target.EntityRef, "13.00")); res.status != 201 {
			t.Fatal(res)
		}
		must(t, c.agent.post("/proposed-actions/"+old.ID+"/revise", price(old.Target.EntityRef, "14.00")), 409,
			"already_decided", "superseded_by")
	},
	"not by another program": func(t *testing.T, c *contract) {
		old := c.ask(t)
		other := c.admin.create(t, "reviser-"+c.sku(), "agent", "proposer")
		must(t, other.post("/proposed-actions/"+old.ID+"/revise", price(old.Target.EntityRef, "13.00")), 404, "not_found")
	},
	"nobody slips in": func(t *testing.T, c *contract) {
		// Whoever could not decide the old action cannot decide the new one.
		old := c.ask(t, object{"on_behalf_of": "ana"})
		author := c.admin.create(t, "author-"+c.sku(), "person", "proposer,approver")
		res := author.post("/proposed-actions/"+old.ID+"/revise", price(old.Target.EntityRef, "13.00"))
		if res.status != 201 {
			t.Fatal(res)
		}
		a := c.admin.action(t, res.str("id"))
		must(t, c.ana.decide(a, "approved"), 403, "self_approval")
		must(t, author.decide(a, "approved"), 403, "self_approval")
		must(t, c.ben.decide(a, "approved"), 200, "decided")
	},
	"two at once": func(t *testing.T, c *contract) {
		old := c.ask(t)
		answers := storm(20, func(i int) answer {
			return c.agent.post("/proposed-actions/"+old.ID+"/revise", price(old.Target.EntityRef, "13.00"))
		})
		made := 0
		for _, res := range answers {
			if res.status == 201 {
				made++
				continue
			}
			must(t, res, 409, "already_decided", "superseded_by")
		}
		if made != 1 {
			t.Errorf("%d revisions of one action", made)
		}
	},
}

var reverseRows = map[string]func(*testing.T, *contract){
	"undone through the gate": func(t *testing.T, c *contract) {
		a := c.approved(t)
		res := c.agent.post("/proposed-actions/"+a.ID+"/reverse", object{"rationale": "wrong item"})
		if res.status != 201 {
			t.Fatal(res)
		}
		back := c.admin.action(t, res.str("id"))
		if back.Reverses != a.ID || back.Status != gatehouse.StatusPending {
			t.Fatalf("the reversal: %+v", back)
		}
		must(t, c.agent.post("/proposed-actions/"+a.ID+"/reverse", nil), 409, "not_reversible", "reversal")
		must(t, c.ben.decide(back, "approved"), 200, "decided")
		if end := c.admin.finished(t, back.ID); end.Status != gatehouse.StatusApplied {
			t.Fatalf("the reversal is %s: %+v", end.Status, end.Failure)
		}
		if was := c.admin.action(t, a.ID); was.Status != gatehouse.StatusReversed || was.ReversedBy != back.ID {
			t.Errorf("the original is %s by %s", was.Status, was.ReversedBy)
		}
		if i := c.shop.items(t)[a.Target.EntityRef]; i.price != "10.00" || i.version != 3 || len(i.keys) != 2 {
			t.Errorf("the item: %+v", i)
		}
		must(t, c.agent.post("/proposed-actions/"+a.ID+"/reverse", nil), 409, "not_reversible")
	},
	"revised": func(t *testing.T, c *contract) {
		// The revision remains the only open reversal, with the same target.
		a := c.approved(t)
		back := c.admin.action(t, c.agent.post("/proposed-actions/"+a.ID+"/reverse", nil).str("id"))
		other := price(c.sku(), "11.00", nil)
		must(t, c.agent.post("/proposed-actions/"+back.ID+"/revise", other), 422, "invalid")
		res := c.agent.post("/proposed-actions/"+back.ID+"/revise", price(a.Target.EntityRef, "11.00", object{
			"target": back.Target, "current_state": object{"price": "12.50"},
		}))
		if res.status != 201 {
			t.Fatal(res)
		}
		revised := c.admin.action(t, res.str("id"))
		if revised.Reverses != a.ID {
			t.Fatalf("the revision reverses %q", revised.Reverses)
		}
		must(t, c.agent.post("/proposed-actions/"+a.ID+"/reverse", nil), 409, "not_reversible", "reversal")
		must(t, c.ben.decide(revised, "approved"), 200, "decided")
		if end := c.admin.finished(t, revised.ID); end.Status != gatehouse.StatusApplied {
			t.Fatalf("the revised reversal is %s: %+v", end.Status, end.Failure)
		}
		if was := c.admin.action(t, a.ID); was.Status != gatehouse.StatusReversed || was.ReversedBy != revised.ID {
			t.Errorf("the original is %s by %s", was.Status, was.ReversedBy)
		}
	},
	"not reversible": func(t *testing.T, c *contract) {
		must(t, c.agent.post("/proposed-actions/"+c.ask(t).ID+"/reverse", nil), 409, "not_reversible")
		once := c.agent.propose(t, contact("once-"+c.sku(), "once", "new"))
		must(t, c.ana.decide(once, "approved"), 200, "decided")
		c.oneEffect(t, once)
		must(t, c.agent.post("/proposed-actions/"+once.ID+"/reverse", nil), 409, "not_reversible")
	},
	"two at once": func(t *testing.T, c *contract) {
		a := c.approved(t)
		made := 0
		for _, res := range storm(20, func(int) answer { return c.agent.post("/proposed-actions/"+a.ID+"/reverse", nil) }) {
			if res.status == 201 {
				made++
				continue
			}
			must(t, res, 409, "not_reversible", "reversal")
		}
		if made != 1 {
			t.Errorf("%d open reversals of one action", made)
		}
	},
	"drifted meanwhile": func(t *testing.T, c *contract) {
		a := c.approved(t)
		c.shop.exec(t, `UPDATE items SET price = '99.00', version = version + 1 WHERE sku = ?`, a.Target.EntityRef)
		res := c.agent.post("/proposed-actions/"+a.ID+"/reverse", nil)
		if res.status != 201 {
			t.Fatal(res)
		}
		back := c.admin.action(t, res.str("id"))
		must(t, c.ben.decide(back, "approved"), 409, "target_changed", "expected", "actual")
		// for the ledger's sums
		c.shop.exec(t, `UPDATE items SET price = '12.50', version = 2 WHERE sku = ?`, a.Target.EntityRef)
	},
}
