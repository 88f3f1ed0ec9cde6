package proof

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestConnectorsSurviveAKill kills the server after an approved version of the connectors was
// stored, but before the result was recorded: the next process runs the version, and the repeated
// push stores no second one.
func TestConnectorsSurviveAKill(t *testing.T) {
	t.Parallel()
	path, err := mortal()
	if err != nil {
		t.Fatal(err)
	}
	onEngines(t, func(t *testing.T, e engine) {
		w := newWorldOn(t, e, 1, "dispatch: {hold: 0s, retries: 3, backoff: [50ms], lease: 5s}")
		ana := w.admin.create(t, "ana", "person", "approver")
		proposed := w.admin.post("/connector-versions/propose", object{
			"source": "connectors: {web: {type: worker, operations: {print: {}}}}\n",
		})
		if proposed.status != 201 {
			t.Fatal(proposed)
		}
		var a gatehouse.Action
		proposed.decode(t, &a)

		victim := w.servers[0]
		for _, other := range w.servers[1:] {
			other.stop()
		}
		victim.kill()
		victim.binary = path
		env := victim.env
		victim.env = append(env[:len(env):len(env)], "GATEHOUSE_FAILPOINT=dispatch/after-call:1")
		err := victim.launch()
		victim.env = env
		if err != nil {
			t.Fatal(err)
		}
		_ = ana.decide(&a, "approved", object{"confirm": a.Approval.Confirm.Value}) // the server may die first
		select {
		case err := <-victim.exited:
			if err == nil {
				t.Error("the server was not killed")
			}
		case <-time.After(time.Minute):
			t.Fatal("the server does not reach the call")
		}
		victim.start()
		for _, other := range w.servers[1:] {
			other.start()
		}
		if done := w.admin.finished(t, a.ID); done.Status != gatehouse.StatusApplied {
			t.Fatalf("the connectors are %s", done.Status)
		}
		var list struct{ Items []gatehouse.ConnectorVersion }
		w.admin.get("/connector-versions").decode(t, &list)
		if len(list.Items) != 1 || list.Items[0].ActionID != a.ID {
			t.Errorf("%+v", list.Items)
		}
		res := w.agent.post("/proposed-actions", object{
			"action_type": "price_change", "connector": "web", "operation": "print",
			"target": object{"entity_type": "item", "entity_ref": "1"}, "proposed_change": object{"price": "1"},
		})
		if res.status != 201 {
			t.Errorf("a proposal for the new connector: %v", res)
		}
	})
}
