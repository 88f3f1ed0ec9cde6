package proof

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// contract is a world with the people of the contract's tables.
type contract struct {
	*world
	ana, ben, cleo *person // approvers
	op             *person // operator
}

// TestContract proves each row of the contract's tables over HTTP, on one real
// server.
func TestContract(t *testing.T) {
	t.Parallel()
	c := &contract{world: newWorld(t, 400, `dispatch: {hold: 0s, retries: 1, backoff: [50ms], lease: 5s}`)}
	c.ana = c.admin.create(t, "ana", "person", "approver")
	c.ben = c.admin.create(t, "ben", "person", "approver")
	c.cleo = c.admin.create(t, "cleo", "person", "approver")
	c.op = c.admin.create(t, "olga", "person", "operator")
	t.Run("rows", c.rows)
	c.check(t, newJournal())
}

func (c *contract) rows(t *testing.T) {
	for _, table := range []struct {
		name string
		rows map[string]func(*testing.T, *contract)
	}{
		{"decide", decideRows}, {"short", shortRows}, {"cancel", cancelRows}, {"revise", reviseRows},
		{"reverse", reverseRows},
		{"dispatch", dispatchRows}, {"authority", authorityRows}, {"expiry", expiryRows}, {"bulk", bulkRows},
	} {
		for name, row := range table.rows {
			t.Run(table.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				row(t, c)
			})
		}
	}
}

// ask proposes a price that needs one approver.
func (c *contract) ask(t *testing.T, more ...object) *gatehouse.Action {
	t.Helper()
	return c.agent.propose(t, price(c.sku(), "12.50", more...))
}

// approved returns an action approved by ana, after its effect.
func (c *contract) approved(t *testing.T, more ...object) *gatehouse.Action {
	t.Helper()
	a := c.ask(t, more...)
	must(t, c.ana.decide(a, "approved"), 200, "decided")
	c.oneEffect(t, a)
	return c.admin.action(t, a.ID)
}

// ends creates an action in each state in which a decision can be late.
func (c *contract) ends(t *testing.T) map[gatehouse.Status]*gatehouse.Action {
	t.Helper()
	rejected, canceled, old := c.ask(t), c.ask(t), c.ask(t)
	must(t, c.ana.decide(rejected, "rejected"), 200, "decided")
	must(t, c.agent.post("/proposed-actions/"+canceled.ID+"/cancel", nil), 200, "canceled")
	if res := c.agent.post("/proposed-actions/"+old.ID+"/revise",
		price(old.Target.EntityRef, "13.00")); res.status != 201 {
		t.Fatal(res)
	}
	allowed := c.agent.propose(t, contact(c.sku(), "update", "new", object{"action_type": "note"}))
	c.oneEffect(t, allowed)
	return map[gatehouse.Status]*gatehouse.Action{
		gatehouse.StatusRejected: rejected, gatehouse.StatusCanceled: canceled, gatehouse.StatusSuperseded: old,
		gatehouse.StatusDenied:  c.ask(t, object{"action_type": "forbidden"}),
		gatehouse.StatusApplied: allowed, // allowed by the policy
	}
}

// votes counts the stored votes of an action.
func (c *contract) votes(t *testing.T, a *gatehouse.Action) int {
	t.Helper()
	return len(c.admin.action(t, a.ID).Approval.Votes)
}

var decideRows = map[string]func(*testing.T, *contract){
	"this call decided": func(t *testing.T, c *contract) {
		a := c.ask(t)
		res := must(t, c.ana.decide(a, "approved", object{"notes": "seen"}), 200, "decided", "action", "result")
		now, _ := res.body["action"].(object)
		if now["status"] != "approved" || now["decided_by"] != "ana" || now["decided_via"] != "api" || now["push"] == nil {
			t.Errorf("the answer's action: %v", now)
		}
		c.oneEffect(t, a)
		b := c.ask(t)
		res = must(t, c.ana.decide(b, "rejected", object{"digest": ""}), 200, "decided", "action")
		if now, _ = res.body["action"].(object); now["status"] != "rejected" || now["push"] != nil {
			t.Errorf("the answer's action: %v", now)
		}
	},
	"vote counted": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "pair"})
		res := must(t, c.ana.decide(a, "approved"), 200, "vote_recorded", "votes", "required")
		if fmt.Sprintf("%v of %v", res.body["votes"], res.body["required"]) != "1 of 2" || res.body["replayed"] != nil {
			t.Errorf("answered %s", res)
		}
		res = must(t, c.ana.decide(a, "approved"), 200, "vote_recorded", "votes", "required", "replayed")
		if res.body["replayed"] != true || c.votes(t, a) != 1 {
			t.Errorf("a repeated vote: %s", res)
		}
		must(t, c.ben.decide(a, "approved"), 200, "decided")
		c.oneEffect(t, a)
	},
	"the decision that stands": func(t *testing.T, c *contract) {
		a := c.ask(t)
		must(t, c.ana.decide(a, "approved"), 200, "decided")
		must(t, c.ana.decide(a, "approved"), 200, "already_approved", "action")
		c.oneEffect(t, a)
		must(t, c.ana.decide(a, "approved"), 200, "already_approved", "action")
		b := c.ask(t)
		must(t, c.ana.decide(b, "rejected"), 200, "decided")
		must(t, c.ana.decide(b, "rejected"), 200, "already_rejected", "action")
	},
	"someone else, or the other way": func(t *testing.T, c *contract) {
		a := c.approved(t)
		for _, res := range []answer{c.ben.decide(a, "approved"), c.ben.decide(a, "rejected"), c.ana.decide(a, "rejected")} {
			must(t, res, 409, "already_decided", "current_status", "decided_by", "decided_at")
			if res.str("decided_by") != "ana" || res.str("current_status") != "applied" {
				t.Errorf("told %s", res)
			}
		}
		for status, a := range c.ends(t) {
			res := must(t, c.ben.decide(a, "approved"), 409, "already_decided", "current_status")
			if res.str("current_status") != string(status) ||
				(res.str("superseded_by") != "") != (status == gatehouse.StatusSuperseded) {
				t.Errorf("%s: told %s", status, res)
			}
		}
	},
	"the digest": func(t *testing.T, c *contract) {
		a, other := c.ask(t), c.ask(t)
		must(t, c.ana.decide(a, "approved", object{"digest": other.Digest}), 409, "digest_mismatch")
		must(t, c.ana.decide(a, "rejected", object{"digest": other.Digest}), 409, "digest_mismatch")
		must(t, c.ana.short(a, "approve", object{"digest": other.Digest}), 409, "digest_mismatch")
		must(t, c.ana.decide(a, "approved", object{"digest": ""}), 422, "invalid", "errors")
		must(t, c.ana.post("/approvals/"+a.ID+"/approve", object{}), 422, "invalid", "errors")
		must(t, c.ana.post("/proposed-actions/bulk-decide",
			object{"decision": "approved", "items": []object{{"action_id": a.ID}}}), 422, "invalid", "errors")
		if c.votes(t, a) != 0 {
			t.Error("a vote was stored")
		}
		must(t, c.ana.post("/approvals/"+a.ID+"/reject", nil), 200, "rejected")
	},
	"target changed": func(t *testing.T, c *contract) {
		a := c.ask(t)
		c.shop.exec(t, `UPDATE items SET price = '11.00', version = 2 WHERE sku = ?`, a.Target.EntityRef)
		must(t, c.ana.decide(a, "approved"), 409, "target_changed", "expected", "actual")
		must(t, c.ana.short(a, "approve"), 409, "target_changed", "expected", "actual")
		if c.votes(t, a) != 0 {
			t.Error("a vote was stored")
		}
		// Acknowledged, it can be decided. But dispatch checks again, and the
		// conditional write protects another's change.
		must(t, c.ana.decide(a, "approved", object{"acknowledge_stale": true}), 200, "decided")
		end := c.admin.finished(t, a.ID)
		if end.Status != gatehouse.StatusFailed || end.Failure.Code != "target_changed" {
			t.Errorf("dispatched onto another version: %s %+v", end.Status, end.Failure)
		}
		i := c.shop.items(t)[a.Target.EntityRef]
		if i.price != "11.00" || i.version != 2 || len(i.keys) != 0 {
			t.Errorf("the item was written: %+v", i)
		}
		c.shop.exec(t, `UPDATE items SET version = 1 WHERE sku = ?`, a.Target.EntityRef) // for the ledger's sums
	},
	"target changed at an http target": func(t *testing.T, c *contract) {
		ref := "drift-" + c.sku()
		a := c.agent.propose(t, contact(ref, "update", "new"))
		c.target.change(ref, "other")
		res := must(t, c.ana.decide(a, "approved"), 409, "target_changed", "expected", "actual")
		if res.body["expected"] != "1" || res.body["actual"] != "2" {
			t.Errorf("told %s", res)
		}
	},
	"confirmation": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "create_item"})
		if a.RiskLevel != gatehouse.L4 || a.Approval.Confirm == nil {
			t.Fatalf("not an L4: %+v", a.Approval)
		}
		for _, wrong := range []object{{}, {"confirm": "12.5"}, {"confirm": " 12.50"}} {
			res := must(t, c.ana.decide(a, "approved", wrong), 403, "confirmation_required", "prompt")
			if res.str("prompt") != a.Approval.Confirm.Prompt {
				t.Errorf("prompted %s", res)
			}
			must(t, c.ana.short(a, "approve", wrong), 403, "confirmation_required", "prompt")
		}
		if c.votes(t, a) != 0 {
			t.Error("a vote was stored")
		}
		must(t, c.ana.decide(a, "approved", object{"confirm": a.Approval.Confirm.Value}), 200, "decided")
		c.oneEffect(t, a)
	},
	"L5 needs two persons": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "bulk_delete"})
		confirm := object{"confirm": a.Approval.Confirm.Value}
		must(t, c.ana.decide(a, "approved"), 403, "confirmation_required", "prompt")
		must(t, c.ana.decide(a, "approved", confirm), 200, "vote_recorded")
		must(t, c.ana.decide(a, "approved", confirm), 200, "vote_recorded", "replayed")
		if got := c.admin.action(t, a.ID); got.Status != gatehouse.StatusPending || got.Push != nil {
			t.Fatalf("one person was enough: %s", got.Status)
		}
		must(t, c.ben.short(a, "approve"), 403, "confirmation_required", "prompt")
		must(t, c.ben.short(a, "approve", confirm), 200, "approved")
		c.oneEffect(t, a)
	},
	"self-approval": func(t *testing.T, c *contract) {
		both := c.admin.create(t, "self-"+c.sku(), "person", "proposer,approver")
		own := both.propose(t, price(c.sku(), "12.50"))
		sponsored := c.admin.create(t, "sponsored-"+c.sku(), "agent", "proposer", object{"sponsor": "ana"}).propose(t,
			price(c.sku(), "12.50"))
		behalf := c.ask(t, object{"on_behalf_of": "ana"})
		byID := c.ask(t, object{"on_behalf_of": c.ana.id})
		for _, x := range []struct {
			who *person
			a   *gatehouse.Action
		}{{both, own}, {c.ana, sponsored}, {c.ana, behalf}, {c.ana, byID}} {
			must(t, x.who.decide(x.a, "approved"), 403, "self_approval")
			must(t, x.who.decide(x.a, "rejected"), 403, "self_approval")
			must(t, x.who.short(x.a, "approve"), 403, "self_approval")
			must(t, x.who.short(x.a, "reject"), 403, "self_approval")
			if res := bulk(x.who, x.a, "approved"); res.word() != "self_approval" {
				t.Errorf("bulk: %s", res)
			}
			if c.votes(t, x.a) != 0 {
				t.Error("a vote was stored")
			}
			must(t, c.ben.decide(x.a, "approved"), 200, "decided")
			// Even after another person's decision, an excluded person may not
			// decide.
			must(t, x.who.decide(x.a, "approved"), 403, "self_approval")
		}
	},
	"a second identity": func(t *testing.T, c *contract) {
		name := "twin-" + c.sku()
		one := c.admin.create(t, name, "person", "approver")
		two := c.admin.create(t, name+"-b", "person", "approver", object{"person": name})
		a := c.ask(t, object{"action_type": "pair"})
		must(t, one.decide(a, "approved"), 200, "vote_recorded")
		must(t, two.decide(a, "approved"), 409, "already_voted")
		must(t, two.short(a, "approve"), 409, "already_voted")
		if c.votes(t, a) != 1 || c.admin.action(t, a.ID).Status != gatehouse.StatusPending {
			t.Fatal("one person counted twice")
		}
		// The other identity of a proposer cannot decide either.
		both := c.admin.create(t, name+"-p", "person", "proposer,approver")
		alias := c.admin.create(t, name+"-q", "person", "approver", object{"person": both.id})
		own := both.propose(t, price(c.sku(), "12.50"))
		must(t, alias.decide(own, "approved"), 403, "self_approval")
	},
	"a changed mind": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "trio"})
		must(t, c.ana.decide(a, "approved"), 200, "vote_recorded")
		must(t, c.ben.decide(a, "approved"), 200, "vote_recorded")
		must(t, c.ana.decide(a, "rejected"), 200, "decided")
		must(t, c.ana.decide(a, "approved"), 409, "already_decided", "current_status")
		must(t, c.ben.decide(a, "approved"), 409, "already_decided", "current_status")
		must(t, c.ana.decide(a, "rejected"), 200, "already_rejected")
		c.noEffect(t, a)
	},
	"a ceiling": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "weighed", "proposed_change": object{"price": "250.01"}})
		res := must(t, c.ana.decide(a, "approved"), 409, "ceiling_exceeded", "ceiling", "limit", "used")
		if res.str("ceiling") != "by-amount" || res.str("limit") != "250.00" || c.votes(t, a) != 0 {
			t.Errorf("told %s; %d votes", res, c.votes(t, a))
		}
		must(t, c.ana.short(a, "approve"), 409, "ceiling_exceeded", "ceiling", "limit", "used")
		if res := bulk(c.ana, a, "approved"); res.word() != "ceiling_exceeded" {
			t.Errorf("bulk: %s", res)
		}
		must(t, c.ana.decide(a, "rejected"), 200, "decided")
	},
	"unknown": func(t *testing.T, c *contract) {
		ghost := &gatehouse.Action{ID: "act_0000", Digest: c.ask(t).Digest}
		must(t, c.ana.decide(ghost, "approved"), 404, "not_found")
		must(t, c.ana.short(ghost, "approve"), 404, "not_found")
		// 404 comes before every 403, and before errors of the body.
		must(t, c.agent.decide(ghost, "approved"), 404, "not_found")
		must(t, (&person{gate: c.gate, key: c.ana.key}).decide(ghost, "approved"), 404, "not_found")
		must(t, c.ana.post("/proposed-actions/act_0000/decide", `{`), 404, "not_found")
	},
	"numbers stay what they are": func(t *testing.T, c *contract) {
		const exact = `{"a":9007199254740993123,"b":0.10000000000000000001,"c":-1E+400}`
		ref := "exact-" + c.sku()
		raw := fmt.Sprintf(`{"action_type":"contact_change","connector":"crm","operation":"update",`+
			`"target":{"entity_type":"contact","entity_ref":%q},"proposed_change":{"value":"new","n":9007199254740993123},`+
			`"metadata":%s}`, ref, exact)
		res := c.agent.post("/proposed-actions", raw)
		if res.status != 201 {
			t.Fatal(res)
		}
		a := c.admin.action(t, res.str("id"))
		if string(a.Metadata) != exact {
			t.Errorf("metadata came back as %s", a.Metadata)
		}
		must(t, c.ana.decide(a, "approved"), 200, "decided")
		c.oneEffect(t, a)
		sent := ""
		for _, call := range c.target.log() {
			if call.key == sentKey(a.Tenant, a.IdempotencyKey) {
				sent = call.body
			}
		}
		if sent != string(a.ProposedChange) || !strings.Contains(sent, "9007199254740993123") {
			t.Errorf("sent %s", sent)
		}
	},
	"one key, another body": func(t *testing.T, c *contract) {
		a := c.ask(t)
		path, key := "/proposed-actions/"+a.ID+"/decide", "key-"+a.ID
		yes := object{"decision": "approved", "digest": a.Digest}
		first := must(t, c.ana.post(path, yes, "Idempotency-Key", key), 200, "decided")
		again := must(t, c.ana.post(path, yes, "Idempotency-Key", key), 200, "decided")
		if again.header.Get("Idempotency-Replayed") != "true" || string(again.raw) != string(first.raw) {
			t.Errorf("replayed %s", again)
		}
		must(t, c.ana.post(path, object{"decision": "rejected"}, "Idempotency-Key", key), 422, "idempotency_key_reused")
		// A key belongs to its principal.
		must(t, c.ben.post(path, yes, "Idempotency-Key", key), 409, "already_decided")
	},
}

var shortRows = map[string]func(*testing.T, *contract){
	"decided now": func(t *testing.T, c *contract) {
		for verb, status := range map[string]string{"approve": "approved", "reject": "rejected"} {
			a := c.ask(t)
			res := must(t, c.ana.short(a, verb), 200, status)
			if len(res.body) != 2 || res.str("action_id") != a.ID {
				t.Errorf("the body is %s", res)
			}
		}
	},
	"by the approval's id": func(t *testing.T, c *contract) {
		a := c.ask(t)
		must(t, c.ana.post("/approvals/"+a.Approval.ID+"/approve", object{"digest": a.Digest}), 200, "approved")
		must(t, c.ben.post("/approvals/"+a.Approval.ID+"/approve", object{"digest": a.Digest}), 200, "already_approved")
		c.oneEffect(t, a)
	},
	"stands, whoever took it, whatever followed": func(t *testing.T, c *contract) {
		a := c.approved(t)
		for _, who := range []*person{c.ana, c.ben} {
			res := must(t, who.short(a, "approve"), 200, "already_approved", "approved_by", "approved_at", "action_id")
			if res.str("approved_by") != "ana" {
				t.Errorf("told %s", res)
			}
		}
		b := c.ask(t)
		must(t, c.ana.decide(b, "rejected"), 200, "decided")
		for _, who := range []*person{c.ana, c.ben} {
			res := must(t, who.short(b, "reject"), 200, "already_rejected", "rejected_by", "rejected_at", "action_id")
			if res.str("rejected_by") != "ana" {
				t.Errorf("told %s", res)
			}
		}
	},
	"stands while it fails": func(t *testing.T, c *contract) {
		ref := "broken-" + c.sku()
		c.target.script(ref, 422)
		a := c.agent.propose(t, contact(ref, "update", "new"))
		must(t, c.ana.short(a, "approve"), 200, "approved")
		if end := c.admin.finished(t, a.ID); end.Status != gatehouse.StatusFailed {
			t.Fatalf("it is %s", end.Status)
		}
		must(t, c.ben.short(a, "approve"), 200, "already_approved", "approved_by")
		must(t, c.ben.short(a, "reject"), 409, "not_awaiting_approval", "current_status")
	},
	"the other way": func(t *testing.T, c *contract) {
		res := must(t, c.ben.short(c.approved(t), "reject"), 409, "not_awaiting_approval", "current_status")
		if res.str("current_status") != "applied" {
			t.Errorf("told %s", res)
		}
		for status, a := range c.ends(t) {
			verbs := []string{"approve", "reject"}
			if status == gatehouse.StatusRejected {
				verbs = verbs[:1]
			}
			for _, verb := range verbs {
				res := must(t, c.ben.short(a, verb), 409, "not_awaiting_approval", "current_status")
				if res.str("current_status") != string(status) {
					t.Errorf("%s of %s: told %s", verb, status, res)
				}
			}
		}
	},
	"a vote": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "pair"})
		must(t, c.ana.short(a, "approve"), 200, "vote_recorded", "votes", "required")
		must(t, c.ana.short(a, "approve"), 200, "vote_recorded", "replayed")
		must(t, c.ben.short(a, "approve"), 200, "approved")
	},
}
