package proof

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestUndo takes decisions back within their hold, over HTTP, on both engines.
func TestUndo(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		c := &contract{world: newWorldOn(t, e, 100, `dispatch: {hold: 0s, retries: 1, backoff: [50ms], lease: 5s}`)}
		c.ana = c.admin.create(t, "ana", "person", "approver")
		c.ben = c.admin.create(t, "ben", "person", "approver")
		t.Run("rows", func(t *testing.T) {
			for name, row := range undoRows {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					row(t, c)
				})
			}
		})

		// When the servers die within the hold, the rejection takes effect after they start again.
		a := c.ask(t, object{"action_type": "rested"})
		must(t, c.ana.decide(a, "rejected", held), 200, "decided")
		for _, s := range c.servers {
			s.kill()
		}
		time.Sleep(time.Second)
		c.start()
		if end := c.admin.finished(t, a.ID); end.Status != gatehouse.StatusRejected || end.DecidedBy != "ana" {
			t.Errorf("after a kill it is %s by %s", end.Status, end.DecidedBy)
		}
		c.check(t, newJournal())
	})
}

var held = object{"hold": true, "notes": "no"}

func (p *person) undo(a *gatehouse.Action, headers ...string) answer {
	return p.post("/proposed-actions/"+a.ID+"/undo", nil, headers...)
}

// undone is the revision that an undo made.
func (c *contract) undone(t *testing.T, old *gatehouse.Action) *gatehouse.Action {
	t.Helper()
	was := c.admin.action(t, old.ID)
	if was.Status != gatehouse.StatusSuperseded || was.Superseded == "" {
		t.Fatalf("after an undo it is %s", was.Status)
	}
	return c.admin.action(t, was.Superseded)
}

var undoRows = map[string]func(*testing.T, *contract){
	"an approval": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "held"})
		must(t, c.ana.decide(a, "approved"), 200, "decided")
		must(t, (&person{gate: c.gate, key: c.ben.key}).undo(a), 403, "edit_token_required")
		must(t, c.agent.undo(a), 403, "role_required")
		must(t, c.ben.undo(a), 200, "undone", "action")
		must(t, c.ana.undo(a), 200, "already_undone", "action")
		next := c.undone(t, a)
		if next.Status != gatehouse.StatusPending || next.UndoneBy != "ben" || next.ProposedBy != a.ProposedBy {
			t.Errorf("the revision: %+v", next)
		}
		must(t, c.ana.short(a, "approve"), 409, "not_awaiting_approval", "current_status")
		must(t, c.ana.decide(next, "rejected"), 200, "decided")
		c.noEffect(t, a)
	},
	"no undo before a quorum": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "pair"})
		must(t, c.ana.decide(a, "approved"), 200, "vote_recorded")
		must(t, c.ana.undo(a), 409, "too_late", "current_status")
		must(t, c.ben.decide(a, "rejected", held), 200, "decided") // without a hold it takes effect at once
		must(t, c.ben.undo(a), 409, "too_late", "current_status")
	},
	"a rejection": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "held"})
		must(t, c.ana.decide(a, "rejected", held), 200, "decided")
		must(t, c.ana.decide(a, "rejected", held), 200, "already_rejected", "action")
		must(t, c.ben.short(a, "reject"), 200, "already_rejected")
		res := must(t, c.ben.decide(a, "approved"), 409, "already_decided", "current_status", "decided_by")
		if res.str("current_status") != "rejected" || res.str("decided_by") != "ana" {
			t.Errorf("told %s", res)
		}
		waits := c.agent.get("/proposed-actions/" + a.ID + "?wait=1s&until=decided")
		if waits.str("status") != "pending" {
			t.Errorf("the agent reads %s", waits.str("status"))
		}
		must(t, c.ben.undo(a, "Idempotency-Key", "u-"+a.ID), 200, "undone", "action")
		must(t, c.ben.undo(a, "Idempotency-Key", "u-"+a.ID), 200, "undone", "action")
		next := c.undone(t, a)
		must(t, c.ben.decide(next, "rejected"), 200, "decided")
		c.noEffect(t, next)
	},
	"a rejection takes effect": func(t *testing.T, c *contract) {
		a := c.ask(t, object{"action_type": "rested"})
		must(t, c.ana.decide(a, "rejected", held), 200, "decided")
		if end := c.admin.finished(t, a.ID); end.Status != gatehouse.StatusRejected || end.DecidedVia != gatehouse.ViaAPI {
			t.Errorf("it is %s via %s", end.Status, end.DecidedVia)
		}
		must(t, c.ana.undo(a), 409, "too_late", "current_status")
	},
	"at the end of the hold": func(t *testing.T, c *contract) {
		for i := range 12 {
			kind, more := "approved", object{}
			if i%2 == 1 {
				kind, more = "rejected", held
			}
			a := c.ask(t, object{"action_type": "rested"})
			must(t, c.ana.decide(a, kind, more), 200, "decided")
			time.Sleep(time.Second - time.Duration(6-i)*4*time.Millisecond)
			won := 0
			for _, res := range storm(4, func(int) answer { return c.ben.undo(a) }) {
				if res.status == 200 {
					won++
				} else {
					must(t, res, 409, "too_late", "current_status")
				}
			}
			if won > 0 {
				must(t, c.ana.decide(c.undone(t, a), "rejected"), 200, "decided")
				c.noEffect(t, a)
			} else if kind == "approved" {
				c.oneEffect(t, a)
			} else if end := c.admin.finished(t, a.ID); end.Status != gatehouse.StatusRejected {
				t.Errorf("it is %s", end.Status)
			}
		}
	},
}
