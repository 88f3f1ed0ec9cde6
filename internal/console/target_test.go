package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestBeforeHasAProvenance: the page marks the agent's values as such until the target is read, and
// shows both values where they differ.
func TestBeforeHasAProvenance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana, eve := w.signIn("ana", gatehouse.RoleApprover), w.signIn("eve", gatehouse.RoleViewer)
	a := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.Version = "" })
	path := "/actions/" + a.ID
	ana.get(path).want(200).has(`hx-get="`+path+`/target?"`, "from 10.00 (as the agent says) to 12.50 USD",
		testid("read-now"))
	eve.get(path).want(200).has("as the agent says").lacks("hx-get=\"" + path + "/target")

	w.mu.Lock()
	w.state = `{"currency":"USD","price":"10.00"}`
	w.mu.Unlock()
	read := ana.get(path+"/target").want(200).has(`data-provenance="read"`, "read from shop", "✓",
		"from 10.00 to 12.50 USD")
	if strings.Contains(read.body, "hx-get=\""+path+"/target") {
		t.Error("it asks again")
	}
	ana.get(path + "?read=1").want(200).has(`data-provenance="read"`) // without script

	b := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.Version, p.Target.EntityRef = "", "SKU-2" })
	w.drifts(`{"currency":"USD","price":"11.11"}`)
	ana.get("/actions/"+b.ID+"/target?return=%2Finbox").want(200).
		has(`data-provenance="differs"`, "from 11.11 (the agent says 10.00", testid("target-differs"), testid("rebase"))

	// If the target is gone, there is nothing to reverse.
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	c := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.Version, p.Target.EntityRef = "", "SKU-4" })
	ana.get("/actions/" + c.ID).want(200).has("; reversible")
	ana.get("/actions/"+c.ID+"/target").want(200).has("The target is gone", "to 12.50 USD").lacks("reversible")

	// A target that gave no values does not confirm the values that are written again.
	again := w.propose(bot, func(p *gatehouse.Proposal) {
		p.Target.Version, p.Target.EntityRef = "", "SKU-5"
		p.ProposedChange = `{"currency":"USD","price":"12.50"}`
	})
	ana.get("/actions/" + again.ID + "/target").want(200).
		has("1 field rewritten, without a change according to the proposer")

	// A connector that cannot read its target is not asked, and the page says whose values it
	// shows.
	once := w.propose(bot, func(p *gatehouse.Proposal) { p.Connector, p.Target.EntityRef = "once", "SKU-3" })
	ana.get("/actions/"+once.ID).want(200).has("as the agent says").lacks("/target?", testid("read-now"))
	ana.get("/actions/act_none/target").want(http.StatusNotFound)
}

// TestReverseIsOfferedWhereItCanSucceed: the page of an applied action reads the target. It offers the
// reversal, with a warning if the target has changed, but not if the target is gone or a reversal is open.
func TestReverseIsOfferedWhereItCanSucceed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana, eve := w.signIn("ana", gatehouse.RoleApprover), w.signIn("eve", gatehouse.RoleViewer)
	applied := func(ref string) string {
		a := w.propose(w.agent("bot-"+ref), func(p *gatehouse.Proposal) { p.Target.EntityRef = ref })
		return "/actions/" + w.settled(a, ana, gatehouse.PushApplied, "", "").ID
	}
	path, moved, gone := applied("SKU-1"), applied("SKU-2"), applied("SKU-3")
	ana.get(path).want(200).has(testid("reverse"), `hx-get="`+path+`/reversal"`)
	eve.get(path).want(200).lacks(testid("reverse"), "/reversal")
	eve.get(path + "/reversal").want(200).lacks(testid("reverse"))
	ana.get(path+"/reversal").want(200).has(testid("reverse")).lacks("hx-get", testid("reverse-moved"))

	ana.post(path+"/reverse", "rationale", strings.Repeat("x", gatehouse.MaxTextBytes+1)).
		want(http.StatusUnprocessableEntity).has(testid("refused-reverse"), "xxx</textarea>", `open data-testid="reverse"`).
		lacks("/reversal")
	open := ana.post(path + "/reverse").want(200).url.Path
	ana.post(path+"/reverse").want(http.StatusConflict).has("A reversal is open already.", testid("open-reversal"))
	for _, at := range []string{path, path + "/reversal"} {
		ana.get(at).want(200).has(`href="`+open+`" `+testid("reversal-open")).lacks(testid("reverse"), "/reversal\"")
	}
	ana.post(open + "/cancel").want(200)
	ana.get(path).want(200).has(testid("reverse"))

	w.drifts(`{"price":"11.11"}`)
	ana.get(moved+"/reversal").want(200).has(testid("reverse"), testid("reverse-moved"))

	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	ana.get(gone + "/reversal").want(200).has(testid("cannot-reverse")).lacks(testid("reverse"))
	ana.post(gone + "/reverse").want(http.StatusConflict).
		has("The target no longer exists, so the change cannot be undone")
}

// TestAClaimKeepsAnItemOutOfBulk: a claim that differs from the payload is red and excludes the item
// from bulk decisions; an evaluation that the agent reports as passed gets no tick.
func TestAClaimKeepsAnItemOutOfBulk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	a := w.propose(w.agent("bot"), func(p *gatehouse.Proposal) {
		p.ProposedChange, p.Magnitude = `{"price":"9800.00"}`, &gatehouse.Magnitude{Amount: "98.00", Currency: "USD"}
		p.Evaluations = []gatehouse.Evaluation{{Name: "margin", Kind: "deterministic", Result: "pass"}}
	})
	page := ana.get("/actions/"+a.ID).want(200).has(`class="claim"`, "The agent claims", "98.00 USD", "9800.00",
		"bot says: pass", "Gatehouse did not run these checks")
	if strings.Contains(between(page.body, testid("said"), "</section>"), "✓") {
		t.Error("the agent's own evaluation has a tick")
	}
	ana.get("/inbox").want(200).lacks(`value="` + a.ID + `"`) // no check box
	ana.get("/inbox/bulk?pick="+a.ID).want(200).has(testid("bulk-excluded"),
		"decide the action on its own page").lacks(testid("bulk-approve"))
	ana.post("/inbox/bulk", "decision", string(gatehouse.Approve), "item",
		a.ID+" "+string(a.Digest)).want(200).has("claim_differs")
	if got := w.action(a.ID).Status; got != gatehouse.StatusPending {
		t.Errorf("it is %s", got)
	}
}
