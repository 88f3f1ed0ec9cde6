package console_test

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// TestDeadLettersByError: pushes that failed with the same error are one group; a command on it
// first shows what it would do.
func TestDeadLettersByError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	root, ops := w.signIn("root", gatehouse.RoleAdmin), w.signIn("otto", gatehouse.RoleOperator)
	refused := func(sku, words string) *gatehouse.Action {
		a := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = sku })
		return w.settled(a, ana, gatehouse.PushFailed, "http_422", words)
	}
	for i := range 6 {
		refused("SKU-"+strconv.Itoa(i), "SKU-"+strconv.Itoa(i)+" is <b>locked</b>")
	}
	single := refused("SKU-9", "the price is too high")

	page := root.get("/dispatch").want(http.StatusOK).has("7 dead letters", "2 groups", testid("dead-group"),
		testid("group-replay"),
		"SKU-5 is &lt;b&gt;locked&lt;/b&gt;", single.Push.ID).lacks("<b>locked</b>")
	key := regexp.MustCompile(`data-key="([0-9a-f]{16})"`).FindStringSubmatch(page.body)[1]
	ana.get("/dispatch").want(http.StatusOK).has(testid("dead-group")).lacks(testid("group-acts"), testid("correct"))
	root.get("/dispatch?group="+key).want(http.StatusOK).has("6 dead letters", "SKU-0").lacks(single.Push.ID)
	root.get("/dispatch?status=unknown").want(http.StatusOK).has("No dead letter matches the filter")
	root.get("/dispatch?since=2099-01-01T00:00").want(http.StatusOK).has("No dead letter matches the filter")
	root.get("/dispatch?since=soon").want(http.StatusUnprocessableEntity)

	// Nothing is done before the plan is confirmed.
	ana.post("/dispatch/discard", "group", key, "reason", "over").want(http.StatusForbidden)
	ops.post("/dispatch/discard", "group", key, "reason", " ").want(http.StatusUnprocessableEntity)
	ops.post("/dispatch/discard", "group", key, "reason", "ordered <i>by phone</i>").want(http.StatusOK).
		has("Discard 6 dead letters?", testid("group-sure"), `value="ordered &lt;i&gt;by phone&lt;/i&gt;"`)
	root.post("/dispatch/replay", "group", key).want(http.StatusOK).has("Retry 6 dead letters?", `name="sure" value="yes"`)
	root.get("/dispatch").want(http.StatusOK).has("7 dead letters")
	ops.post("/dispatch/discard", "group", key, "reason", "ordered by phone", "sure", "yes").want(http.StatusOK).
		has("6 dead letters are discarded", single.Push.ID)
	if got := w.action(single.ID).Push.Status; got != gatehouse.PushFailed {
		t.Errorf("another group's push is %s", got)
	}

	unknown := w.settled(w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-8" }), ana,
		gatehouse.PushUnknown, "timeout", "no answer")
	page = ops.get("/dispatch?status=unknown").want(http.StatusOK)
	key = regexp.MustCompile(`data-key="([0-9a-f]{16})"`).FindStringSubmatch(page.body)[1]
	ops.post("/dispatch/resolve", "group", key, "outcome", "applied", "reason", "seen").want(http.StatusOK).
		has("Record the outcome of 1 dead letter?")
	ops.post("/dispatch/resolve", "group", key, "outcome", "applied", "reason", "seen", "sure", "yes").want(http.StatusOK).
		has("1 dead letter is settled")
	if got := w.action(unknown.ID).Status; got != gatehouse.StatusApplied {
		t.Errorf("the unknown outcome is %s", got)
	}
}

// shortPages is a dispatcher whose pages have one dead letter.
type shortPages struct{ *gate.Gate }

func (s shortPages) ListDeadLetters(
	ctx context.Context, f gatehouse.DeadLetterFilter,
) (gatehouse.Page[*gatehouse.DeadLetter], error) {
	f.Limit = 1
	return s.Gate.ListDeadLetters(ctx, f)
}

// TestDeadLettersOnLaterPages: each page counts all dead letters and groups, and shows the groups with rows on it.
func TestDeadLettersOnLaterPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Dispatch = shortPages{w.gate}
	w.public("")
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	for _, words := range []string{"the price is too high", "no such item"} {
		a := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = words[:3] })
		w.settled(a, ana, gatehouse.PushFailed, "http_422", words)
	}
	page := ana.get("/dispatch").want(http.StatusOK).has("2 dead letters in 2 groups", "the price is too high")
	next := regexp.MustCompile(`href="(/dispatch\?dead=[^"]+)"`).FindStringSubmatch(page.body)
	if next == nil {
		t.Fatalf("there is no next page:\n%s", page.body)
	}
	page = ana.get(next[1]).want(http.StatusOK).has("2 dead letters in 2 groups")
	if n := strings.Count(page.body, testid("dead-group")); n != 1 {
		t.Errorf("the second page shows %d groups", n)
	}
}

// slowType has the statistics of a rare type that takes longer than all types together.
type slowType struct{ *gate.Gate }

func (slowType) Insights(context.Context, gatehouse.InsightFilter) (*gatehouse.Insights, error) {
	minute, day := gatehouse.Span(time.Minute), gatehouse.Span(24*time.Hour)
	return &gatehouse.Insights{
		Seen: 100, All: gatehouse.Insight{Proposed: 100, P50: minute, P90: minute, P99: minute},
		ByType: []gatehouse.Insight{
			{Name: "usual", Proposed: 99, P50: minute, P90: minute, P99: minute},
			{Name: "rare", Proposed: 1, P50: day, P90: day, P99: day},
		},
	}, nil
}

// TestBarsFitTheChart: no bar is wider than its chart.
func TestBarsFitTheChart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Statistics = slowType{w.gate}
	w.public("")
	page := w.signIn("ana", gatehouse.RoleApprover).get("/insights").want(http.StatusOK)
	bars := regexp.MustCompile(`<rect class="bar-p[^>]* width="([\d.]+)"`).FindAllStringSubmatch(page.body, -1)
	for _, bar := range bars {
		if width, err := strconv.ParseFloat(bar[1], 64); err != nil || width > 400 {
			t.Errorf("a bar of width %s, %v", bar[1], err)
		}
	}
	if len(bars) != 6 {
		t.Errorf("the chart has %d bars", len(bars))
	}
}

// TestCorrectAndResend: an operator edits what the target refused, and proposes it again.
func TestCorrectAndResend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	ops := w.signIn("otto", gatehouse.RoleOperator)
	a := w.settled(w.propose(bot, nil), ana, gatehouse.PushFailed, "http_422", "the price is <b>too high</b>")
	ops.get("/dispatch").want(http.StatusOK).has(testid("correct"), "/actions/"+a.ID+"/edit")
	form := ops.get("/actions/"+a.ID+"/edit").want(http.StatusOK).
		has("Correct and resend", testid("correct-why"), "&lt;b&gt;too high&lt;/b&gt;", "Propose the correction").
		lacks(testid("edit-approve"), testid("edit-own"))
	field := regexp.MustCompile(`name="(field-\d+)" value="12.50"`).FindStringSubmatch(form.body)
	if field == nil {
		t.Fatalf("the form has no field with the price:\n%s", form.body)
	}
	values := []string{"digest", string(a.Digest), field[1], "11.90", "note", "the list says 11.90"}
	ops.post("/actions/"+a.ID+"/edit/review", append(values, "do", "check")...).
		want(http.StatusOK).has("11.90", testid("edit-word"))
	if got := w.action(a.ID); got.Superseded != "" {
		t.Fatal("checking the correction has proposed it already")
	}
	ops.post("/actions/"+a.ID+"/edit/review", append(values, "do", "save")...).
		want(http.StatusOK).has("Edited by otto", "the list says 11.90")
	old := w.action(a.ID)
	if old.Superseded == "" || old.Status != gatehouse.StatusFailed {
		t.Errorf("the failed action is %s, superseded by %q", old.Status, old.Superseded)
	}
	ops.get("/dispatch").want(http.StatusOK).has("no failure is open")
	ops.get("/actions/" + a.ID).want(http.StatusOK).has("Replaced by")
}

// TestHealthOfTheDispatch shows each connector, and the queue as charts and as a table.
func TestHealthOfTheDispatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	a := w.settled(w.propose(bot, nil), ana, gatehouse.PushFailed, "http_422", "the price is <b>too high</b>")
	page := ana.get("/dispatch?tab=health").want(http.StatusOK).has(testid("connectors"), testid("queue-depth"),
		testid("queue-oldest"), testid("queue-table"), a.Connector, "http_422", "&lt;b&gt;too high&lt;/b&gt;",
		"0 applied, 1 failed").lacks("<b>too high</b>")
	if n := strings.Count(page.body, `<th scope="row">`); n < gatehouse.HealthPoints {
		t.Errorf("the table has %d rows", n)
	}
}

// TestTrends: the bar of a day links to the list of the actions that it counts.
func TestTrends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.afternoon()
	bot, ana := w.agent("bot"), w.signIn("ana", gatehouse.RoleApprover)
	w.settled(w.propose(bot, nil), ana, gatehouse.PushFailed, "http_422", "no")
	w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-2" })
	page := ana.get("/insights?window=30d").want(http.StatusOK).has(testid("trend-proposed"), testid("trend-rejected"),
		testid("trend-table"))
	bar := regexp.MustCompile(
		`<a href="(/inbox[^"]*)" aria-label="\d{4}-\d\d-\d\d: 2, 50.0 % of them approved by people"`).
		FindStringSubmatch(page.body)
	if bar == nil {
		t.Fatal("no bar for the two proposals")
	}
	ana.get(strings.ReplaceAll(bar[1], "&amp;", "&")).want(http.StatusOK).has("SKU-1042", "SKU-2")
}
