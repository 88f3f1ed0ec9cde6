package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestReviewEdit: a reviewer edits fields, sees beforehand who may approve the edit, and saves it
// once. Both changes stay on the action's page.
func TestReviewEdit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana, eve := w.signIn("ana", gatehouse.RoleApprover), w.signIn("eve", gatehouse.RoleViewer)
	a := w.propose(bot, func(p *gatehouse.Proposal) {
		p.ProposedChange = `{"lines":[{"n":1.10,"ok":true}],"note":"<b>first\nsecond","price":"12.50"}`
	})
	page, form := "/actions/"+a.ID, "/actions/"+a.ID+"/edit/review"
	ana.get(page).want(200).has(testid("edit"), page+"/edit")
	eve.get(page).want(200).lacks(testid("edit"))
	eve.get(page + "/edit").want(http.StatusForbidden)
	eve.post(form, "do", "save").want(http.StatusForbidden)
	shown := ana.get(page+"/edit").want(200).has("as bot says", `name="field-3"`, `name="field-0"`,
		`<option value="true" selected>`, "&lt;b&gt;first\nsecond</textarea>", "Check shows the differences")
	shown.plain()
	once := onceField.FindStringSubmatch(shown.body)[1]
	// A browser also posts the fields that nobody changed.
	fields := func(more ...string) []string {
		values := map[string]string{
			"once": once, "digest": string(a.Digest), "field-0": "1.10", "field-1": "true",
			"field-2": "<b>first\r\nsecond", "field-3": "12.50",
		}
		for i := 0; i < len(more); i += 2 {
			values[more[i]] = more[i+1]
		}
		var list []string
		for name, value := range values {
			list = append(list, name, value)
		}
		return list
	}
	ana.post(form, fields("do", "check")...).
		want(http.StatusConflict).
		has(`data-testid="edit-check"`, "Cannot be edited", "nothing to edit")
	ana.post(form, fields("do", "check", "field-0", "1.2.0")...).
		want(http.StatusUnprocessableEntity).has("is not JSON", `value="1.2.0"`)
	tried := ana.post(form, fields("do", "check", "field-3", "11.00", "field-0", "2", "note", "typed")...).
		want(200).has("L3: you may approve it yourself", "typed</textarea>", `value="11.00"`)
	if check := between(tried.body, testid("edit-check"), testid("edit-try")); !strings.Contains(check, "12.50") ||
		!strings.Contains(check, "1.10") || strings.Contains(check, "second") {
		t.Errorf("what differs: %s", check)
	}
	ana.post(form, fields("do", "save", "field-3", "11.00")...).want(http.StatusUnprocessableEntity).
		has("Why: is required").lacks("/note")
	if got := w.action(a.ID); got.Status != gatehouse.StatusPending {
		t.Fatalf("tries have made the action %s", got.Status)
	}

	saving := fields("do", "save", "field-3", "11.00", "field-0", "2", "note", "less <b>")
	saved := ana.post(form, saving...).want(200)
	next := w.action(w.action(a.ID).Superseded)
	if next.ProposedChange != `{"lines":[{"n":2,"ok":true}],"note":"<b>first\nsecond","price":"11.00"}` ||
		next.EditedBy != "ana" ||
		saved.url.Path != "/actions/"+next.ID {
		t.Errorf("%s, by %s, at %s", next.ProposedChange, next.EditedBy, saved.url)
	}
	if again := ana.post(form, saving...).want(200); again.url.Path != saved.url.Path {
		t.Errorf("a second press led to %s", again.url)
	}
	ana.post(form, fields("once", "late", "do", "save", "field-3", "11.50", "note", "late")...).
		want(http.StatusConflict).has("Already decided")
	ana.post("/actions/"+next.ID+"/decide", decision(next, gatehouse.Approve)...).want(200)
	for _, who := range []*browser{ana, eve} { // after the decision too
		section := between(who.get("/actions/"+next.ID).want(200).body, testid("edited"), "</section>")
		for _, want := range []string{"ana", "bot", "2.5", "1.0", "1.10", "less &lt;b&gt;", "/actions/" + a.ID} {
			if !strings.Contains(section, want) {
				t.Errorf("both changes lack %q: %s", want, section)
			}
		}
	}
}

// TestReviewEditApproves edits and approves in one step, and edits as JSON. For a script, an error
// is returned as a part of the page.
func TestReviewEditApproves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	a := w.propose(bot, nil)
	form := "/actions/" + a.ID + "/edit/review"
	ana.get("/actions/"+a.ID+"/edit?json=yes").want(200).has(testid("edit-json"), "12.50").lacks(testid("edit-field"))
	r := ana.request("POST", form, url.Values{"digest": {string(a.Digest)}, "json": {"yes"}, "change": {"{"}})
	r.Header.Set("HX-Request", "true")
	p := ana.do(r)
	p.want(200).has("not JSON")
	ana.post(form, "do", "approve", "digest", string(a.Digest), "once", "k", "json", "yes", "note", "why",
		"change", `{"price": "11.00"}`).want(200)
	if next := w.action(w.action(a.ID).Superseded); next.DecidedBy != "ana" ||
		next.DecidedVia != gatehouse.ViaConsole ||
		next.ProposedChange != `{"price":"11.00"}` {
		t.Errorf("%+v", next)
	}
	// At L4, the editor cannot approve in the same step: somebody else has to approve the edit.
	high := w.propose(bot, func(p *gatehouse.Proposal) { p.RiskLevel = 4 })
	ana.get("/actions/" + high.ID + "/edit").want(200).has(testid("edit-save")).lacks(testid("edit-approve"))
	ana.post("/actions/"+high.ID+"/edit/review", "do", "check", "digest", string(high.Digest), "field-0", "11.00").
		want(200).has("L4: somebody else has to approve it")
	edited := ana.post("/actions/"+high.ID+"/edit/review", "do", "save", "digest", string(high.Digest), "field-0", "11.00",
		"note", "why").want(200)
	ana.get(edited.url.Path).want(200).has("it was proposed or edited by you")
}
