package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestLineEndIsShown: a change of nothing but the last line's end does not look like two equal lines.
func TestLineEndIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	a := w.propose(bot, func(p *gatehouse.Proposal) {
		p.ActionType = "field_update"
		p.CurrentState, p.ProposedChange = `{"note":"one\ntwo"}`, `{"note":"one\ntwo\n"}`
	})
	page := ana.get("/actions/" + a.ID).want(http.StatusOK)
	removed := between(page.body, `class="line line-removed"`, "</div>")
	added := between(page.body, `class="line line-added"`, "</div>")
	if !strings.Contains(removed, "no line end</mark>") || strings.Contains(added, "no line end</mark>") {
		t.Errorf("removed: %s\nadded: %s", removed, added)
	}
}
