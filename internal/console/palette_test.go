package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestPaletteFindsReadableObjects: the palette finds actions, runs and people of the tenant, a
// few of each, and people for administrators only.
func TestPaletteFindsReadableObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	a := w.price(bot, "12.50")
	foreign := w.foreignAction()
	ana, root := w.signIn("ana", gatehouse.RoleApprover), w.signIn("root-too", gatehouse.RoleAdmin)

	page := ana.get("/palette?q=SKU-1042").want(http.StatusOK).has("/actions/"+a.ID, `role="option"`)
	page.lacks("<html", foreign)
	page.shown("/palette")
	ana.get("/palette?q=" + foreign).want(http.StatusOK).lacks("/actions/")
	ana.get("/palette?q=" + a.ID).want(http.StatusOK).has("/actions/" + a.ID)
	ana.get("/palette?q=bot").want(http.StatusOK).lacks(testid("palette-people"))
	root.get("/palette?q=BO").want(http.StatusOK).has(testid("palette-people"), "/settings/principals/bot")
	for _, q := range []string{"", "S", strings.Repeat("x", 300)} {
		ana.get("/palette?q=" + q).want(http.StatusOK).lacks(`role="option"`)
	}
	for i := range 7 {
		w.price(bot, fmt.Sprintf("2%d.00", i))
	}
	if n := strings.Count(ana.get("/palette?q=SKU-1042").body, `href="/actions/`); n != 5 {
		t.Errorf("the palette shows %d actions", n)
	}
	w.stranger().get("/palette?q=SKU-1042").lacks("/actions/" + a.ID)
}

// TestPaletteFindsRuns: by id, by the workflow's name, and by a field of the input.
func TestPaletteFindsRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("reprice", "name: reprice\nsteps:\n  - {id: sum, uses: transform, with: {n: 1}}\n")
	r := w.start(w.agent("bot"), "reprice", `{"customer":"ACME"}`)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	for _, q := range []string{r.ID, "repri", "customer%3DACME"} {
		ana.get("/palette?q=" + q).want(http.StatusOK).has("/runs/" + r.ID)
	}
	ana.get("/palette?q=repri").want(http.StatusOK).has("/workflows/reprice")
	ana.get("/palette?q=customer%3DOTHER").want(http.StatusOK).lacks("/runs/")
	ana.get("/palette?q=run_none").want(http.StatusOK).lacks("/runs/")
}

// TestPaletteCommands: the palette offers only the pages that the person may open.
func TestPaletteCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := func(b *browser) string { return between(b.get("/help").body, testid("palette"), "</dialog>") }
	ana := list(w.signIn("ana", gatehouse.RoleApprover))
	root := list(w.signIn("root-too", gatehouse.RoleAdmin))
	for _, path := range []string{"/settings/principals/new", "/policies/edit"} {
		if strings.Contains(ana, path) || !strings.Contains(root, path) {
			t.Errorf("%s is not for administrators alone", path)
		}
	}
	for _, text := range []string{"/runs/queues", "Dark theme", "Sign out", "/help"} {
		if !strings.Contains(ana, text) {
			t.Errorf("the palette lacks %s", text)
		}
	}
}
