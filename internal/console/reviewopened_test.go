package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestReviewOpened: only a browser with the recipient's session or device records, once, that it has opened
// the page of a link. To any other browser the page has no script, and its request changes nothing.
func TestReviewOpened(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	first := w.propose(w.bot, nil)
	l := w.link(first, w.ana)
	path := func(l *gatehouse.ReviewLink) string { return gatehouse.ReviewPath(l.ID, "") + "/opened" }
	opened := func(want int) {
		t.Helper()
		w.number()
		entries, err := w.gate.ListEntries(w.admin, 0, 200)
		must(t, err)
		n := 0
		for _, e := range entries {
			if strings.Contains(string(e.Body), `"review.opened"`) {
				n++
			}
		}
		if n != want {
			t.Errorf("%d entries say that a review was opened, want %d", n, want)
		}
	}
	w.number()
	before := w.stored()
	w.stranger().get(pathOf(l, "")).want(http.StatusOK).lacks("<script")
	w.stranger().post(path(l), "token", l.Token).want(http.StatusForbidden)
	w.ben.get(pathOf(l, "")).want(http.StatusForbidden).lacks("<script")
	w.ben.post(path(l), "token", l.Token).want(http.StatusForbidden).has("This link was sent to ana.")
	w.ana.post(path(l), "token", l.Token[1:]).want(http.StatusUnauthorized)
	w.ana.get(path(l)).want(http.StatusNotFound)
	p := w.ana.get(pathOf(l, gatehouse.Approve)).want(http.StatusOK).has(`data-review="` +
		gatehouse.ReviewPath(l.ID, "") + `"`)
	if csp := p.header.Get("Content-Security-Policy"); !strings.Contains(csp,
		"; script-src 'self'; connect-src 'self'") {
		t.Errorf("Content-Security-Policy: %s", csp)
	}
	prefetch := w.ana.request(http.MethodGet, pathOf(l, ""), nil)
	prefetch.Header.Set("Sec-Purpose", "prefetch")
	w.ana.do(prefetch).want(http.StatusOK).lacks("<script")
	foreign := w.ana.request(http.MethodPost, path(l), url.Values{"token": {l.Token}})
	foreign.Header.Del("Sec-Fetch-Site")
	w.ana.do(foreign).want(http.StatusForbidden)
	if w.stored() != before {
		t.Error("the store has changed")
	}

	w.ana.post(path(l), "token", l.Token).want(http.StatusNoContent)
	w.ana.post(path(l), "token", l.Token).want(http.StatusNoContent)
	opened(1)
	if page := w.ana.get("/actions/" + first.ID); strings.Contains(strings.ToLower(page.text()), "seen by") {
		t.Error("the action's page says who has seen it")
	}

	laptop := w.stranger()
	setup, err := w.gate.CreateSetupLink(w.admin, "ana")
	must(t, err)
	laptop.post("/setup", "token", setup.Token).want(http.StatusOK)
	w.advance(gatehouse.SessionIdle + time.Minute) // the session has expired
	l = w.link(w.propose(w.bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-2" }), w.ana)
	laptop.get(pathOf(l, "")).has("data-review=").has(testid("sign-in")) // known, but the policy allows no device
	laptop.post(path(l), "token", l.Token).want(http.StatusNoContent)
	opened(2)
}
