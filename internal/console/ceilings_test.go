package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

const ceilingsPolicy = `version: 1
levels: {3: Costly}
risk: {price_change: 3}
approvals: {3: {groups: [pricing]}}
ceilings:
  - {name: prices, per: agent, window: 24h, limit: 100.00, amount: change.price, currency: USD,
      amount_currency: '"USD"'}
`

// applyPolicy makes a text the active policy.
func (w *world) applyPolicy(source string) {
	w.t.Helper()
	if _, err := w.gate.ApplyPolicy(w.admin, source); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) price(bot context.Context, price string) *gatehouse.Action {
	w.t.Helper()
	return w.propose(bot, func(p *gatehouse.Proposal) {
		p.ProposedChange = gatehouse.JSON(`{"price":"` + price +
			`"}`)
	})
}

// rowOf is an action's row in the list.
func (p *page) rowOf(id string) string { return between(p.body, `id="row-`+id+`"`, "</li>") }

// TestExceededCeilingsAreMarked checks the marks of an action that exceeds a ceiling: on its row,
// on the page of a selection (which still includes the action), and in full on its card.
func TestExceededCeilingsAreMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applyPolicy(strings.Replace(ceilingsPolicy, "approvals: {3: {groups: [pricing]}}\n", "", 1))
	bot := w.agent("bot")
	first, second, small, large := w.price(bot, "60.00"), w.price(bot, "60.00"), w.price(bot, "40.00"),
		w.price(bot, "160.00")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	mark := testid("exceeds-mark")
	if row := ana.get("/inbox").want(http.StatusOK).rowOf(second.ID); row == "" || strings.Contains(row, mark) {
		t.Errorf("with room the row is %s", row)
	}
	ana.get("/actions/" + second.ID).want(http.StatusOK).lacks(testid("exceeds"))
	ana.post("/actions/"+first.ID+"/decide", decision(first, gatehouse.Approve)...).want(http.StatusOK)

	for _, path := range []string{"/inbox", "/inbox?tab=team", "/inbox?tab=all"} {
		inbox := ana.get(path).want(http.StatusOK)
		for _, c := range []struct {
			id    string
			marks int
		}{{first.ID, 0}, {second.ID, 1}, {small.ID, 0}, {large.ID, 1}} {
			row := inbox.rowOf(c.id)
			if got := strings.Count(row, mark); got != c.marks || got > 0 && !strings.Contains(row, "exceeds prices") {
				t.Errorf("%s: the row of %s has %d marks: %s", path, c.id, got, row)
			}
		}
	}
	ana.get("/actions/"+second.ID).want(http.StatusOK).
		has(testid("exceeds"),
			"The ceiling prices would be exceeded: this action needs 60.00, but only 40.00 of 100.00 is left",
			"once other actions leave the window of 1d").
		lacks("can never be approved")
	ana.get("/actions/"+large.ID).want(http.StatusOK).has("this action needs 160.00",
		"The action needs more than the whole limit, so it can never be approved")
	ana.get("/actions/" + first.ID).want(http.StatusOK).lacks(testid("exceeds"))

	pick := url.Values{"pick": {second.ID, small.ID, large.ID}}
	bulk := ana.get("/inbox/bulk?"+pick.Encode()).want(http.StatusOK).
		has("3 actions", "Approve 3 items", testid("bulk-exceeds"), "2</b> would exceed a ceiling now",
			"needs 60.00, but only 40.00 of 100.00 is left", "can never be approved").
		lacks(testid("bulk-excluded"))
	if got := strings.Count(bulk.body, mark); got != 2 {
		t.Errorf("the selection has %d marks", got)
	}
	ana.get("/inbox/bulk?pick="+small.ID).want(http.StatusOK).lacks(mark, testid("bulk-exceeds"))
	items := []string{"decision", "approved", "item", second.ID + " " + string(second.Digest), "item",
		small.ID + " " + string(small.Digest)}
	ana.post("/inbox/bulk", items...).want(http.StatusOK).has("1 item approved", "ceiling_exceeded")

	// The usage table shows the used amount, its scope, and that nothing is left.
	usage := between(ana.get("/policies").want(http.StatusOK).body, testid("policy-usage"), "</table>")
	text := (&page{body: usage}).text()
	if !strings.Contains(text, "prices agent bot 100 0 100.00 USD 1d") {
		t.Errorf("the usage is %s", text)
	}
}

// TestUsageOfUnusedCeilings: each ceiling has a row even before the first claim; a policy
// without ceilings has no table.
func TestUsageOfUnusedCeilings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	w.applyPolicy(ceilingsPolicy)
	ana.get("/policies").want(http.StatusOK).has(testid("policy-usage"),
		"prices each agent, none yet 0 100.00 100.00 USD 1d")
	w.applyPolicy("version: 1\n")
	ana.get("/policies").want(http.StatusOK).lacks(testid("policy-usage"))
}

// TestApplyShowsItsWarnings: the page that reports the new active version lists its warnings at the
// top.
func TestApplyShowsItsWarnings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.signIn("root", gatehouse.RoleAdmin)
	p := root.post("/policies/apply", "source", ceilingsPolicy, "base", "1").want(http.StatusOK).
		has("Version 2 is active, with warnings", testid("policy-warnings"))
	if said := between(p.body, testid("policy-warnings"), "</div>"); !strings.Contains(said,
		"L3 asks the group pricing, which does not exist") {
		t.Errorf("the warnings are %s", said)
	}
	if n := w.policies(); n != 2 {
		t.Errorf("%d versions", n)
	}
	root.get("/policies").want(http.StatusOK).has("Version 2").lacks(testid("policy-warnings"))
	first, err := w.gate.FindPolicy(w.admin, 1)
	must(t, err)
	root.post("/policies/apply", "source", first.Source, "base", "2").want(http.StatusOK).
		has("Version 3").lacks(testid("policy-warnings"))
}

// TestInsightsNameTheLevels: the page shows the active policy's names beside the levels.
func TestInsightsNameTheLevels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.propose(w.agent("bot"), nil)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	heat := func() string {
		return (&page{body: between(ana.get("/insights").want(http.StatusOK).body, testid("heat-map"),
			"</table>")}).text()
	}
	if got := heat(); strings.Contains(got, "Costly") {
		t.Errorf("without names: %s", got)
	}
	w.applyPolicy(ceilingsPolicy)
	if got := heat(); strings.Count(got, "Costly") != 1 || !strings.Contains(got, "medium write Costly") {
		t.Errorf("with names: %s", got)
	}
}
