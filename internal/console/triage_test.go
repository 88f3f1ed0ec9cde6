package console_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestTabsCount: the counts of the tabs follow this person's rights and the filters.
func TestTabsCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	first, second := w.price(bot, "12.50"), w.price(bot, "13.50")
	w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = "stock_change" })
	ana, olga := w.signIn("ana", gatehouse.RoleApprover), w.signIn("olga", gatehouse.RoleOperator)
	count := func(p *page, tab string) string { return between(p.body, testid("count-"+tab)+">", "<") }
	page := ana.get("/inbox").want(http.StatusOK).has("<title>(3) Inbox · Gatehouse</title>")
	if mine, team := count(page, "mine"), count(page, "team"); mine != "3" || team != "3" {
		t.Errorf("the tabs count %q and %q", mine, team)
	}
	page = ana.get("/inbox?type=price_change").want(http.StatusOK)
	if mine := count(page, "mine"); mine != "2" {
		t.Errorf("by a filter the tab counts %q", mine)
	}
	page = olga.get("/inbox?tab=team").want(http.StatusOK).has("<title>(3) Inbox · Gatehouse</title>")
	if mine, team := count(page, "mine"), count(page, "team"); mine != "0" || team != "3" {
		t.Errorf("for a person who cannot decide the tabs count %q and %q", mine, team)
	}
	ana.get("/inbox?tab=decided").
		want(http.StatusOK).
		has("<title>Inbox · Gatehouse</title>").
		lacks(testid("count-decided"))
	// The open action shows its position in the list.
	ana.get("/inbox?open=" + first.ID).want(http.StatusOK).has(testid("place") + ">1 of 3<")
	ana.get("/inbox?open=" + second.ID).want(http.StatusOK).has(testid("place") + ">2 of 3<")
	ana.get("/inbox?skip=40&open=" + second.ID).want(http.StatusOK).has(testid("place") + ">42 of 43<")
}

// inboxStates makes the request of an open page.
func inboxStates(t *testing.T, b *browser, ids ...string) (s struct {
	Mine, Team string
	Settled    []struct{ ID, Text string }
}) {
	t.Helper()
	p := b.get("/inbox/states?ids=" + strings.Join(ids, ",")).want(http.StatusOK)
	if err := json.Unmarshal([]byte(p.body), &s); err != nil {
		t.Fatalf("%v: %s", err, p.body)
	}
	return s
}

// TestRowsSettleWhereOthersDecide: an open page learns who decided which row, but only of rows that
// its person may see.
func TestRowsSettleWhereOthersDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	open, approved, rejected := w.price(bot, "12.50"), w.price(bot, "13.50"), w.price(bot, "14.50")
	foreign := w.foreignAction()
	ana, ben := w.signIn("ana", gatehouse.RoleApprover), w.signIn("ben", gatehouse.RoleApprover)
	if s := inboxStates(t, ana, open.ID, approved.ID, rejected.ID); len(s.Settled) != 0 || s.Mine != "3" ||
		s.Team != "3" {
		t.Errorf("before anybody decided: %+v", s)
	}
	ben.post("/actions/"+approved.ID+"/decide", decision(approved, gatehouse.Approve)...).want(http.StatusOK)
	ben.post("/actions/"+rejected.ID+"/decide", decision(rejected, gatehouse.Reject, "notes", "no")...).
		want(http.StatusOK)
	s := inboxStates(t, ana, open.ID, approved.ID, rejected.ID, foreign, "act_nowhere", "")
	texts := make(map[string]string)
	for _, row := range s.Settled {
		texts[row.ID] = row.Text
	}
	if len(texts) != 2 || texts[approved.ID] != "approved by ben" || texts[rejected.ID] != "rejected by ben" ||
		s.Mine != "1" {
		t.Errorf("after ben decided: %+v", s)
	}
}

const dueSoonPolicy = `version: 1
levels: {4: New or gone}
risk: {price_change: 3, create_item: 4, note_change: 3}
approvals:
  3: {expiry: 2h}
  4: {expiry: 24h}
`

// TestRowsHaveHeaders: the headings group rows by due time and level, each with its name; a
// deadline is shown only if it is near.
func TestRowsHaveHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applyPolicy(dueSoonPolicy)
	bot := w.agent("bot")
	soon := w.price(bot, "12.50")
	later := w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType, p.Operation = "create_item", "insert" })
	page := w.signIn("ana", gatehouse.RoleApprover).get("/inbox").want(http.StatusOK)
	heads := strings.Split(page.body, testid("group"))
	if len(heads) != 3 {
		t.Fatalf("%d headers", len(heads)-1)
	}
	for i, want := range []struct{ name, due, id, other string }{
		{"Medium write", "due within 4 h", soon.ID, later.ID}, {"New or gone", "", later.ID, soon.ID},
	} {
		h := heads[i+1]
		head, _, _ := strings.Cut(h, "</li>")
		if !strings.Contains(head, want.name) || strings.Contains(head, "due within") != (want.due != "") ||
			!strings.Contains(head, want.due) {
			t.Errorf("the header is %s", head)
		}
		if !strings.Contains(h, "row-"+want.id) || strings.Contains(h, "row-"+want.other) {
			t.Errorf("%q has other rows", want.name)
		}
	}
	if row := page.rowOf(soon.ID); !strings.Contains(row, " left<") {
		t.Errorf("the row does not say until when: %s", row)
	}
	if row := page.rowOf(later.ID); strings.Contains(row, " left<") {
		t.Errorf("the row says a deadline that is far away: %s", row)
	}
}

// TestAlikeRowsAreMarked: rows are marked if one agent changes the same fields of records of one kind,
// and bulk decisions are possible.
func TestAlikeRowsAreMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, other := w.agent("bot"), w.agent("other")
	a, b := w.price(bot, "12.50"), w.price(bot, "13.50")
	field := w.propose(bot, func(p *gatehouse.Proposal) { p.ProposedChange = `{"currency":"EUR"}` })
	agent := w.price(other, "12.50")
	claims := w.propose(
		bot,
		func(p *gatehouse.Proposal) { p.Magnitude = &gatehouse.Magnitude{Amount: "1", Currency: "USD"} },
	)
	page := w.signIn("ana", gatehouse.RoleApprover).get("/inbox").want(http.StatusOK)
	like := func(a *gatehouse.Action) string { return between(page.rowOf(a.ID), `data-like="`, `"`) }
	if like(a) == "" || like(a) != like(b) || !strings.Contains(page.rowOf(a.ID), "1 of 2 alike") {
		t.Errorf("two that are alike: %q and %q", like(a), like(b))
	}
	for _, x := range []*gatehouse.Action{field, agent, claims} {
		if like(x) != "" {
			t.Errorf("%s by %s is like others", x.ProposedChange, x.ProposedBy)
		}
	}
}

// TestTheRecordOfAnAgent: the record gives each count with its total, and does not count the action itself.
func TestTheRecordOfAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, other := w.agent("bot"), w.agent("other")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	fresh := w.price(bot, "99.00")
	ana.get("/actions/" + fresh.ID + "?record=1").
		want(http.StatusOK).
		has(testid("record-agent") + ">none decided by people yet<")
	for i, price := range []string{"11.00", "12.00", "13.00"} {
		a := w.price(bot, price)
		if i == 0 {
			ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Reject, "notes", "<i>wrong currency")...).
				want(http.StatusOK)
			w.afterHold()
			continue
		}
		ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve)...).want(http.StatusOK)
	}
	theirs := w.price(other, "14.00")
	ana.post("/actions/"+theirs.ID+"/decide", decision(theirs, gatehouse.Approve)...).want(http.StatusOK)
	for _, path := range []string{"/actions/" + fresh.ID + "/record", "/actions/" + fresh.ID + "?record=1"} {
		page := ana.get(path).want(http.StatusOK)
		page.has(testid("record-agent")+">2 of 3 approved by people, 1 rejected<",
			testid("record-all")+">3 of 4 approved by people, 1 rejected<",
			"3 recent decisions", "&lt;i&gt;wrong currency", "approved by ana")
		page.shown(path)
	}
	// The page loads the record later; a decided action has none.
	ana.get("/actions/"+fresh.ID).
		want(http.StatusOK).
		has(`hx-get="/actions/`+fresh.ID+`/record"`, testid("record-link"))
	ana.get("/actions/" + theirs.ID).want(http.StatusOK).lacks(testid("record"))
	// A decided action is not one of its own predecessors.
	ana.get("/actions/" + theirs.ID + "/record").want(http.StatusOK).lacks("recent decision")
	w.stranger().get("/actions/" + fresh.ID + "/record").lacks("2 of 3")
}

// TestAlikeRowsFold: alike rows that can be decided in bulk are one row with their number and sum.
// Other rows, and rows that need a confirmation, stay outside; the open row unfolds them.
func TestAlikeRowsFold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	var alike []*gatehouse.Action
	for _, price := range []string{"12.50", "13.50", "14.50", "15.50", "16.50"} {
		alike = append(alike, w.price(bot, price))
		if len(alike) == 2 {
			w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = "stock_change" })
		}
	}
	high := w.propose(bot, func(p *gatehouse.Proposal) { p.RiskLevel = gatehouse.L4 })
	ana := w.signIn("ana", gatehouse.RoleApprover)
	page := ana.get("/inbox").want(http.StatusOK)
	page.has(testid("fold-count")+">5 alike<", "Change price of ", ">5 items<", "+22.50 USD")
	fold := between(page.body, testid("fold"), "</details>")
	if strings.Count(page.body, testid("fold")) != 1 || strings.Contains(fold, "<details open") {
		t.Errorf("the fold is %s", fold)
	}
	var ids []string
	for _, a := range alike {
		ids = append(ids, a.ID)
		if !strings.Contains(fold, `id="row-`+a.ID) || strings.Contains(fold, "1 of 5 alike") {
			t.Errorf("the fold lacks %s: %s", a.ID, fold)
		}
	}
	if strings.Contains(fold, high.ID) || strings.Contains(fold, "stock_change") {
		t.Errorf("the fold has other rows: %s", fold)
	}
	// Without a script, the box of the fold selects all of it; an item that is selected twice
	// counts once.
	bulk := ana.get("/inbox/bulk?fold=" + strings.Join(ids, ",") + "&pick=" + ids[0] + "&pick=" + high.ID)
	bulk.want(http.StatusOK).has("Decide 5 items", "Approve 5 items", "actions of L4 cannot be decided in bulk")
	open := ana.get("/inbox?open=" + ids[2]).want(http.StatusOK)
	open.has(testid("place") + ">4 of 7<")
	if fold = between(open.body, testid("fold"), "<summary"); !strings.Contains(fold, "<details open") {
		t.Errorf("the open row is folded away: %s", fold)
	}
	// Four are too few.
	ana.post("/actions/"+ids[0]+"/decide", decision(alike[0], gatehouse.Approve)...).want(http.StatusOK)
	ana.get("/inbox").want(http.StatusOK).lacks(testid("fold")).has("1 of 4 alike")
}
