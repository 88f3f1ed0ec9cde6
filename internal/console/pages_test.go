package console_test

import (
	"database/sql"
	"errors"
	"html"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// settled approves an action and dispatches it to the wanted final state, as the dispatcher would.
func (w *world) settled(
	a *gatehouse.Action, by *browser, end gatehouse.PushStatus, code, words string,
) *gatehouse.Action {
	w.t.Helper()
	ctx := w.as(by.creds)
	if _, err := w.gate.Decide(ctx, a.ID, gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}); err != nil {
		w.t.Fatal(err)
	}
	a = w.action(a.ID)
	step := func(to gatehouse.PushStatus, action gatehouse.Status) {
		w.t.Helper()
		err := w.store.Update(w.t.Context(), a.Tenant, func(tx gatehouse.Tx) error {
			p, err := tx.LockPush(a.Push.ID)
			if err != nil {
				return err
			}
			from, generation := p.Status, p.Generation
			now := tx.Now()
			until := now.Add(time.Minute)
			p.Status, p.ErrorCode, p.LastError = to, code, words
			switch to {
			case gatehouse.PushPicking:
				p.Generation++
				p.LeaseOwner, p.LeaseUntil, p.PickedAt = "test", &until, &now
			case gatehouse.PushSent:
				p.Attempts, p.SentAt = p.Attempts+1, &now
			default:
				p.LeaseOwner, p.LeaseUntil, p.FinishedAt = "", nil, &now
			}
			if to == gatehouse.PushApplied {
				undo := gatehouse.Reversal{Operation: "update", Target: a.Target, CurrentState: a.ProposedChange,
					ProposedChange: a.CurrentState}
				err := tx.InsertReceipt(&gatehouse.Receipt{
					ID: "rcp_" + a.ID, Tenant: a.Tenant, ActionID: a.ID, PushID: p.ID, IdempotencyKey: a.IdempotencyKey,
					Attempt: 1, Generation: generation, Outcome: gatehouse.ReceiptApplied, Source: "call",
					RequestMetadata: "{}", ResponseMetadata: "{}", Reversible: true, Reversal: &undo, At: now,
				})
				if err != nil {
					return err
				}
			}
			if err := tx.UpdatePush(p, from, generation); err != nil || action == "" {
				return err
			}
			fresh, err := tx.LockAction(a.ID)
			if err != nil {
				return err
			}
			m := gatehouse.ActionMove{ID: a.ID, From: fresh.Status, To: action, Finished: action.Finished()}
			if action == gatehouse.StatusFailed {
				m.Failure = &gatehouse.Failure{Code: code, Detail: words}
			}
			return tx.MoveAction(m)
		})
		must(w.t, err)
	}
	step(gatehouse.PushPicking, "")
	step(gatehouse.PushSent, gatehouse.StatusPushing)
	step(end, map[gatehouse.PushStatus]gatehouse.Status{
		gatehouse.PushUnknown: gatehouse.StatusUnknown, gatehouse.PushFailed: gatehouse.StatusFailed,
		gatehouse.PushApplied: gatehouse.StatusApplied,
	}[end])
	return w.action(a.ID)
}

// number assigns log positions to the entries, as the sequencer does.
func (w *world) number() {
	w.t.Helper()
	for {
		_, err := (&audit.Sequencer{Store: w.store}).Once(w.t.Context())
		switch {
		case errors.Is(err, gatehouse.ErrConflict): // the world's own sequencer came first
			continue
		case err != nil:
			w.t.Fatal(err)
		}
		return
	}
}

func TestUnknownOutcomeIsSettledByAnOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ops := w.signIn("otto", gatehouse.RoleOperator)
	a := w.settled(w.propose(bot, nil), ana, gatehouse.PushUnknown, "timeout", "no answer <b>in time</b>")

	ana.get("/dispatch").want(http.StatusOK).has(testid("dead-letter"), `data-status="unknown"`, "No retry",
		"Recording the outcome needs the role operator").lacks("<b>in time</b>", `data-testid="resolve"`)
	ana.post("/dispatch/pushes/"+a.Push.ID+"/resolve", "outcome", "applied", "reason",
		"I looked").want(http.StatusForbidden)
	ops.get("/dispatch").want(http.StatusOK).has("look at the target", testid("resolve"))
	ops.post("/dispatch/pushes/"+a.Push.ID+"/resolve", "outcome", "perhaps", "reason",
		"x").want(http.StatusUnprocessableEntity).has(testid("dead-letter"))
	ops.post("/dispatch/pushes/"+a.Push.ID+"/resolve", "outcome", "applied", "reason",
		" ").want(http.StatusUnprocessableEntity)
	if got := w.action(a.ID).Status; got != gatehouse.StatusUnknown {
		t.Fatalf("a refusal left the action %s", got)
	}
	ops.post("/dispatch/pushes/"+a.Push.ID+"/resolve", "outcome", "applied", "reason",
		"the order shows it").want(http.StatusOK).has("verything that was sent has a known outcome")
	if got := w.action(a.ID).Status; got != gatehouse.StatusApplied {
		t.Errorf("the action is %s", got)
	}
	ops.get("/dispatch?tab=done").want(http.StatusOK).has(testid("pushes-applied"), "SKU-1042")
}

func TestDeadLettersAreReplayedByAnAdministrator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	root := w.signIn("root", gatehouse.RoleAdmin)
	a := w.settled(w.propose(bot, nil), ana, gatehouse.PushFailed, "http_422", "the price is too high")
	b := w.settled(w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-2" }), ana, gatehouse.PushFailed,
		"http_422", "no")

	ana.get("/dispatch").want(http.StatusOK).has("the price is too high", "Retrying needs the role admin").
		lacks(`data-testid="replay"`)
	ana.post("/dispatch/replay", "push", a.Push.ID).want(http.StatusForbidden)
	root.post("/dispatch/replay").want(http.StatusUnprocessableEntity).has("Select the dead letters to retry")
	root.post("/dispatch/replay", "push", a.Push.ID, "push",
		"psh_unknown").want(http.StatusOK).has("1 dead letter is back in the queue, 1 not", "psh_unknown")
	if got := w.action(a.ID).Push.Status; got != gatehouse.PushQueued {
		t.Errorf("the push is %s", got)
	}
	if got := w.action(b.ID).Push.Status; got != gatehouse.PushFailed {
		t.Errorf("an unmarked dead letter is %s", got)
	}

	// The filter is in the URL, and stays after an operator's form.
	ana.get("/dispatch?connector=shop&code=http_422").want(http.StatusOK).has(b.Push.ID, `value="http_422"`)
	ana.get("/dispatch?code=timeout").want(http.StatusOK).has("No dead letter matches the filter").lacks(b.Push.ID)
	ana.get("/dispatch?connector=other").want(http.StatusOK).has("No dead letter matches the filter").lacks(b.Push.ID)
	root.get("/dispatch?code=http_422").want(http.StatusOK).has(`action="/dispatch/replay?code=http_422"`)
	root.post("/dispatch/replay?code=timeout").want(http.StatusUnprocessableEntity).
		has("No dead letter matches the filter")

	ops := w.signIn("otto", gatehouse.RoleOperator)
	ana.post("/dispatch/discard", "push", b.Push.ID, "reason", "over").want(http.StatusForbidden)
	ops.post("/dispatch/discard", "reason",
		"over").want(http.StatusUnprocessableEntity).has("Select the dead letters to discard")
	ops.post("/dispatch/discard", "push", b.Push.ID, "reason", " ").want(http.StatusUnprocessableEntity)
	ops.post("/dispatch/discard", "push", b.Push.ID, "push", a.Push.ID, "reason", "ordered by phone").want(http.StatusOK).
		has("1 dead letter is discarded, 1 not", "no failure is open")
	root.post("/dispatch/replay", "push", b.Push.ID).want(http.StatusConflict).has("ordered by phone")
	root.get("/dispatch?tab=queue").want(http.StatusOK).has(testid("pushes-queued"))
}

// TestLargeDeadLettersEndTheirPageEarly: two hundred large payloads would make a page of two
// hundred megabytes, so the page ends early.
func TestLargeDeadLettersEndTheirPageEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	large := gatehouse.JSON(`{"text":"` + strings.Repeat("x", 900<<10) + `"}`)
	want := map[string]bool{}
	for range 6 {
		a := w.propose(bot, func(p *gatehouse.Proposal) { p.ProposedChange = large })
		want[w.settled(a, ana, gatehouse.PushFailed, "http_422", "no").Push.ID] = true
	}
	pages := 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		page, err := w.gate.ListDeadLetters(w.admin, gatehouse.DeadLetterFilter{Cursor: cursor, Limit: gatehouse.MaxLimit})
		if err != nil || len(page.Items) == 0 {
			t.Fatalf("page %d: %d items, %v", pages, len(page.Items), err)
		}
		for _, d := range page.Items {
			if !want[d.ID] {
				t.Errorf("%s comes twice, or from nowhere", d.ID)
			}
			delete(want, d.ID)
		}
		cursor = page.NextCursor
	}
	if len(want) > 0 || pages < 2 {
		t.Errorf("%d pages, %d missing", pages, len(want))
	}
}

func TestAuditPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	eve := w.signIn("eve", gatehouse.RoleAuditor)
	a := w.propose(bot, nil)
	w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-2" })
	w.number()

	ana.get("/audit").want(http.StatusForbidden)
	ana.post("/audit/check").want(http.StatusForbidden)
	eve.get("/audit").want(http.StatusOK).has("hitl.proposed", "session.started",
		"gatehouse audit verify --held head.json")
	eve.get("/audit?q="+a.ID).want(http.StatusOK).has("Entries of action", a.ID)
	if p := eve.get("/audit?q=0").want(http.StatusOK).has(`data-index="0"`); strings.Count(p.body, "data-index=") != 1 {
		t.Error("the page does not end with the entry asked for")
	}
	eve.get("/audit?q=act_none").want(http.StatusNotFound)
	eve.get("/audit?before=x").want(http.StatusUnprocessableEntity)
	eve.get("/audit?before=-5").want(http.StatusOK)
	eve.get("/audit?before=999999").want(http.StatusOK).has("hitl.proposed")
	eve.post("/audit/check").want(http.StatusOK).has("The log is consistent").lacks("The log is not consistent")

	w.damage(`DROP TRIGGER audit_leaf_frozen`,
		`UPDATE audit_leaf SET body = replace(body, 'hitl.proposed', 'hitl.denied')`)
	eve.post("/audit/check").want(http.StatusOK).has("The log is not consistent").lacks("The log is consistent")
}

// damage changes the database directly, without the gate.
func (w *world) damage(statements ...string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "gatehouse.db"))
	must(w.t, err)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestPolicyIsCheckedThenApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	root := w.signIn("root", gatehouse.RoleAdmin)
	active, err := w.gate.ActivePolicy(w.admin)
	must(t, err)
	ana.get("/policies").want(http.StatusOK).has("Version 1", "all passed").lacks(testid("policy-edit"))
	ana.get("/policies/edit").want(http.StatusForbidden)
	ana.post("/policies/apply", "source", active.Source, "base", "1").want(http.StatusForbidden)
	root.get("/policies/edit").want(http.StatusOK).has(testid("policy-text")).lacks(testid("policy-apply"))

	root.post("/policies/check", "source", "rules: [nonsense", "base",
		"1").want(http.StatusOK).has("error:").lacks(testid("policy-apply"))
	root.post("/policies/apply", "source", "rules: [nonsense", "base",
		"1").want(http.StatusUnprocessableEntity).has("was not applied")
	root.post("/policies/apply", "source", active.Source, "base",
		"1").want(http.StatusUnprocessableEntity).has("This is the active version already")
	if n := w.policies(); n != 1 {
		t.Fatalf("%d versions after refusals", n)
	}
	next := active.Source + "# a remark <script>\n"
	root.post("/policies/check", "source", next, "base", "1").want(http.StatusOK).has(testid("policy-apply"),
		"1 line added").lacks("<script>\n")
	root.post("/policies/apply", "source", next, "base", "1").want(http.StatusOK).has("Version 2")
	root.post("/policies/apply", "source", active.Source, "base",
		"1").want(http.StatusUnprocessableEntity).has("Version 2 became active meanwhile")
	root.get("/policies/1").want(http.StatusOK).has("Make version 1 the active one")
	root.post("/policies/1/activate").want(http.StatusOK).has("Version 1")
	root.get("/policies").want(http.StatusOK).has("Ceilings of the active policy").has("destructive-per-day")
	root.get("/policies/9").want(http.StatusNotFound).has(`href="/policies" ` + testid("way-out")).
		lacks("Search for the id")
	root.get("/docs/none").want(http.StatusNotFound).has(`href="/docs/README" ` + testid("way-out"))
	root.get("/policies/x").want(http.StatusNotFound)
}

func (w *world) policies() int {
	list, err := w.gate.ListPolicies(w.admin)
	must(w.t, err)
	return len(list)
}

func TestPolicyIsExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	a := w.propose(bot, nil)
	ana.get("/policies/explain").want(http.StatusOK).has(testid("explain-text"))
	ana.get("/policies/explain?action="+a.ID).want(http.StatusOK).has("supplier raised cost", testid("trace"))
	ana.get("/policies/explain?action=act_none").want(http.StatusNotFound)
	ana.post("/policies/explain", "proposal", `{"action_type":"price_change"`).want(http.StatusBadRequest)
	ana.post("/policies/explain", "proposal", `{"action_type":"price_change","nonsense":1}`).want(http.StatusBadRequest)
	ana.post("/policies/explain", "proposal",
		`{"action_type":"","connector":"shop","operation":"update","target":{},"proposed_change":{}}`).want(
		http.StatusUnprocessableEntity)
	ana.post("/policies/explain", "proposal",
		`{"action_type":"price_change","connector":"shop","operation":"update","target":{"entity_type":"item",`+
			`"entity_ref":"1"},"proposed_change":{"price":"1"}}`).
		want(http.StatusOK).has("People would be asked", testid("trace"))
}

// TestActionSaysWhy reads an action's page: which rules asked for approval, which facts they used,
// and where the risk level comes from. They belong to the version that judged the action, not to
// the one that is active since.
func TestActionSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	plain := w.propose(bot, nil)
	ana.get("/actions/"+plain.ID).want(http.StatusOK).
		has("No rule matched. A medium write (L3) needs approval.").
		has("the policy lists price_change (as bot calls it) with L3", "/policies/1\"").lacks(testid("ground"), "raises it")
	note := w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = "note" })
	ana.get("/actions/"+note.ID).want(http.StatusOK).has(`data-rule="safe-changes"`, "risk &lt;= 2",
		"the policy lists note (as bot calls it) with L1.")

	const source = "version: 1\nrisk: {price_change: 3, label: 1}\nrules:\n" +
		"  - {id: dear, when: 'has(change.price) && dec(change.price) > 12 && magnitude.amount > 1', then: needs_approval, " +
		"risk: 4}\n"
	if _, err := w.gate.ApplyPolicy(w.admin, source); err != nil {
		t.Fatal(err)
	}
	dear := w.propose(bot, func(p *gatehouse.Proposal) {
		p.Target.EntityRef, p.RiskLevel, p.Magnitude = "SKU-2", 2, &gatehouse.Magnitude{Amount: "2.50", Currency: "USD"}
	})
	if _, err := w.gate.ApplyPolicy(w.admin, "version: 1\nrisk: {price_change: 5}\n"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/actions/", "/inbox?open="} {
		ana.get(path+dear.ID).want(http.StatusOK).has(`data-rule="dear"`, "Rule dear decides needs_approval and L4 when",
			"dec(change.price) &gt; 12", "change.price &#34;12.50&#34;", "magnitude.amount 2.50", "/policies/2\"",
			"policy v2",
			"the policy lists price_change (as bot calls it) with L3; the proposer claimed L2; a rule raises it to L4. The "+
				"highest level applies.").lacks("with L5")
	}
	unlisted := w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType, p.Target.EntityRef = "reticulate", "SKU-3" })
	ana.get("/actions/"+unlisted.ID).want(http.StatusOK).has("does not list reticulate", "L3 at least")
}

func TestInsightsCountAndLead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot, other := w.agent("bot"), w.agent("other")
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ana.get("/insights").want(http.StatusOK).has("Nothing was proposed")
	for i, ref := range []string{"A", "B", "C"} {
		a := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = ref })
		d := gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}
		if i == 2 {
			d = gatehouse.Decision{Decision: gatehouse.Reject}
		}
		if _, err := w.gate.Decide(w.as(ana.creds), a.ID, d); err != nil {
			t.Fatal(err)
		}
	}
	w.propose(other, nil)
	w.propose(other, func(p *gatehouse.Proposal) { p.ActionType = "note" })

	p := ana.get("/insights").want(http.StatusOK).has("5 proposals", "67 % of 3",
		"status=rejected&amp;tab=decided&amp;to=", `data-name="note"`)
	p.has(testid("wait-chart"), testid("heat-map"), "risk=3").lacks(testid("replays"))
	must(t, w.gate.StoreDecisionCounts(t.Context()))
	ana.get("/insights?window=1d").want(http.StatusOK).has(testid("replays"), ">decide</th>", `<td class="num">3</td>`)
	// The counts of decisions link to their rows too.
	for how, rows := range map[string]string{
		"approved&amp;from": "A B", "people&amp;from": "A B C", "allowed&amp;from": "SKU-1042",
		"people&amp;from=[0-9]+&amp;status=rejected": "C",
	} {
		links := regexp.MustCompile(`href="(/inbox\?decided=`+how+`[^"]*)"`).FindAllStringSubmatch(p.body, -1)
		if !strings.Contains(how, "status") {
			links = slices.DeleteFunc(links, func(m []string) bool { return strings.Contains(m[1], "status=") })
		}
		if len(links) == 0 {
			t.Fatalf("no link to the decided actions: %s", how)
		}
		list := ana.get(html.UnescapeString(links[0][1])).want(http.StatusOK)
		for _, ref := range []string{"A", "B", "C", "SKU-1042"} {
			if in := slices.Contains(strings.Fields(rows), ref); strings.Contains(list.body, ">"+ref+"<") != in {
				t.Errorf("decided %s, %s is in the list: %v", how, ref, !in)
			}
		}
	}
	// A cell of the heat map links to its own rows: the same risk level and waiting time.
	w.advance(30 * time.Minute)
	w.propose(bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = "YOUNG" })
	p = ana.get("/insights").want(http.StatusOK)
	cells := regexp.MustCompile(`href="(/inbox\?[^"]*risk=3[^"]*)"`).FindAllStringSubmatch(p.body, -1)
	if len(cells) != 2 {
		t.Fatalf("%d cells of L3: %v", len(cells), cells)
	}
	ana.get(html.UnescapeString(cells[0][1])).want(http.StatusOK).has("YOUNG", "Proposed from ").lacks("SKU-1042")
	ana.get(html.UnescapeString(cells[1][1])).want(http.StatusOK).has("SKU-1042").lacks("YOUNG")
	ana.get("/insights?by=other&window=30d").want(http.StatusOK).has("2 proposals", "Only").lacks("67 %")
	ana.get("/insights?type=nothing").want(http.StatusOK).has("Nothing was proposed")
	ana.get("/insights?window=nonsense").want(http.StatusOK)
}
