package gate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

const withMandates = `version: 1
mandates: {up_to: 3, max_window: 7d}
`

// plans is a world with an agent and two approvers, and mandates allowed.
func plans(t *testing.T, more string) (w *world, bot, ana context.Context) {
	t.Helper()
	w = newWorld(t, withMandates+more)
	bot, ana = w.agent(), w.person("ana")
	w.person("ben")
	return w, bot, ana
}

func euro(amount gatehouse.Decimal) []gatehouse.Magnitude {
	return []gatehouse.Magnitude{{Amount: amount, Currency: "EUR"}}
}

// plan is one step: at most three refunds of 100 EUR together.
func plan(change func(*gatehouse.Plan)) gatehouse.Plan {
	p := gatehouse.Plan{
		Goal: "pay back the recalled lamps", For: gatehouse.Duration(48 * time.Hour),
		Steps: []gatehouse.PlanStep{{
			Cover: gatehouse.Cover{
				ActionType: "refund", Connector: "shop", Operation: "refund", EntityType: "item", When: "change.amount <= 50",
			},
			Limit: gatehouse.Limit{Count: 3, Amounts: euro("100")},
		}},
	}
	if change != nil {
		change(&p)
	}
	return p
}

// mandate proposes a plan and has people approve it.
func (w *world) mandate(bot context.Context, change func(*gatehouse.Plan), by ...context.Context) *gatehouse.Mandate {
	w.t.Helper()
	a, err := w.gate.ProposeMandate(bot, plan(change))
	must(w.t, err)
	for _, who := range by {
		if _, err := w.gate.Decide(who, a.ID, w.approving(a)); err != nil {
			w.t.Fatal(err)
		}
	}
	id, err := w.gate.StartMandate(w.t.Context(), a.Tenant, a.ID)
	must(w.t, err)
	return w.mandated(id)
}

func (w *world) mandated(id string) *gatehouse.Mandate {
	w.t.Helper()
	m, err := w.gate.FindMandate(w.admin, id)
	must(w.t, err)
	return m
}

// TestMandateApproves: people approve a plan once, as an L4 action that shows the worst case; the
// agent's later proposals within the plan are approved by their votes until it is used up, each
// with a log entry of the remaining limits.
func TestMandateApproves(t *testing.T) {
	t.Parallel()
	w, bot, ana := plans(t, "")
	a, err := w.gate.ProposeMandate(bot, plan(func(p *gatehouse.Plan) { p.PerDay = &gatehouse.Limit{Count: 9} }))
	must(t, err)
	const worst = "at most 3 actions by bot, EUR 100 in all, 9 actions and EUR 100 a day, up to L3, " +
		"until 2026-11-22 12:00:00 UTC: refund (refund of shop), 3 times, when change.amount <= 50"
	if a.Status != gatehouse.StatusPending || a.RiskLevel != gatehouse.L4 || a.Title != "Approve in advance: "+worst ||
		a.Rationale != "pay back the recalled lamps" || a.Approval.Confirm == nil || a.Approval.Confirm.Value != "3" {
		t.Errorf("the plan is %+v, to confirm %+v", a, a.Approval.Confirm)
	}
	w.wantStatus("a plan alone", w.refund(bot, "10", nil), gatehouse.StatusPending)
	if _, err := w.gate.StartMandate(t.Context(), a.Tenant, a.ID); err == nil {
		t.Error("a pending plan became a mandate")
	}
	if _, err := w.gate.Decide(ana, a.ID, w.approving(a)); err != nil {
		t.Fatal(err)
	}
	var id string
	for range 2 { // the second call returns the first one's result
		if id, err = w.gate.StartMandate(t.Context(), a.Tenant, a.ID); err != nil {
			t.Fatal(err)
		}
	}
	m := w.mandated(id)
	if m.Worst != worst || m.Action != a.ID || len(m.Voters) != 1 || m.Voters[0].Name != "ana" {
		t.Errorf("the mandate is %+v", m)
	}
	for range 3 {
		a := w.refund(bot, "10", nil)
		w.wantStatus("within the plan", a, gatehouse.StatusApproved)
		got := w.find(a.ID)
		v := got.Approval.Votes[0]
		if got.DecidedBy != "ana" || got.DecidedVia != gatehouse.ViaMandate || v.Grant != id || v.Digest != a.Digest ||
			got.Push == nil {
			t.Errorf("decided by %s via %s, with %+v", got.DecidedBy, got.DecidedVia, v)
		}
		if err := w.recheck(a.ID); err != nil {
			t.Errorf("at dispatch: %v", err)
		}
	}
	w.wantStatus("used up", w.refund(bot, "10", nil), gatehouse.StatusPending)
	m = w.mandated(id)
	if m.InAll.Used != 3 || m.EndReason != gatehouse.GrantUsedUp || m.InAll.UsedIn("EUR").Cmp("30") != 0 {
		t.Errorf("the mandate is %+v", m)
	}
	if n := w.leaves("mandate.used"); n != 3 || w.leaves("mandate.given") != 1 || w.leaves("mandate.ended") != 1 {
		t.Errorf("%d uses in the log", n)
	}
	for _, l := range w.entries() {
		if l.Type == "mandate.used" && !strings.Contains(string(l.Data), `"left":{"in_all":{"amounts":`) {
			t.Errorf("an entry does not have the remaining limits: %s", l.Data)
		}
	}
}

// TestMandateCovers: people decide on actions that differ from the plan.
func TestMandateCovers(t *testing.T) {
	t.Parallel()
	w, bot, ana := plans(t, "")
	other := w.principal("other", gatehouse.KindAgent, gatehouse.RoleProposer)
	m := w.mandate(bot, func(p *gatehouse.Plan) { p.Steps[0].Count, p.Steps[0].Keys = 90, []string{"SKU-1"} }, ana)
	asked := func(what string, a *gatehouse.Action) { t.Helper(); w.wantStatus(what, a, gatehouse.StatusPending) }
	w.wantStatus("within", w.refund(bot, "10", nil), gatehouse.StatusApproved)
	asked("the condition does not hold", w.refund(bot, "50.01", nil))
	asked("another currency", w.refund(bot, "10", func(p *gatehouse.Proposal) {
		p.ProposedChange = `{"amount":10,"currency":"USD"}`
	}))
	asked("another agent", w.refund(other, "10", nil))
	asked("another type", w.refund(bot, "10", func(p *gatehouse.Proposal) { p.ActionType = "payout" }))
	asked("another operation", w.refund(bot, "10", func(p *gatehouse.Proposal) { p.Operation = "update" }))
	asked("another connector", w.refund(bot, "10", func(p *gatehouse.Proposal) { p.Connector = "till" }))
	asked("another entity", w.refund(bot, "10", func(p *gatehouse.Proposal) { p.Target.EntityType = "order" }))
	asked("another key", w.refund(bot, "10", func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-2" }))
	asked("several keys", w.refund(bot, "10", func(p *gatehouse.Proposal) {
		p.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"SKU-1", "SKU-2"}}
	}))
	asked("for a voter", w.refund(bot, "10", func(p *gatehouse.Proposal) { p.OnBehalfOf = "ana" }))
	asked("a claim of more than is left", w.refund(bot, "10", func(p *gatehouse.Proposal) {
		p.Magnitude = &gatehouse.Magnitude{Amount: "91", Currency: "EUR"}
	}))
	w.targets.fingerprint = "f2"
	asked("an edited connector", w.refund(bot, "10", nil))
	w.targets.fingerprint = "f1"
	w.wantStatus("50", w.refund(bot, "50", nil), gatehouse.StatusApproved)
	asked("more money than is left", w.refund(bot, "41", nil))
	w.wantStatus("40", w.refund(bot, "40", nil), gatehouse.StatusApproved)
	if got := w.mandated(m.ID); got.InAll.Used != 3 || got.InAll.UsedIn("EUR").Cmp("100") != 0 {
		t.Errorf("used %+v", got.InAll)
	}
}

// TestMandateBudgets: a step, all steps together and each day have their own limits; a new day
// starts at zero.
func TestMandateBudgets(t *testing.T) {
	t.Parallel()
	w, bot, ana := plans(t, "")
	note := func() *gatehouse.Action {
		return w.refund(bot, "", func(p *gatehouse.Proposal) {
			p.ActionType, p.Operation, p.ProposedChange = "note", "update", `{"title":"blue"}`
		})
	}
	m := w.mandate(bot, func(p *gatehouse.Plan) {
		p.Steps = append(p.Steps, gatehouse.PlanStep{
			Cover: gatehouse.Cover{ActionType: "note", Connector: "shop", Operation: "update", EntityType: "item"},
			Limit: gatehouse.Limit{Count: 9},
		})
		p.InAll, p.PerDay = &gatehouse.Limit{Count: 6, Amounts: euro("90")}, &gatehouse.Limit{Count: 3, Amounts: euro("60")}
	}, ana)
	w.wantStatus("50", w.refund(bot, "50", nil), gatehouse.StatusApproved)
	w.wantStatus("too much for a day", w.refund(bot, "11", nil), gatehouse.StatusPending)
	w.wantStatus("a note", note(), gatehouse.StatusApproved)
	w.wantStatus("10", w.refund(bot, "10", nil), gatehouse.StatusApproved)
	w.wantStatus("the fourth of the day", note(), gatehouse.StatusPending)
	w.clock.Advance(24 * time.Hour)
	w.wantStatus("too much in all", w.refund(bot, "31", nil), gatehouse.StatusPending)
	w.wantStatus("30 on the next day", w.refund(bot, "30", nil), gatehouse.StatusApproved)
	w.wantStatus("the fourth of the step", w.refund(bot, "0.01", nil), gatehouse.StatusPending)
	w.wantStatus("a second note", note(), gatehouse.StatusApproved)
	got := w.mandated(m.ID)
	if got.Steps[0].Used != 3 || got.Steps[1].Used != 2 || got.InAll.Used != 5 || got.PerDay.Used != 2 ||
		got.Day != "2026-11-21" {
		t.Errorf("used %+v", got)
	}
	w.wantStatus("the sixth in all", note(), gatehouse.StatusApproved)
	w.wantStatus("the seventh", note(), gatehouse.StatusPending)
}

// TestMandateUnderRules: the rules of the active policy come first: a deny denies and a higher
// level asks, and both end the mandate; if they ask for two people, only a mandate of two voters
// approves.
func TestMandateUnderRules(t *testing.T) {
	t.Parallel()
	for then, want := range map[string]struct {
		status gatehouse.Status
		end    gatehouse.GrantEnd
	}{
		"deny":                          {gatehouse.StatusDenied, gatehouse.GrantPolicy},
		"needs_approval, risk: 4":       {gatehouse.StatusPending, gatehouse.GrantPolicy},
		"needs_approval, required: 2":   {gatehouse.StatusPending, ""},
		"needs_approval, people: [ben]": {gatehouse.StatusPending, ""},
		"needs_approval, people: [ana]": {gatehouse.StatusApproved, ""},
	} {
		w, bot, ana := plans(t, "rules: [{id: r, when: 'action.type == \"refund\" && change.amount > 30', then: "+then+"}]\n")
		m := w.mandate(bot, nil, ana)
		w.wantStatus(then+", below", w.refund(bot, "20", nil), gatehouse.StatusApproved)
		w.wantStatus(then, w.refund(bot, "40", nil), want.status)
		if got := w.mandated(m.ID); got.EndReason != want.end {
			t.Errorf("%s: ended by %q, want %q", then, got.EndReason, want.end)
		}
	}

	w := newWorld(t, withMandates+"approvals: {4: {required: 2}}\n"+
		"rules: [{id: r, when: 'action.type == \"refund\"', then: needs_approval, required: 2}]\n")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	w.mandate(bot, nil, ana, ben)
	a := w.refund(bot, "20", nil)
	w.wantStatus("by two voters", a, gatehouse.StatusApproved)
	if a.Approval.Approvals() != 2 {
		t.Errorf("%d votes", a.Approval.Approvals())
	}
	if err := w.recheck(a.ID); err != nil {
		t.Errorf("at dispatch: %v", err)
	}
}

// TestMandateOfL4: a plan with exact records covers L4 if the policy allows it.
func TestMandateOfL4(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\nmandates: {up_to: 4}\nrisk: {refund: 4}\n")
	bot, ana := w.agent(), w.person("ana")
	bare := plan(func(p *gatehouse.Plan) { p.MaxLevel = gatehouse.L4 })
	_, err := w.gate.ProposeMandate(bot, bare)
	w.wantCode("without keys", gatehouse.CodeOf(err), gatehouse.CodeInvalid)
	w.mandate(bot, func(p *gatehouse.Plan) {
		p.MaxLevel, p.Steps[0].Keys = gatehouse.L4, []string{"SKU-1"}
	}, ana)
	a := w.refund(bot, "20", nil)
	w.wantStatus("an exact record", a, gatehouse.StatusApproved)
	if a.RiskLevel != gatehouse.L4 {
		t.Errorf("at %s", a.RiskLevel)
	}
}

// TestMandateUnderCeiling: if a ceiling is full, people are asked and the mandate is not used.
func TestMandateUnderCeiling(t *testing.T) {
	t.Parallel()
	w, bot, ana := plans(t,
		"ceilings: [{name: one, per: tenant, window: 1h, count: 1, when: 'action.type == \"refund\"'}]\n")
	m := w.mandate(bot, nil, ana)
	w.wantStatus("below the ceiling", w.refund(bot, "10", nil), gatehouse.StatusApproved)
	w.wantStatus("at the ceiling", w.refund(bot, "10", nil), gatehouse.StatusPending)
	if got := w.mandated(m.ID); got.InAll.Used != 1 {
		t.Errorf("used %d", got.InAll.Used)
	}
}

// TestMandateEnds: a mandate ends at once with its time, when it is revoked, when a voter loses the
// right, and under a policy without mandates; it does not return.
func TestMandateEnds(t *testing.T) {
	t.Parallel()
	disable := func(w *world, who string, off bool) error {
		_, err := w.gate.UpdatePrincipal(w.admin, who, gatehouse.PrincipalChange{Disabled: &off})
		return err
	}
	apply := func(w *world, source string) error { _, err := w.gate.ApplyPolicy(w.admin, source); return err }
	for name, c := range map[string]struct {
		end, back func(w *world, id string) error
		why       gatehouse.GrantEnd
	}{
		"expired": {end: func(w *world, _ string) error { w.clock.Advance(48 * time.Hour); return nil }},
		"revoked": {end: func(w *world, id string) error { _, err := w.gate.RevokeMandate(w.admin, id); return err },
			why: gatehouse.GrantRevoked},
		"a voter disabled": {func(w *world, _ string) error { return disable(w, "ana", true) },
			func(w *world, _ string) error { return disable(w, "ana", false) }, gatehouse.GrantRightLost},
		"the agent disabled": {func(w *world, _ string) error { return disable(w, "bot", true) },
			func(w *world, _ string) error { return disable(w, "bot", false) }, gatehouse.GrantRightLost},
		"no mandates": {func(w *world, _ string) error { return apply(w, "version: 1\ngrants: {up_to: 3}\n") },
			func(w *world, _ string) error { return apply(w, withMandates) }, gatehouse.GrantPolicy},
	} {
		w, bot, ana := plans(t, "")
		m := w.mandate(bot, nil, ana)
		w.wantStatus(name+", before", w.refund(bot, "10", nil), gatehouse.StatusApproved)
		if err := c.end(w, m.ID); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := w.mandated(m.ID); got.EndReason != c.why {
			t.Errorf("%s: ended by %q", name, got.EndReason)
		}
		w.wantStatus(name, w.refund(bot, "10", nil), gatehouse.StatusPending)
		if c.back != nil {
			if err := c.back(w, m.ID); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			w.wantStatus(name+", and back", w.refund(bot, "10", nil), gatehouse.StatusPending)
		}
	}

	w, bot, ana := plans(t, "")
	m := w.mandate(bot, nil, ana)
	must(t, apply(w, "version: 1\nmandates: {up_to: 3, max_window: 24h}\n"))
	w.wantStatus("longer than allowed", w.refund(bot, "10", nil), gatehouse.StatusPending)
	if got := w.mandated(m.ID); got.EndReason != gatehouse.GrantPolicy {
		t.Errorf("ended by %q", got.EndReason)
	}
}

// TestMandatePauses: a mandate that the dispatcher or an approver has paused approves nothing until an
// approver resumes it; the agent's sponsor can pause it, but not resume it. Nobody resumes an expired one.
func TestMandatePauses(t *testing.T) {
	t.Parallel()
	w, bot, ana := plans(t, "")
	m := w.mandate(bot, func(p *gatehouse.Plan) { p.Steps[0].Count = 9 }, ana)
	a := w.refund(bot, "10", nil)
	w.wantStatus("before", a, gatehouse.StatusApproved)
	err := w.store.Update(t.Context(), a.Tenant, func(tx gatehouse.Tx) error {
		return gate.PauseFailed(tx, w.find(a.ID), "dispatcher")
	})
	must(t, err)
	got := w.mandated(m.ID)
	if got.PausedAction != a.ID || got.State(w.clock.Now()) != "paused" || w.leaves("mandate.paused") != 1 {
		t.Errorf("the mandate is %+v", got)
	}
	w.wantStatus("paused", w.refund(bot, "10", nil), gatehouse.StatusPending)
	sponsor := "ben"
	if _, err := w.gate.UpdatePrincipal(w.admin, "bot", gatehouse.PrincipalChange{Sponsor: &sponsor}); err != nil {
		t.Fatal(err)
	}
	people, err := w.gate.FindPrincipal(w.admin, "ben")
	must(t, err)
	ben := gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: people, StepUp: true, Via: gatehouse.ViaAPI})
	_, err = w.gate.ResumeMandate(ben, m.ID)
	w.wantCode("resumed by the sponsor", gatehouse.CodeOf(err), gatehouse.CodeSelfApproval)
	if _, err := w.gate.ResumeMandate(ana, m.ID); err != nil {
		t.Fatal(err)
	}
	w.wantStatus("resumed", w.refund(bot, "10", nil), gatehouse.StatusApproved)
	if got, err := w.gate.PauseMandate(ben, m.ID); err != nil || got.PausedBy != "ben" {
		t.Errorf("paused: %+v, %v", got, err)
	}
	w.wantStatus("paused by an approver", w.refund(bot, "10", nil), gatehouse.StatusPending)

	w.clock.Advance(m.ExpiresAt.Sub(w.clock.Now()))
	if got, err := w.gate.ResumeMandate(ana, m.ID); err != nil || got.PausedAt == nil || w.leaves("mandate.resumed") != 1 {
		t.Errorf("resumed after its end: %+v, %v", got, err)
	}
}

// TestMandateNarrows: limits are lowered at once, and never raised.
func TestMandateNarrows(t *testing.T) {
	t.Parallel()
	w, bot, ana := plans(t, "")
	m := w.mandate(bot, func(p *gatehouse.Plan) { p.Steps[0].Count = 9 }, ana)
	w.wantStatus("before", w.refund(bot, "10", nil), gatehouse.StatusApproved)
	one, ten, later := 1, 10, m.ExpiresAt.Add(time.Second)
	for what, n := range map[string]gatehouse.Narrowing{
		"nothing":       {},
		"more":          {InAll: &gatehouse.LowerLimit{Count: &ten}},
		"more money":    {InAll: &gatehouse.LowerLimit{Amounts: euro("100.01")}},
		"other money":   {InAll: &gatehouse.LowerLimit{Amounts: []gatehouse.Magnitude{{Amount: "1", Currency: "USD"}}}},
		"more each day": {PerDay: &gatehouse.LowerLimit{Count: &ten}},
		"more of a step": {Steps: []gatehouse.StepNarrowing{
			{Step: 1, LowerLimit: gatehouse.LowerLimit{Count: &ten}},
		}},
		"no step": {Steps: []gatehouse.StepNarrowing{{Step: 2, LowerLimit: gatehouse.LowerLimit{Count: &one}}}},
		"longer":  {Until: &later},
		"over":    {Until: &m.CreatedAt},
	} {
		_, err := w.gate.NarrowMandate(ana, m.ID, n)
		w.wantCode(what, gatehouse.CodeOf(err), gatehouse.CodeInvalid)
	}
	lower := gatehouse.Narrowing{InAll: &gatehouse.LowerLimit{Count: &one}}
	_, err := w.gate.NarrowMandate(bot, m.ID, lower)
	w.wantCode("by the agent", gatehouse.CodeOf(err), gatehouse.CodeRoleRequired)
	caller, err := gatehouse.CallerFrom(ana)
	must(t, err)
	plain := *caller
	plain.StepUp = false
	_, err = w.gate.NarrowMandate(gatehouse.NewContext(t.Context(), &plain), m.ID, lower)
	w.wantCode("without the edit token", gatehouse.CodeOf(err), gatehouse.CodeEditTokenRequired)
	n := gatehouse.Narrowing{
		PerDay: &gatehouse.LowerLimit{Amounts: euro("20")},
		Steps:  []gatehouse.StepNarrowing{{Step: 1, LowerLimit: gatehouse.LowerLimit{Amounts: euro("80")}}},
	}
	if _, err := w.gate.NarrowMandate(ana, m.ID, n); err != nil {
		t.Fatal(err)
	}
	w.wantStatus("the day's 20", w.refund(bot, "20", nil), gatehouse.StatusApproved)
	w.wantStatus("more than the day's", w.refund(bot, "1", nil), gatehouse.StatusPending)
	if _, err := w.gate.NarrowMandate(ana, m.ID, lower); err != nil {
		t.Fatal(err)
	}
	if got := w.mandated(m.ID); got.EndReason != gatehouse.GrantUsedUp {
		t.Errorf("narrowed below what was used, it is %+v", got)
	}

	w, bot, ana = plans(t, "")
	m = w.mandate(bot, nil, ana)
	w.clock.Advance(48 * time.Hour)
	_, err = w.gate.NarrowMandate(ana, m.ID, lower)
	w.wantCode("expired", gatehouse.CodeOf(err), gatehouse.CodeInvalid)
}

// TestMandateRefused: a plan with forbidden steps is refused when it is proposed, and an outdated
// plan when it is carried out.
func TestMandateRefused(t *testing.T) {
	t.Parallel()
	w, bot, _ := plans(t, "")
	pam := w.principal("pam", gatehouse.KindPerson, gatehouse.RoleProposer)
	_, err := w.gate.ProposeMandate(pam, plan(nil))
	w.wantCode("a person", gatehouse.CodeOf(err), gatehouse.CodeRoleRequired)
	for what, change := range map[string]func(*gatehouse.Plan){
		"no goal":                  func(p *gatehouse.Plan) { p.Goal = " " },
		"no steps":                 func(p *gatehouse.Plan) { p.Steps = nil },
		"L4":                       func(p *gatehouse.Plan) { p.MaxLevel, p.Steps[0].Keys = gatehouse.L4, []string{"x"} },
		"L5":                       func(p *gatehouse.Plan) { p.MaxLevel = gatehouse.L5 },
		"longer than the policy's": func(p *gatehouse.Plan) { p.For = gatehouse.Duration(169 * time.Hour) },
		"a bad condition":          func(p *gatehouse.Plan) { p.Steps[0].When = "change.amount <=" },
		"no count":                 func(p *gatehouse.Plan) { p.Steps[0].Count = 0 },
		"a bad amount":             func(p *gatehouse.Plan) { p.Steps[0].Amounts[0].Amount = "-1" },
		"an unknown operation":     func(p *gatehouse.Plan) { p.Steps[0].Operation = "none" },
		"a policy":                 func(p *gatehouse.Plan) { p.Steps[0].Connector = gate.PolicyConnector },
		"a fingerprint":            func(p *gatehouse.Plan) { p.Steps[0].Fingerprint = "f2" },
		"too much in all":          func(p *gatehouse.Plan) { p.InAll = &gatehouse.Limit{Count: 1001} },
		"too much in its steps": func(p *gatehouse.Plan) {
			p.Steps = []gatehouse.PlanStep{p.Steps[0], p.Steps[0]}
			p.Steps[0].Count, p.Steps[1].Count = 1000, 1
		},
	} {
		_, err := w.gate.ProposeMandate(bot, plan(change))
		w.wantCode(what, gatehouse.CodeOf(err), gatehouse.CodeInvalid)
	}
	_, _, err = w.gate.Propose(bot, proposal(func(p *gatehouse.Proposal) {
		p.Connector, p.Operation = gate.PolicyConnector, gate.MandateOperation
	}))
	w.wantCode("by hand", gatehouse.CodeOf(err), gatehouse.CodeInvalid)

	for what, c := range map[string]struct {
		change func()
		code   gatehouse.Code
	}{
		"an edited connector": {func() { w.targets.fingerprint = "f2" }, gatehouse.CodeTargetChanged},
		"its time is over":    {func() { w.clock.Advance(49 * time.Hour) }, gatehouse.CodeInvalid},
		"a higher floor":      {func() { w.targets.floor = gatehouse.L4 }, gatehouse.CodeInvalid},
		"no mandates": {func() {
			_, err := w.gate.ApplyPolicy(w.admin, "version: 1\n")
			must(t, err)
		}, gatehouse.CodeInvalid},
	} {
		var ana context.Context
		w, bot, ana = plans(t, "")
		a, err := w.gate.ProposeMandate(bot, plan(nil))
		must(t, err)
		if _, err := w.gate.Decide(ana, a.ID, w.approving(a)); err != nil {
			t.Fatal(err)
		}
		c.change()
		_, err = w.gate.StartMandate(t.Context(), a.Tenant, a.ID)
		w.wantCode(what, gatehouse.CodeOf(err), c.code)
	}
	w = newWorld(t, "")
	_, err = w.gate.ProposeMandate(w.agent(), plan(nil))
	w.wantCode("under the default policy", gatehouse.CodeOf(err), gatehouse.CodeInvalid)
}

// TestMandateRead: an agent reads only its own mandates.
func TestMandateRead(t *testing.T) {
	t.Parallel()
	w, bot, ana := plans(t, "")
	other := w.principal("other", gatehouse.KindAgent, gatehouse.RoleProposer)
	m := w.mandate(bot, nil, ana)
	if list, err := w.gate.ListMandates(bot); err != nil || len(list) != 1 {
		t.Errorf("its own: %v, %v", list, err)
	}
	if list, err := w.gate.ListMandates(other); err != nil || len(list) != 0 {
		t.Errorf("another's: %v, %v", list, err)
	}
	_, err := w.gate.FindMandate(other, m.ID)
	w.wantCode("another's", gatehouse.CodeOf(err), gatehouse.CodeNotFound)
	_, err = w.gate.ListMandates(w.principal("vic", gatehouse.KindPerson, gatehouse.RoleViewer))
	w.wantCode("a viewer", gatehouse.CodeOf(err), gatehouse.CodeRoleRequired)
}

// TestMandateExplained: explain reports what the caller's mandate would approve, without using it.
func TestMandateExplained(t *testing.T) {
	t.Parallel()
	w, bot, ana := plans(t, "")
	m := w.mandate(bot, nil, ana)
	for amount, want := range map[string]string{"10": m.ID, "51": ""} {
		e, err := w.gate.ExplainPolicy(bot, proposal(func(p *gatehouse.Proposal) {
			p.ActionType, p.Operation, p.CurrentState = "refund", "refund", ""
			p.ProposedChange = gatehouse.JSON(fmt.Sprintf(`{"amount":%s,"currency":"EUR"}`, amount))
		}))
		if err != nil || e.CoveredBy != want {
			t.Errorf("%s: covered by %q, %v", amount, e.CoveredBy, err)
		}
	}
	if got := w.mandated(m.ID); got.InAll.Used != 0 {
		t.Errorf("used %d", got.InAll.Used)
	}
}

// TestMandateEndsMeanwhile: a mandate that covers a proposal when the policy judges it, but ends or is
// paused before the proposal is stored, approves nothing.
func TestMandateEndsMeanwhile(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(w *world, id string) error{
		"expired": func(w *world, _ string) error { w.clock.Advance(48 * time.Hour); return nil },
		"revoked": func(w *world, id string) error { _, err := w.gate.RevokeMandate(w.admin, id); return err },
		"paused":  func(w *world, id string) error { _, err := w.gate.PauseMandate(w.admin, id); return err },
	} {
		w, bot, ana := plans(t, "")
		m := w.mandate(bot, nil, ana)
		w.gate.Store = &late{w.store, func() {
			w.gate.Store = w.store
			if err := meanwhile(w, m.ID); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}}
		w.wantStatus(name, w.refund(bot, "10", nil), gatehouse.StatusPending)
	}
}

// TestMandateVoterGone: a mandate ends when it is used while one of its voters is disabled, even if the
// disabling did not end it.
func TestMandateVoterGone(t *testing.T) {
	t.Parallel()
	w, bot, ana := plans(t, "")
	m := w.mandate(bot, nil, ana)
	err := w.store.Update(t.Context(), m.Tenant, func(tx gatehouse.Tx) error {
		p, err := tx.FindPrincipal("ana")
		if err != nil {
			return err
		}
		p.Disabled = true
		return tx.UpdatePrincipal(p)
	})
	must(t, err)
	w.wantStatus("without the voter", w.refund(bot, "10", nil), gatehouse.StatusPending)
	if got := w.mandated(m.ID); got.EndReason != gatehouse.GrantRightLost {
		t.Errorf("ended by %q", got.EndReason)
	}
}
