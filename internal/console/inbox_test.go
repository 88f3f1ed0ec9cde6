package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func TestTabs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	mine := w.propose(bot, nil)
	own := w.propose(bot, func(p *gatehouse.Proposal) { p.OnBehalfOf = "ana" })
	ana, ben := w.signIn("ana", gatehouse.RoleApprover), w.signIn("ben", gatehouse.RoleApprover)

	ana.get("/inbox").has(mine.ID).lacks(own.ID)
	ana.get("/inbox?tab=team").has(mine.ID, own.ID)
	ana.get("/inbox?tab=decided").has("Nothing has been decided yet")
	ben.post("/actions/"+mine.ID+"/decide", decision(mine, gatehouse.Reject, "notes", "no")...).want(200)
	ana.get("/inbox").has("Nothing is waiting for you", "gatehouse propose").lacks(mine.ID)
	ana.get("/inbox?tab=decided").has(mine.ID, "rejected").lacks(own.ID)
	ana.get("/inbox?tab=all").has(mine.ID, "rejected", own.ID)
	w.afterHold()
	ana.get("/inbox?tab=all&status=rejected").has(mine.ID).lacks(own.ID)
}

// TestARowShowsItsAmount: a row shows the sum of the amounts of money in the change, and the proposer's
// claim where it differs.
func TestARowShowsItsAmount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	for _, c := range []struct {
		name, before, after string
		magnitude           *gatehouse.Magnitude
		delta, percent      string
	}{
		{"money", `{"currency":"EUR","price":"10.00"}`, `{"price":"12.50"}`, nil, "+2.50 EUR", "+25 %"},
		{"money and another claim", `{"currency":"EUR","price":"10.00"}`, `{"price":"9.00"}`,
			&gatehouse.Magnitude{Amount: "7", Currency: "USD"}, "−1.00 EUR, claimed 7 USD", "−10 %"},
		{"no currency", `{"price":"10.00"}`, `{"price":"12.50"}`, nil, "+2.50", "+25 %"},
		{"a claim without money", `{"status":"open"}`, `{"status":"closed"}`,
			&gatehouse.Magnitude{Amount: "7", Currency: "USD"}, ", claimed 7 USD", ""},
		{"unlike amounts have no sum", `{"currency":"EUR","price":"10.00","cost":"4.00"}`,
			`{"price":"12.50","cost":"5.00"}`, nil, "", ""},
		{"unlike amounts of something new", ``, `{"currency":"USD","price":"0.12","cost":"0.05"}`, nil, "", ""},
		{"like amounts are added up", ``, `{"lines":[{"amount":"2","currency":"EUR"},{"amount":"3","currency":"EUR"}]}`,
			nil, "5 EUR", ""},
		{"a number that is not money", `{"stock":10}`, `{"stock":4}`, nil, "", "−60 %"},
		{"a change too large to be read", `{"currency":"EUR","price":"10.00","text":"` + strings.Repeat("x", 70<<10) + `"}`,
			`{"price":"12.50"}`, &gatehouse.Magnitude{Amount: "7", Currency: "USD"}, ", claimed 7 USD", ""},
	} {
		a := w.propose(bot, func(p *gatehouse.Proposal) {
			p.CurrentState, p.ProposedChange, p.Magnitude = gatehouse.JSON(c.before), gatehouse.JSON(c.after), c.magnitude
		})
		page := ana.get("/inbox?q=" + a.ID).has(a.ID)
		got := ""
		if m := regexp.MustCompile(`data-testid="moved">(.*?)</span>`).FindStringSubmatch(page.body); m != nil {
			got = m[1]
		}
		if m := regexp.MustCompile(`(?s)data-testid="claimed">\s*the agent claims\s*(.*?)\s*</span>`).FindStringSubmatch(
			page.body); m != nil {
			got += ", claimed " + m[1]
		}
		percent := ""
		if m := regexp.MustCompile(`data-testid="percent">(.*?)</span>`).FindStringSubmatch(page.body); m != nil {
			percent = m[1]
		}
		if percent != c.percent {
			t.Errorf("%s: it grows by %q, want %q", c.name, percent, c.percent)
		}
		if got != c.delta {
			t.Errorf("%s: got %q, want %q", c.name, got, c.delta)
		}
	}
}

// TestEveryFigureLeadsToItsRows: each figure links to the rows that it counts, also the figure of all
// proposals in any state. A zero has no link.
func TestEveryFigureLeadsToItsRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	w.propose(bot, nil)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	page := ana.get("/insights").body
	cells := regexp.MustCompile(`(?s)<td class="num">(.*?)</td>`).FindAllStringSubmatch(page, -1)
	if len(cells) < 9 || !strings.Contains(page, "tab=all") {
		t.Fatalf("%d figures", len(cells))
	}
	led := 0
	for _, row := range regexp.MustCompile(`(?s)<tr data-name=.*?</tr>`).FindAllString(page, -1) {
		links := strings.Count(row, `<td class="num"><a href="/inbox?`)
		zeros := strings.Count(row, `<span class="zero">0</span>`) + strings.Count(row, `<span class="zero">–</span>`)
		if figures := strings.Count(row, `<td class="num">`); figures == 0 || figures != links+zeros ||
			strings.Contains(row, ">0</a>") {
			t.Errorf("of %d figures %d lead to their rows: %s", figures, links, row)
		}
		led += links
	}
	if led == 0 {
		t.Error("no row")
	}
}

func TestFiltersAreInTheURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, other := w.agent("bot"), w.agent("other")
	a := w.propose(bot, nil)
	b := w.propose(other, func(p *gatehouse.Proposal) { p.ActionType, p.Target.EntityRef = "quote_draft", "Q-1" })
	ana := w.signIn("ana", gatehouse.RoleApprover)
	for query, want := range map[string][2]string{
		"type=quote_draft": {b.ID, a.ID},
		"by=bot":           {a.ID, b.ID},
		"q=q-1":            {b.ID, a.ID},
		"risk=3&by=other":  {b.ID, a.ID},
	} {
		// Each row's link keeps the filter.
		ana.get("/inbox?" + query).has(want[0]).lacks(want[1])
		page := ana.get("/inbox?" + query)
		name, value, _ := strings.Cut(strings.Split(query, "&")[0], "=")
		if !strings.Contains(page.body, "open="+want[0]) || !strings.Contains(page.body, name+"="+value) {
			t.Errorf("?%s: the row's link does not keep the filter", query)
		}
	}
	ana.get("/inbox?risk=5").has("Nothing matches").lacks(a.ID, b.ID)
}

func TestTheListIsFrozenAndNewOnesWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	a := w.propose(bot, nil)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	page := ana.get("/inbox").has(a.ID)
	at := strings.Index(page.body, "snap=")
	snap := page.body[at : at+strings.IndexAny(page.body[at:], `"&`)]
	ana.get("/inbox/new?" + snap).want(200).lacks("fresh-pill")

	fresh := w.propose(bot, func(p *gatehouse.Proposal) { p.ExpiresIn = gatehouse.Span(600e9) })
	ana.get("/inbox?" + snap).has(a.ID).lacks(fresh.ID)
	ana.get("/inbox/new?"+snap).want(200).has("1", "new", testid("fresh-pill")).lacks("<html")
	ana.get("/inbox").has(a.ID, fresh.ID)
}

func TestAnEmptyInboxShowsNewActions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	watched := func(body string) string {
		_, rest, _ := strings.Cut(body, `hx-get="/inbox/new?`)
		query, _, _ := strings.Cut(rest, `"`)
		return "/inbox/new?" + html.UnescapeString(query)
	}
	empty := watched(ana.get("/inbox").want(200).body)
	filtered := watched(ana.get("/inbox?risk=3").want(200).body)
	if r := ana.get(empty).want(200); r.header.Get("HX-Redirect") != "" {
		t.Errorf("nothing has come, and the page goes to %s", r.header.Get("HX-Redirect"))
	}
	a := w.propose(bot, nil)
	if to := ana.get(empty).want(200).header.Get("HX-Redirect"); to != "/inbox" {
		t.Errorf("an empty page goes to %q", to)
	}
	if to := ana.get(filtered).want(200).has("fresh-pill").header.Get("HX-Redirect"); to != "" {
		t.Errorf("a page with a filter goes to %q", to)
	}
	if to := ana.get(watched(ana.get("/inbox").has(a.ID).body)).header.Get("HX-Redirect"); to != "" {
		t.Errorf("a page with rows goes to %q", to)
	}
}

func TestTheNoticeFollowsTheDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ana.get("/inbox?done=" + a.ID).want(200).has(`hx-get="/inbox/done?done=` + a.ID)
	ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Reject, "notes", "too much")...).want(200)
	ana.get("/inbox/done?done="+a.ID).want(200).has("Rejected", "hx-get", testid("undo")).lacks("<html")
	w.afterHold()
	ana.get("/inbox/done?done="+a.ID).want(200).has("Rejected").lacks("hx-get", "<html")
	ana.get("/inbox/done?done=act_none").want(404)
}

func TestPagesHoldEachItemOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	for i := range 130 {
		w.propose(bot, func(p *gatehouse.Proposal) {
			p.Target.EntityRef = fmt.Sprintf("SKU-%d", i)
			if i%3 == 0 {
				p.OnBehalfOf = "ana"
			}
		})
	}
	ana := w.signIn("ana", gatehouse.RoleApprover)
	seen := map[string]int{}
	path := "/inbox"
	for range 10 {
		page := ana.get(path).want(200)
		for _, part := range strings.Split(page.body, `id="row-`)[1:] {
			seen[part[:strings.Index(part, `"`)]]++
		}
		at := strings.Index(page.body, `rel="next"`)
		if at < 0 {
			break
		}
		from := strings.LastIndex(page.body[:at], `href="`) + len(`href="`)
		path = strings.ReplaceAll(page.body[from:from+strings.Index(page.body[from:], `"`)], "&amp;", "&")
	}
	if len(seen) != 86 {
		t.Errorf("the pages hold %d items, want 86", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s is listed %d times", id, n)
		}
	}
}

func TestPresence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana, ben := w.signIn("ana", gatehouse.RoleApprover), w.signIn("ben", gatehouse.RoleApprover)
	ana.get("/inbox?open=" + a.ID).lacks("looking")
	ben.get("/inbox").has("ana looking")
	ben.get("/actions/" + a.ID).has("ana is looking at this too")
	ana.get("/actions/" + a.ID + "/live?seen=pending").want(200).has("ben is looking").lacks("has changed")
	ben.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve)...).want(200)
	ana.get("/actions/"+a.ID+"/live?seen=pending").want(200).has("has changed while you were reading", "ben")
}

// TestPresenceWhereNothingChanges: other people see who has an action open for as long as it is
// open, although no event announces it.
func TestPresenceWhereNothingChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana, ben := w.signIn("ana", gatehouse.RoleApprover), w.signIn("ben", gatehouse.RoleApprover)
	first := ana.get("/actions/" + a.ID).want(200).lacks("looking")
	// The mark's attributes make an open page ask again by itself.
	mark := between(first.body, `id="live"`, ">")
	every, err := time.ParseDuration(between(mark, ", every ", `"`))
	if err != nil {
		t.Fatalf("the page never asks by itself: %s", mark)
	}
	live := html.UnescapeString(between(mark, `hx-get="`, `"`))
	ben.get("/actions/" + a.ID).has("ana is looking at this too")
	for range 6 {
		w.advance(every)
		ana.get(live).want(200).has("ben is looking at this too", "every "+every.String())
		ben.get(live).want(200).has("ana is looking at this too")
	}
	for range 3 { // no longer than 15 seconds after ana left
		w.advance(every)
		ben.get(live).want(200)
	}
	ben.get(live).want(200).lacks("looking")

	ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve)...).want(200)
	if p := ben.get("/actions/" + a.ID).want(200); strings.Contains(between(p.body, `id="live"`, ">"), "every") {
		t.Error("the page of a decided action asks who looks at it")
	}
}

func TestBulk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	a := w.propose(bot, nil)
	b := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef, p.ProposedChange = "SKU-2", `{"price":"5.00"}` })
	large := w.propose(bot, func(p *gatehouse.Proposal) {
		p.ActionType, p.Operation = "create_item", "insert"
		p.CurrentState, p.ProposedChange = "", `{"name":"Lamp"}`
	})
	own := w.propose(bot, func(p *gatehouse.Proposal) { p.OnBehalfOf = "ana" })
	ana := w.signIn("ana", gatehouse.RoleApprover)
	pick := url.Values{"pick": {a.ID, b.ID, large.ID, own.ID, "act_none"}, "return": {"/inbox"}}
	ana.get("/inbox/bulk?"+pick.Encode()).want(200).
		has("2 actions", "7.50 USD moved, net −2.50", "5.00 USD", "cannot be decided in bulk", testid("bulk-excluded"),
			"12.50", "Approve 2 items")

	items := []string{"item", a.ID + " " + string(a.Digest), "item", b.ID + " " + string(b.Digest), "item",
		large.ID + " " + string(large.Digest), "return", "/inbox"}
	ana.post("/inbox/bulk", append(items, "decision", "rejected", "notes", " ")...).want(http.StatusUnprocessableEntity).
		has("Say why you reject them", testid("bulk-form"), testid("bulk-totals"))
	ana.post("/inbox/bulk", append(items, "decision", "approved")...).want(200).has("2 items approved",
		"individual_decision_required")
	for id, want := range map[string]gatehouse.Status{a.ID: gatehouse.StatusApproved, b.ID: gatehouse.StatusApproved,
		large.ID: gatehouse.StatusPending} {
		got := w.action(id)
		if got.Status != want {
			t.Errorf("%s is %s, want %s", id, got.Status, want)
		}
		if want == gatehouse.StatusApproved && got.DecidedVia != gatehouse.ViaConsole {
			t.Errorf("%s was decided via %s", id, got.DecidedVia)
		}
	}
}

func TestEditProposesOneRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana := w.signIn("ana", gatehouse.RoleApprover, gatehouse.RoleProposer)
	ana.get("/actions/"+a.ID+"/edit").want(200).has(testid("review-edit"), "/edit?own=yes")
	ana.get("/actions/"+a.ID+"/edit?own=yes").want(200).has("12.50", testid("edit-go"))
	ana.post("/actions/"+a.ID+"/edit", "once", "k1", "change",
		`{"price": 12.5.0}`).want(http.StatusBadRequest).has("not JSON")
	form := []string{"once", "k1", "change", `{"price":"11.00"}`, "rationale", "less"}
	p := ana.post("/actions/"+a.ID+"/edit", form...).want(200).has("11.00", "Replaces", testid("cannot"))
	if again := ana.post("/actions/"+a.ID+"/edit", form...).want(200); again.url.Path != p.url.Path {
		t.Errorf("the same form again made %s beside %s", again.url.Path, p.url.Path)
	}
	if got := w.action(a.ID); got.Status != gatehouse.StatusSuperseded {
		t.Errorf("the old one is %s", got.Status)
	}
	// Nobody gets a form that they may not send.
	w.signIn("ben", gatehouse.RoleApprover).get("/actions/" + a.ID + "/edit").want(http.StatusForbidden)
	ana.get("/actions/" + a.ID + "/edit").want(200).has(testid("edit-go"))
}

func TestSearchFindsByID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.propose(w.agent("bot"), nil)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	for q, want := range map[string]string{a.ID: "/actions/" + a.ID, a.Approval.ID: "/actions/" + a.ID, "inbox": "/inbox",
		"SKU-1042": "/inbox"} {
		if p := ana.get("/search?q=" + url.QueryEscape(q)).want(200); p.url.Path != want {
			t.Errorf("%s leads to %s", q, p.url)
		}
	}
}
