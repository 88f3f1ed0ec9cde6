package proof

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

const mandateRules = `version: 1
mandates: {up_to: 3}
`

// mandate has the agent propose a plan and a person approve it. It returns the
// mandate's id once the plan's push has created the mandate.
func (w *world) mandate(t *testing.T, ana *person, plan object) string {
	t.Helper()
	proposed := w.agent.post("/mandates", plan)
	if proposed.status != 201 {
		t.Fatal(proposed)
	}
	var a gatehouse.Action
	proposed.decode(t, &a)
	must(t, ana.decide(&a, "approved", object{"confirm": a.Approval.Confirm.Value}), 200, "decided")
	if done := w.agent.finished(t, a.ID); done.Status != gatehouse.StatusApplied {
		t.Fatalf("the plan is %s", done.Status)
	}
	return "mnd_" + strings.TrimPrefix(a.ID, "act_")
}

// TestMandates makes fifty proposals at once under one mandate: only as many are approved as the
// limits of the step, all steps, the day and the money allow. When the mandate is revoked meanwhile,
// its count is still that of the approved proposals.
func TestMandates(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		w := newWorldOn(t, e, 300, "")
		if res := w.admin.post("/policies", object{"source": mandateRules}); res.status != 201 {
			t.Fatal(res)
		}
		ana := w.admin.create(t, "ana", "person", "approver")
		for kind, c := range map[string]struct {
			step, all, day int
			amount         string
			want           int
		}{
			"step": {11, 50, 50, "1000", 11}, "all": {50, 12, 50, "1000", 12}, "day": {50, 50, 9, "1000", 9},
			"money": {50, 50, 50, "91.00", 13}, "revoked": {50, 50, 50, "1000", 0},
		} {
			money := []object{{"amount": c.amount, "currency": "USD"}}
			id := w.mandate(t, ana, object{
				"goal": "<script>alert(1)</script>", "for": "24h", "in_all": object{"count": c.all, "amounts": money},
				"per_day": object{"count": c.day},
				"steps": []object{{
					"action_type": kind, "connector": "shop", "operation": "update", "entity_type": "item",
					"count": c.step, "amounts": money,
				}},
			})
			one := func() object {
				return price(w.sku(), "7.00", object{
					"action_type": kind, "magnitude": object{"amount": "7.00", "currency": "USD"},
				})
			}
			var approved atomic.Int64
			for _, res := range storm(50, func(i int) answer {
				if kind == "revoked" && i == 25 {
					if res := ana.post("/mandates/"+id+"/revoke", nil); res.status != 200 {
						t.Errorf("revoke: %s", res)
					}
				}
				return w.agent.post("/proposed-actions", one())
			}) {
				if res.status != 201 {
					t.Fatal(res)
				}
				if res.str("decided_via") == "mandate" {
					approved.Add(1)
				}
			}
			got := ana.get("/mandates/" + id)
			all, _ := got.body["in_all"].(map[string]any)
			n := int(approved.Load())
			if kind == "revoked" {
				c.want = n
				if res := w.agent.post("/proposed-actions", one()); res.str("decided_via") == "mandate" {
					t.Errorf("a revoked mandate approved %s", res)
				}
			}
			if n != c.want || fmt.Sprint(all["used"]) != strconv.Itoa(n) {
				t.Errorf("%s: %d approved, want %d: %s", kind, n, c.want, got)
			}
		}
		w.check(t, newJournal())
	})
}
