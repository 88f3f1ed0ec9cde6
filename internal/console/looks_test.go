package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
)

// TestReasonsOfThePolicyAreOffered: the page offers the reasons as text, and only to people who may
// decide.
func TestReasonsOfThePolicyAreOffered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applyPolicy("version: 1\nreject_reasons: [Wrong currency, \"<b>not</b> this quarter\"]\n")
	a := w.price(w.agent("bot"), "12.50")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	page := ana.get("/actions/"+a.ID).want(http.StatusOK).has(`data-reason="Wrong currency"`,
		"&lt;b&gt;not&lt;/b&gt; this quarter")
	page.shown("/actions/" + a.ID)
	// Only the form's own button submits an offered reason.
	panel := between(page.body, testid("reasons"), "</div>")
	if n := strings.Count(panel, `<button type="button"`); n != 2 {
		t.Errorf("%d reasons are buttons that send nothing: %s", n, panel)
	}
	w.signIn("olga", gatehouse.RoleOperator).get("/actions/" + a.ID).want(http.StatusOK).lacks("Wrong currency")
}

// TestDeletionsAreRed: only the approve button of a deletion is red.
func TestDeletionsAreRed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	price := w.price(bot, "12.50")
	p := priceChange()
	p.ActionType, p.Operation, p.ProposedChange, p.CurrentState = "note", "delete", "{}", ""
	p.RiskLevel = gatehouse.L3
	gone, _, err := w.gate.Propose(bot, p)
	must(t, err)
	for _, c := range []struct {
		a   *gatehouse.Action
		red bool
	}{{price, false}, {gone, true}} {
		form := between(ana.get("/actions/"+c.a.ID).want(http.StatusOK).body, testid("approve-form"), "</form>")
		if got := strings.Contains(form, "primary danger"); got != c.red {
			t.Errorf("%s: the button is red: %t: %s", c.a.Operation, got, form)
		}
	}
}

// TestBottomBar: each section occurs once, those within the thumb's reach come first, and no script
// is needed.
func TestBottomBar(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover, gatehouse.RoleAuditor)
	bar := between(ana.get("/audit").want(http.StatusOK).body, testid("bottom-bar"), "</nav>")
	front, more, ok := strings.Cut(bar, "<details")
	if !ok || !strings.Contains(front, `href="/inbox"`) || !strings.Contains(front, `href="/runs"`) ||
		strings.Contains(more, `href="/inbox"`) {
		t.Errorf("the bar is %s", bar)
	}
	for _, path := range []string{"/workflows", "/dispatch", "/policies", "/audit", "/insights", "/settings"} {
		if strings.Count(bar, `href="`+path+`"`) != 1 || !strings.Contains(more, `href="`+path+`"`) {
			t.Errorf("More lacks %s: %s", path, more)
		}
	}
	if !strings.Contains(more, "data-here") {
		t.Error("More does not say that this page is one of its own")
	}
	ana.get("/inbox").want(http.StatusOK).lacks("data-here")
	w.stranger().get("/signin").want(http.StatusOK).lacks(testid("bottom-bar"))
}

// TestEmptyListsOfferASample: empty lists fill themselves, and offer a command. Only on a development
// server does the command name people of that server.
func TestEmptyListsOfferASample(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover, gatehouse.RoleOperator)
	ana.get("/inbox").want(http.StatusOK).has("gatehouse propose --type price_change").lacks("dev env")
	ana.get("/runs").want(http.StatusOK).
		has(testid("fills"), `hx-get="/runs?live=1"`, "gatehouse run start hello").lacks("dev env")
	ana.get("/dispatch").want(http.StatusOK).has(testid("fills"), "no failure is open").lacks("gatehouse demo")
	cfg := w.config
	cfg.Development = true
	pages, err := console.New(cfg)
	must(t, err)
	w.server.Config.Handler = pages
	ana.get("/inbox").want(http.StatusOK).has("gatehouse dev env --as agent", "gatehouse propose --type price_change")
	ana.get("/runs").want(http.StatusOK).has("gatehouse dev env --as reviewer")
	ana.get("/dispatch").want(http.StatusOK).has("gatehouse demo")
	w.price(w.agent("bot"), "12.50")
	ana.get("/inbox").want(http.StatusOK).lacks(testid("empty"))
}

// TestPoliciesTellTheirHistory: the page counts the policy's outcomes for the newest proposals.
func TestPoliciesTellTheirHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ana.get("/policies").want(http.StatusOK).has("Nothing has been proposed yet.")
	w.applyPolicy("version: 1\nrisk: {note: 1}\nrules:\n  - {id: notes, when: true, then: allow}\n")
	bot := w.agent("bot")
	w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = "note" })
	a := w.price(bot, "12.50")
	ana.get("/policies").want(http.StatusOK).has("Of the last 2 proposals: 1 allowed, 1 needed approval.",
		"/policies/explain?action="+a.ID, "gatehouse policy explain -f change.json --policy policy.yaml")
}
