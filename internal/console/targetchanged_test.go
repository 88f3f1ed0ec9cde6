package console_test

import (
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestReportedChangeShows: the card says that the target has changed and who reported it; an action
// on another target shows nothing.
func TestReportedChangeShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	a := w.propose(bot, nil)
	ana.get("/actions/" + a.ID).want(http.StatusOK).lacks(testid("target-changed"))
	got, err := w.gate.TargetChanged(bot, gatehouse.TargetChange{
		Connector: a.Connector, EntityType: a.Target.EntityType, EntityRef: a.Target.EntityRef, Version: `8"><script>x</script>`,
	})
	if err != nil || got.Marked != 1 {
		t.Fatal(got, err)
	}
	ana.get("/actions/"+a.ID).want(http.StatusOK).has(testid("target-changed"), "The target has changed since the proposal", "bot", "8&#34;&gt;&lt;script&gt;").
		lacks("<script>x")
}
