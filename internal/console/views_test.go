package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func TestSavedViewsKeepTheFilterOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana, ben := w.signIn("ana", gatehouse.RoleApprover), w.signIn("ben", gatehouse.RoleApprover)

	ana.get("/inbox").want(http.StatusOK).lacks(testid("saved-views"), testid("save-view"))
	ana.get("/inbox?tab=team&risk=3").want(http.StatusOK).has(testid("save-view"))
	query := "tab=team&type=price_change&risk=3&by=bot&status=applied&q=SKU&open=" + a.ID + "&done=" + a.ID +
		"&snap=1700000000000000&cursor=abc&evil=1"
	p := ana.post("/inbox/views", "name", "  Prices <b>  ", "query", query).want(http.StatusOK)
	if got, want := p.url.RequestURI(), "/inbox?by=bot&q=SKU&risk=3&tab=team&type=price_change"; got != want {
		t.Errorf("saving leads to %s, want %s", got, want)
	}
	p.has("Prices &lt;b&gt;", `aria-current="true"`, testid("delete-views")).lacks(testid("save-view"))
	_, list, err := w.gate.Inbox(w.as(ana.creds), gatehouse.ActionFilter{})
	if err != nil || len(list) != 1 || list[0].Query != "by=bot&q=SKU&risk=3&tab=team&type=price_change" ||
		list[0].Name != "Prices <b>" {
		t.Fatalf("stored: %+v %v", list, err)
	}
	ana.get("/inbox").want(http.StatusOK).has(
		`href="/inbox?by=bot&amp;q=SKU&amp;risk=3&amp;tab=team&amp;type=price_change"`)
	ben.get("/inbox").want(http.StatusOK).lacks(testid("saved-views"))

	ana.post("/inbox/views", "name", "Prices <b>", "query", "tab=decided&status=applied").want(http.StatusOK)
	ana.get("/inbox").has("status=applied").lacks("by=bot")
	ana.get("/inbox?tab=decided&status=applied&decided=people").has(testid("save-view"))
	ana.get("/inbox?since=2026-11-27").want(http.StatusOK).lacks(testid("save-view")) // a view keeps no time
	p = ana.post("/inbox/views", "name", "Prices <b>", "query", "tab=decided&decided=people").want(http.StatusOK).
		has(`aria-current="true"`)
	if got, want := p.url.RequestURI(), "/inbox?decided=people&tab=decided"; got != want {
		t.Errorf("saving leads to %s, want %s", got, want)
	}
	ana.post("/inbox/views", "name", " ", "query", "risk=3").want(http.StatusUnprocessableEntity).
		has("Name: must have 1 to 64 characters")
	ana.post("/inbox/views", "name", strings.Repeat("x", gatehouse.MaxViewName+1), "query",
		"risk=3").want(http.StatusUnprocessableEntity)
	ana.post("/inbox/views", "name", "broken", "query", "%zz;;").want(http.StatusOK)

	ben.post("/inbox/views/delete", "name", "Prices <b>").want(http.StatusOK)
	ana.get("/inbox").has("Prices &lt;b&gt;")
	p = ana.post("/inbox/views/delete", "name", "Prices <b>", "query",
		"tab=team&open="+a.ID).want(http.StatusOK).lacks("Prices &lt;b&gt;")
	if p.url.RequestURI() != "/inbox?tab=team" {
		t.Errorf("deleting leads to %s", p.url)
	}
	ana.post("/inbox/views/delete", "name", "broken").want(http.StatusOK).lacks(testid("saved-views"))
}

func TestHostileViewNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	saved := 0
	for _, text := range hostileTexts(t) {
		p := ana.post("/inbox/views", "name", text, "query", "q=x")
		if p.plain(); p.status != http.StatusOK {
			continue // refused: it is too long, say
		}
		saved++
		ana.post("/inbox/views/delete", "name",
			strings.Join(strings.Fields(text), " ")).want(http.StatusOK).lacks(testid("saved-views"))
	}
	if saved < 10 {
		t.Errorf("only %d names were saved", saved)
	}
}
