package proof

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var expiryRows = map[string]func(*testing.T, *contract){
	// Each action is read as soon as it has expired: mostly before the sweeper has
	// recorded the expiry.
	"before the sweeper": func(t *testing.T, c *contract) {
		db := openStore(t, c.gate)
		defer db.Close()
		unswept := 0
		for try := range 40 { // as many as a slow machine needs
			a := c.ask(t, object{"expires_in": "1s"})
			time.Sleep(time.Until(a.Approval.ExpiresAt) + time.Millisecond)
			var res answer
			switch try % 5 {
			case 0:
				res = c.ana.decide(a, "approved")
			case 1:
				res = c.ana.decide(a, "rejected")
			case 2:
				res = c.ana.short(a, "approve")
			case 3:
				res = c.ana.short(a, "reject")
			default:
				res = c.agent.post("/proposed-actions/"+a.ID+"/revise", price(a.Target.EntityRef, "13.00"))
			}
			must(t, res, 410, "expired")
			if count(t, db, `SELECT count(*) FROM action WHERE id = ? AND status = 'pending'`, a.ID) == 1 {
				unswept++
			}
			must(t, c.agent.post("/proposed-actions/"+a.ID+"/cancel", nil), 409, "too_late", "current_status")
			if res := bulk(c.ana, a, "approved"); res.word() != "expired" {
				t.Errorf("bulk: %s", res)
			}
			if got := c.admin.action(t, a.ID); got.Status != gatehouse.StatusExpired {
				t.Errorf("the read shows %s", got.Status)
			}
			var page gatehouse.Page[*gatehouse.Action]
			c.admin.get("/proposed-actions?status=pending&q="+a.ID).decode(t, &page)
			if len(page.Items) != 0 {
				t.Error("the list shows it as pending")
			}
			c.admin.get("/proposed-actions?status=expired&q="+a.ID).decode(t, &page)
			if len(page.Items) != 1 {
				t.Error("the list does not show it as expired")
			}
			if unswept >= 5 {
				break
			}
		}
		if unswept < 5 {
			t.Errorf("the sweeper was faster in all but %d cases", unswept)
		}
	},
	"a wait ends with it": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"expires_in": "1s"})
		if got := c.admin.finished(t, a.ID); got.Status != gatehouse.StatusExpired {
			t.Errorf("the wait ended at %s", got.Status)
		}
		must(t, c.ana.decide(a, "approved"), 410, "expired")
	},
}

var bulkRows = map[string]func(*testing.T, *contract){
	"each item by itself": func(t *testing.T, c *contract) {
		plain, lost, high, own := c.ask(t), c.approved(t), c.ask(t, object{"action_type": "create_item"}),
			c.ask(t, object{"on_behalf_of": "ben"})
		pair, revised := c.ask(t, object{"action_type": "pair"}), c.ask(t)
		drifted := c.ask(t)
		c.shop.exec(t, `UPDATE items SET price = '11.00' WHERE sku = ?`, drifted.Target.EntityRef)
		mine := c.ask(t)
		must(t, c.ben.decide(mine, "approved"), 200, "decided")
		items := []struct {
			a    *gatehouse.Action
			d    gatehouse.Digest
			want string
		}{
			{plain, plain.Digest, "decided"}, {lost, lost.Digest, "already_decided"},
			{high, high.Digest, "individual_decision_required"},
			{own, own.Digest, "self_approval"}, {pair, pair.Digest, "vote_recorded"}, {revised, plain.Digest, "digest_mismatch"},
			{drifted, drifted.Digest, "target_changed"}, {mine, mine.Digest, "already_approved"},
			{&gatehouse.Action{ID: "act_0"}, plain.Digest, "not_found"},
		}
		var body []object
		for _, i := range items {
			body = append(body, object{"action_id": i.a.ID, "digest": i.d})
		}
		res := c.ben.post("/proposed-actions/bulk-decide", object{"decision": "approved", "items": body})
		var out gatehouse.BulkAnswer
		res.decode(t, &out)
		for n, i := range items {
			r := out.Results[n]
			if r.ActionID != i.a.ID || r.Result+r.Skipped != i.want {
				t.Errorf("item %d: %+v, expected %s", n, r, i.want)
			}
		}
		if out.Decided != 1 || out.Voted != 1 || out.Replayed != 1 || out.Skipped != 6 {
			t.Errorf("the counts are %+v", out)
		}
		c.oneEffect(t, plain)
		if got := c.admin.action(t, plain.ID); got.DecidedVia != gatehouse.ViaBulk {
			t.Errorf("decided via %s", got.DecidedVia)
		}
	},
	"thirty a minute": func(t *testing.T, c *contract) {
		fast := c.admin.create(t, "fast-"+c.sku(), "person", "approver")
		body := object{"decision": "rejected", "items": []object{{"action_id": "act_0"}}}
		for range 30 {
			if res := fast.post("/proposed-actions/bulk-decide", body); res.status != http.StatusOK {
				t.Fatal(res)
			}
		}
		must(t, fast.post("/proposed-actions/bulk-decide", body), 429, "rate_limited")
	},
	"five hundred": func(t *testing.T, c *contract) {
		var items []object
		for i := range 501 {
			items = append(items, object{"action_id": fmt.Sprintf("act_%d", i)})
		}
		bulky := c.admin.create(t, "bulky-"+c.sku(), "person", "approver")
		must(t, bulky.post("/proposed-actions/bulk-decide", object{"decision": "rejected", "items": items}), 422, "invalid",
			"errors")
		if res := bulky.post("/proposed-actions/bulk-decide",
			object{"decision": "rejected", "items": items[:500]}); res.status != 200 {
			t.Fatal(res)
		}
	},
}
