package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestConversationPage: a person asks on the action's page, the agent's answer appears in the part
// that open pages load again, and the row and the history say so. Hostile text is marked.
func TestConversationPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	ben := w.signIn("ben", gatehouse.RoleApprover)
	a := w.propose(bot, nil)
	path := "/actions/" + a.ID
	ana.post(path+"/comments", "text", "why <b>\u202e?", "kind", "question").want(http.StatusOK)
	page := ana.get(path).want(http.StatusOK)
	page.has("Why you are asked")
	w.signIn("vic", gatehouse.RoleViewer).get(path).has("Why people are asked")
	page.has("not answered", "asks bot", "why &lt;b&gt;", "U+202E", `<span class="what">question 1</span>`)
	ana.get("/inbox").want(http.StatusOK).has(testid("asked"))
	_, err := w.gate.Comment(bot, a.ID, gatehouse.CommentRequest{Text: "the supplier raised it", Answers: 1})
	must(t, err)
	ana.get(path+"/conversation").want(http.StatusOK).has("answers question 1", "the supplier raised it")
	ana.get("/inbox").want(http.StatusOK).has(testid("answered"))

	ana.post(path+"/comments", "text", "  ", "kind", "comment").want(http.StatusUnprocessableEntity)
	ana.post(path+"/comments", "text", "typed", "kind", "answer", "answers", "1").
		want(http.StatusForbidden).has(testid("comment-text") + ">typed<")

	ana.post(path+"/assign", "assignee", "ben").want(http.StatusOK)
	ana.get(path).want(http.StatusOK).has("assigned to ben")
	ben.get("/inbox?assignee=me").want(http.StatusOK).has(a.ID, "assigned to you")
	ana.get("/inbox?assignee=me").want(http.StatusOK).lacks(a.ID)
	ana.post(path+"/assign", "assignee", "nobody").want(http.StatusUnprocessableEntity).
		has(testid("refused-assign"), `value="nobody"`, `open data-testid="assign-more"`).
		lacks(`open data-testid="approve-more"`, `open data-testid="snooze-more"`)
}

// TestSnoozePage: a snoozed item disappears only from the person's own tab and its count.
func TestSnoozePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.afternoon()
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	ben := w.signIn("ben", gatehouse.RoleApprover)
	a, b := w.propose(bot, nil), w.propose(bot, nil)
	path := "/actions/" + a.ID + "/snooze"
	to := ana.post(path, "for", "1h", "return", "/inbox", "next", b.ID).want(http.StatusOK)
	if got := to.url.RequestURI(); got != "/inbox?open="+b.ID {
		t.Errorf("continues with %s", got)
	}
	row := `id="row-` + a.ID
	ana.get("/inbox").want(http.StatusOK).has(", 1 snoozed", "(1) Inbox").lacks(row)
	ana.get("/inbox?tab=team").want(http.StatusOK).has(row, "snoozed, back in")
	ana.get("/inbox?snoozed=1").want(http.StatusOK).has(row).lacks(`id="row-` + b.ID)
	ben.get("/inbox").want(http.StatusOK).has(row).lacks("1 snoozed")
	ana.get("/inbox/states").want(http.StatusOK).has(`"mine":"1"`, `"snoozed":", 1 snoozed"`)
	ana.post(path, "for", "").want(http.StatusOK)
	ana.get("/inbox").want(http.StatusOK).has(row)

	for zone, want := range map[string]int{"0": 9, "-120": 7, "soon": 9} {
		ana.post(path, "for", "tomorrow", "zone", zone).want(http.StatusOK)
		list, err := w.gate.Snoozes(w.as(ana.creds))
		if err != nil || len(list) != 1 || list[0].Until.Hour() != want {
			t.Errorf("tomorrow in zone %s: %+v, %v", zone, list, err)
		}
	}
	at := w.now().Add(5 * time.Hour).UTC().Format("2006-01-02T15:04")
	ana.post(path, "for", "until", "until", at).want(http.StatusOK)
	list, err := w.gate.Snoozes(w.as(ana.creds))
	if err != nil || len(list) != 1 || !strings.HasPrefix(list[0].Until.UTC().Format(time.RFC3339), at) {
		t.Errorf("until %s: %+v, %v", at, list, err)
	}
	ana.post(path, "for", "until", "until", "2026-13-01T00:00").want(http.StatusUnprocessableEntity).
		has(testid("refused-snooze"), `value="2026-13-01T00:00"`, `open data-testid="snooze-more"`)
}

// TestServicesAreOptional: without snoozes, or without a store of connectors, their forms are not there.
func TestServicesAreOptional(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Snoozes, w.config.ConnectorStore = nil, nil
	w.public("")
	ana, root := w.signIn("ana", gatehouse.RoleApprover), w.signIn("root", gatehouse.RoleAdmin)
	path := "/actions/" + w.propose(w.agent("bot"), nil).ID
	ana.get(path).want(http.StatusOK).has(testid("talk")).lacks("/snooze")
	ana.post(path+"/snooze", "for", "1h").want(http.StatusNotFound)
	for _, form := range []string{"/new", "/shop/edit"} {
		root.get("/settings/connectors" + form).want(http.StatusNotFound)
	}
	root.post("/settings/connectors", "name", "shop").want(http.StatusNotFound)
	root.post("/settings/connectors/shop/remove").want(http.StatusNotFound)
}
