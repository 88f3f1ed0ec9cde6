package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func (w *world) drifts(state gatehouse.JSON) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drift, w.state = true, state
}

// TestRebase: the notice about a changed target offers a rebase, and the new revision's page shows
// only what changed at the target.
func TestRebase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana, eve := w.signIn("ana", gatehouse.RoleApprover), w.signIn("eve", gatehouse.RoleViewer)
	a := w.propose(bot, func(p *gatehouse.Proposal) {
		p.Target.Version, p.Evaluations = "", []gatehouse.Evaluation{{Name: "margin", Kind: "deterministic",
			Result: "pass"}}
	})
	path := "/actions/" + a.ID
	ana.post(path+"/rebase", "once", "early").want(http.StatusConflict).has(`data-code="cannot_rebase"`,
		"nothing to rebase")

	w.drifts(`{"currency":"USD","price":"11.11"}`)
	ana.get(path).want(200).lacks(testid("rebase")) // no answer has found the change yet
	refused := ana.post(path+"/decide", decision(a, gatehouse.Approve)...).want(http.StatusConflict).
		has(`data-code="target_changed"`, testid("rebase"), `data-key="b"`, `action="`+path+`/rebase"`)
	eve.post(path+"/rebase", "once", "x").want(http.StatusForbidden)

	once := onceField.FindStringSubmatch(refused.body)[1]
	p := ana.post(path+"/rebase", "once", once, "return", "/inbox?type=price_change").want(200)
	next := w.action(a.ID).Superseded
	if p.url.Path != "/inbox" || p.url.Query().Get("open") != next || next == "" {
		t.Errorf("the rebase led to %s, the revision is %s", p.url, next)
	}
	if again := ana.post(path+"/rebase", "once", once).want(200); again.url.Path != "/actions/"+next {
		t.Errorf("a second press led to %s", again.url)
	}
	ana.post(path+"/rebase", "once", "late").want(http.StatusConflict).has(`data-code="already_decided"`)

	page := ana.get("/actions/"+next).want(200).has("rebased on the present state of its target",
		"The evaluations below describe the earlier state of the target")
	section := between(page.body, testid("state-moved"), "</section>")
	for _, want := range []string{"ana", "price", "10.00", "11.11"} {
		if !strings.Contains(section, want) {
			t.Errorf("the section of changes lacks %q: %s", want, section)
		}
	}
	// A field that did not change at the target, and the change itself.
	for _, other := range []string{"currency", "12.50"} {
		if strings.Contains(section, other) {
			t.Errorf("the section of changes shows %q: %s", other, section)
		}
	}
	// The person who asked for the rebase may decide it.
	w.mu.Lock()
	w.drift = false
	w.mu.Unlock()
	ana.post("/actions/"+next+"/decide", decision(w.action(next), gatehouse.Approve)...).want(200)
	if got := w.action(next); got.Status != gatehouse.StatusApproved || got.RebasedBy != "ana" {
		t.Errorf("the action is %s, rebased by %q", got.Status, got.RebasedBy)
	}
}

// TestRebaseIsOfferedWhereItCanBe: no rebase is offered if the connector cannot read its target.
func TestRebaseIsOfferedWhereItCanBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	a := w.propose(w.agent("bot"), func(p *gatehouse.Proposal) { p.Connector = "once" })
	w.drifts("")
	ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve)...).want(http.StatusConflict).
		has(`data-code="target_changed"`).lacks(testid("rebase"))
	ana.post("/actions/"+a.ID+"/rebase", "once", "x").want(http.StatusConflict).has(`data-code="cannot_rebase"`)
}

// TestRebasedStateStaysText: text from a target is escaped like any other untrusted text.
func TestRebasedStateStaysText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	shown := 0
	for i, text := range hostileTexts(t) {
		if strings.ContainsRune(text, 0) || len(text) > 2000 {
			continue
		}
		a := w.propose(bot, nil)
		w.drifts(gatehouse.ObjectJSON(
			gatehouse.Member{Name: "price", Value: gatehouse.StringJSON(text)},
			gatehouse.Member{Name: "k" + text, Value: `"v"`}))
		next, err := w.gate.Rebase(bot, a.ID)
		if err != nil {
			continue // a refused text is shown to nobody
		}
		shown++
		page := ana.get("/actions/" + next.ID).want(200)
		section := between(page.body, testid("state-moved"), "</section>")
		if section == "" {
			t.Fatalf("text %d: nothing has moved", i)
		}
		for _, raw := range []string{"<script", "<svg", "<img", "<style", "<meta", "<a href=\"javascript", "\u202e",
			"\u200b", "\ufeff"} {
			if strings.Contains(section, raw) {
				t.Errorf("text %d: %q is in the page: %s", i, raw, section)
			}
		}
	}
	if shown < 10 {
		t.Errorf("only %d texts were shown", shown)
	}
}
