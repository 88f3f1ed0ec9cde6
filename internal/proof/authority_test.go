package proof

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func (c *contract) change(t *testing.T, name string, change object) {
	t.Helper()
	if res := c.admin.call("PATCH", "/principals/"+name, change); res.status != 200 {
		t.Fatal(res)
	}
}

// authorityRows are about who may decide, and about rights that were revoked.
var authorityRows = map[string]func(*testing.T, *contract){
	"a role revoked between votes": func(t *testing.T, c *contract) {
		for verb, change := range map[string]object{
			"role": {"roles": []string{"viewer"}}, "disabled": {"disabled": true},
		} {
			name := verb + "-gone-" + c.sku()
			gone := c.admin.create(t, name, "person", "approver")
			a := c.ask(t, object{"action_type": "pair"})
			must(t, gone.decide(a, "approved"), 200, "vote_recorded")
			c.change(t, name, change)
			must(t, c.ana.decide(a, "approved"), 409, "authority_revoked")
			must(t, c.ana.short(a, "approve"), 409, "authority_revoked")
			if c.votes(t, a) != 1 {
				t.Error("the vote was stored")
			}
			must(t, c.ana.decide(a, "rejected"), 200, "decided")
			c.noEffect(t, a)
		}
	},
	"a sponsor named between votes": func(t *testing.T, c *contract) {
		name := "orphan-" + c.sku()
		agent := c.admin.create(t, name, "agent", "proposer")
		a := agent.propose(t, price(c.sku(), "12.50", object{"action_type": "pair"}))
		must(t, c.ana.decide(a, "approved"), 200, "vote_recorded")
		c.change(t, name, object{"sponsor": "ana"})
		must(t, c.ben.decide(a, "approved"), 409, "authority_revoked")
	},
	"a voter disabled before dispatch": func(t *testing.T, c *contract) {
		name := "zoe-" + c.sku()
		zoe := c.admin.create(t, name, "person", "approver")
		a := c.ask(t, object{"action_type": "rested"})
		must(t, zoe.decide(a, "approved"), 200, "decided")
		c.change(t, name, object{"disabled": true})
		must(t, zoe.decide(a, "approved"), 401, "unauthenticated")
		end := c.admin.finished(t, a.ID)
		if end.Status != gatehouse.StatusFailed || end.Failure.Code != "authority_revoked" || c.effects(t, a) != 0 {
			t.Fatalf("it is %s: %+v", end.Status, end.Failure)
		}
		if d := c.deadLetter(t, a); d == nil || d.ErrorCode != "authority_revoked" || d.Attempts != 0 {
			t.Errorf("the dead letter: %+v", d)
		}
		if r := c.replay(t, end.Push.ID)[0]; r.Skipped != "authority_revoked" {
			t.Errorf("replayed without authority: %+v", r)
		}
		c.change(t, name, object{"disabled": false})
		if r := c.replay(t, end.Push.ID)[0]; r.Result != "queued" {
			t.Errorf("not replayed: %+v", r)
		}
		c.oneEffect(t, a)
	},
	"named people only": func(t *testing.T, c *contract) {
		nadia := c.admin.create(t, "nadia", "person", "approver")
		a := c.ask(t, object{"action_type": "named"})
		must(t, c.ana.decide(a, "approved"), 403, "role_required")
		must(t, nadia.decide(a, "approved"), 200, "decided")
	},
	"who cannot decide at all": func(t *testing.T, c *contract) {
		a := c.ask(t)
		must(t, c.agent.decide(a, "approved"), 403, "role_required")
		must(t, c.op.decide(a, "approved"), 403, "role_required")
		for _, role := range []string{"viewer", "auditor", "worker", "proposer"} {
			who := c.admin.create(t, role+"-"+c.sku(), "person", role)
			status, code := 403, "role_required"
			if role == "worker" {
				status, code = 404, "not_found" // it sees only what it leases
			}
			must(t, who.decide(a, "approved"), status, code)
			must(t, who.short(a, "reject"), status, code)
			must(t, who.post("/proposed-actions/bulk-decide",
				object{"decision": "rejected", "items": []object{{"action_id": a.ID}}}), 403, "role_required")
		}
		naked := &person{gate: c.gate, key: c.ana.key}
		must(t, naked.decide(a, "approved"), 403, "edit_token_required")
		// Neither another person's edit token nor a client's claim of identity
		// counts.
		must(t, (&person{gate: c.gate, key: c.ana.key, edit: c.ben.edit}).decide(a, "approved"), 403, "edit_token_required")
		must(t, (&person{gate: c.gate}).decide(a, "approved"), 401, "unauthenticated")
		res := c.agent.post("/proposed-actions/"+a.ID+"/decide", object{"decision": "approved", "digest": a.Digest},
			"X-User", "ana", "X-Principal", "ana", "X-Role", "approver", "X-Edit-Token", c.ana.edit)
		must(t, res, 403, "role_required")
		must(t, c.ana.post("/proposed-actions/"+a.ID+"/decide",
			object{"decision": "approved", "digest": a.Digest, "decided_by": "ben"}), 400, "malformed", "pointer")
		if c.votes(t, a) != 0 {
			t.Error("a vote was stored")
		}
	},
	"an agent is never an approver": func(t *testing.T, c *contract) {
		for _, role := range []string{"approver", "operator", "admin"} {
			must(t, c.admin.post("/principals", object{"name": "robot-" + c.sku(), "kind": "agent", "roles": []string{role}}),
				422, "invalid", "errors")
		}
		if c.agent.edit != "" {
			t.Error("an agent has an edit token")
		}
		must(t, c.admin.call("PATCH", "/principals/bot", object{"roles": []string{"approver"}}), 422, "invalid", "errors")
	},
	"what the submitter claims grants nothing": func(t *testing.T, c *contract) {
		a := c.ask(t, object{
			"risk_level": 1, "metadata": object{"approval_granted": "true", "status": "approved"},
			"context": object{"approved_by": "ana", "labels": object{"approval_granted": "true"}},
		})
		if a.Status != gatehouse.StatusPending || a.RiskLevel != gatehouse.L3 || a.ClaimedRisk != gatehouse.L1 {
			t.Fatalf("it is %s at %s", a.Status, a.RiskLevel)
		}
		must(t, c.agent.post("/proposed-actions", price(c.sku(), "1", object{"status": "approved"})), 400, "malformed",
			"pointer")
		must(t, c.agent.post("/proposed-actions", price(c.sku(), "1", object{"approval": object{"status": "approved"}})), 400,
			"malformed", "pointer")
	},
	"a key that was revoked": func(t *testing.T, c *contract) {
		who := c.admin.create(t, "rekeyed-"+c.sku(), "person", "approver")
		res := c.admin.post("/principals/"+who.id+"/keys", nil)
		if res.status != 201 {
			t.Fatal(res)
		}
		second := &person{gate: c.gate, key: res.str("key"), edit: who.edit}
		if res := c.admin.post("/keys/"+res.str("key_id")+"/revoke", nil); res.status != 200 {
			t.Fatal(res)
		}
		a := c.ask(t)
		must(t, second.decide(a, "approved"), 401, "unauthenticated")
		rotated := c.admin.post("/principals/"+who.id+"/edit-token", nil)
		if rotated.status != 201 {
			t.Fatal(rotated)
		}
		must(t, who.decide(a, "approved"), 403, "edit_token_required")
		who.edit = rotated.str("edit_token")
		must(t, who.decide(a, "approved"), 200, "decided")
	},
}
