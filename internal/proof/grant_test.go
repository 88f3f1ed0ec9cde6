package proof

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
)

const grantRules = `version: 1
grants: {up_to: 3, max_window: 4h}
ceilings: [{name: sixteen, per: agent, window: 1h, count: 16, when: 'action.type == "bounded"'}]
`

// TestGrants makes fifty proposals at once under one grant: only as many are approved as its count,
// its amount and the ceiling allow.
func TestGrants(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		w := newWorldOn(t, e, 200, "")
		if res := w.admin.post("/policies", object{"source": grantRules}); res.status != 201 {
			t.Fatal(res)
		}
		ana := w.admin.create(t, "ana", "person", "approver")
		for kind, c := range map[string]struct {
			count  int
			amount string
			want   int
		}{"counted": {11, "1000.00", 11}, "weighed": {50, "91.00", 13}, "bounded": {50, "1000.00", 16}} {
			grants := ana.post("/grants", object{
				"agent": "bot", "connector": "shop", "operation": "update",
				"when": fmt.Sprintf("action.type == %q", kind), "count": c.count, "for": "1h",
				"amounts": []object{{"amount": c.amount, "currency": "USD"}},
			})
			if grants.status != 201 {
				t.Fatal(grants)
			}
			var approved atomic.Int64
			for _, res := range storm(50, func(int) answer {
				return w.agent.post("/proposed-actions", price(w.sku(), "7.00", object{
					"action_type": kind, "magnitude": object{"amount": "7.00", "currency": "USD"},
				}))
			}) {
				if res.status != 201 {
					t.Fatal(res)
				}
				if res.str("decided_via") == "grant" {
					approved.Add(1)
				}
			}
			got := ana.get("/grants/" + grants.str("id"))
			if n := int(approved.Load()); n != c.want || fmt.Sprint(got.body["used"]) != strconv.Itoa(c.want) {
				t.Errorf("%s: %d approved, want %d: %s", kind, n, c.want, got)
			}
		}
		w.check(t, newJournal())
	})
}
