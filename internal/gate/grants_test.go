package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const withGrants = `version: 1
grants: {up_to: 3, max_window: 4h}
`

// refunds is a world with an agent and an approver, and grants allowed.
func refunds(t *testing.T, more string) (w *world, bot, ana context.Context) {
	t.Helper()
	w = newWorld(t, withGrants+more)
	return w, w.agent(), w.person("ana")
}

func newGrant(change func(*gatehouse.NewGrant)) gatehouse.NewGrant {
	n := gatehouse.NewGrant{
		Agent: "bot", Connector: "shop", Operation: "refund", When: "change.amount <= 50",
		For: gatehouse.Duration(time.Hour),
	}
	n.Count, n.Amounts = 3, []gatehouse.Magnitude{{Amount: "100", Currency: "EUR"}}
	if change != nil {
		change(&n)
	}
	return n
}

func (w *world) grant(who context.Context, change func(*gatehouse.NewGrant)) *gatehouse.Grant {
	w.t.Helper()
	g, err := w.gate.CreateGrant(who, newGrant(change))
	must(w.t, err)
	return g
}

func (w *world) granted(id string) *gatehouse.Grant {
	w.t.Helper()
	g, err := w.gate.FindGrant(w.admin, id)
	must(w.t, err)
	return g
}

// refund proposes to refund an amount of EUR.
func (w *world) refund(bot context.Context, amount string, change func(*gatehouse.Proposal)) *gatehouse.Action {
	w.t.Helper()
	return w.propose(bot, func(p *gatehouse.Proposal) {
		p.ActionType, p.Operation, p.CurrentState = "refund", "refund", ""
		p.ProposedChange = gatehouse.JSON(fmt.Sprintf(`{"amount":%s,"currency":"EUR"}`, amount))
		if change != nil {
			change(p)
		}
	})
}

func (w *world) wantStatus(what string, a *gatehouse.Action, want gatehouse.Status) {
	w.t.Helper()
	if a.Status != want {
		w.t.Errorf("%s: %s, want %s (%v)", what, a.Status, want, a.Policy.Reasons)
	}
}

// TestGrantApproves: a covered action is approved when it is proposed, by a vote of the grantor
// that names the grant, until the count is used up.
func TestGrantApproves(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	w.wantStatus("without a grant", w.refund(bot, "10", nil), gatehouse.StatusPending)
	g := w.grant(ana, nil)
	const worst = "at most 3 times: refund of shop by bot, EUR 100 in all, up to L3, until 2026-11-20 13:00:00 UTC"
	if g.Worst != worst {
		t.Errorf("worst case %q", g.Worst)
	}
	for range 3 {
		a := w.refund(bot, "10", nil)
		w.wantStatus("with a grant", a, gatehouse.StatusApproved)
		got := w.find(a.ID)
		v := got.Approval.Votes[0]
		if got.DecidedBy != "ana" || got.DecidedVia != gatehouse.ViaGrant || v.Grant != g.ID || v.Name != "ana" ||
			v.Digest != a.Digest || got.Push == nil {
			t.Errorf("decided by %s via %s, with %+v", got.DecidedBy, got.DecidedVia, v)
		}
		if err := w.recheck(a.ID); err != nil {
			t.Errorf("at dispatch: %v", err)
		}
	}
	w.wantStatus("used up", w.refund(bot, "10", nil), gatehouse.StatusPending)
	got := w.granted(g.ID)
	if got.Used != 3 || got.EndReason != gatehouse.GrantUsedUp || got.UsedAmounts[0].Amount.Cmp("30") != 0 {
		t.Errorf("the grant is %+v", got)
	}
}

// TestGrantCovers: people decide on actions that differ from the grant.
func TestGrantCovers(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "risk: {destroy: 4}\n")
	other := w.principal("other", gatehouse.KindAgent, gatehouse.RoleProposer)
	g := w.grant(ana, func(n *gatehouse.NewGrant) { n.Count = 100 })
	asked := func(what string, a *gatehouse.Action) { t.Helper(); w.wantStatus(what, a, gatehouse.StatusPending) }
	change := func(text string) func(*gatehouse.Proposal) {
		return func(p *gatehouse.Proposal) { p.ProposedChange = gatehouse.JSON(text) }
	}
	asked("the condition does not hold", w.refund(bot, "50.01", nil))
	asked("the condition cannot be read", w.refund(bot, "10", change(`{"total":10,"currency":"EUR"}`)))
	asked("another currency", w.refund(bot, "10", change(`{"amount":10,"currency":"USD"}`)))
	asked("another currency, of another name", w.refund(bot, "10", change(`{"amount":10,"ccy":"KWD"}`)))
	asked("another currency before", w.refund(bot, "10", func(p *gatehouse.Proposal) {
		p.ProposedChange, p.CurrentState = `{"amount":10}`, `{"amount":9,"unit":"kwd"}`
	}))
	asked("another agent", w.refund(other, "10", nil))
	asked("another operation", w.refund(bot, "10", func(p *gatehouse.Proposal) { p.Operation = "update" }))
	asked("another connector", w.refund(bot, "10", func(p *gatehouse.Proposal) { p.Connector = "till" }))
	asked("several targets", w.refund(bot, "10", func(p *gatehouse.Proposal) {
		p.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"SKU-1", "SKU-2"}}
	}))
	asked("a claim of more than is left", w.refund(bot, "10", func(p *gatehouse.Proposal) {
		p.Magnitude = &gatehouse.Magnitude{Amount: "101", Currency: "EUR"}
	}))
	asked("a claim in another currency", w.refund(bot, "10", func(p *gatehouse.Proposal) {
		p.Magnitude = &gatehouse.Magnitude{Amount: "1", Currency: "USD"}
	}))
	asked("for the grantor", w.refund(bot, "10", func(p *gatehouse.Proposal) { p.OnBehalfOf = "ana" }))
	w.targets.fingerprint = "f2"
	asked("an edited connector", w.refund(bot, "10", nil))
	w.targets.fingerprint = "f1"

	// The proposer's claim of the present state does not reduce the amount.
	a := w.refund(bot, "10", func(p *gatehouse.Proposal) { p.CurrentState = `{"amount":9.99,"currency":"EUR"}` })
	w.wantStatus("with a present state", a, gatehouse.StatusApproved)
	if got := w.granted(g.ID); got.Used != 1 || got.UsedAmounts[0].Amount.Cmp("10") != 0 {
		t.Errorf("used %d, %v", got.Used, got.UsedAmounts)
	}
	// An amount without a currency counts in the grant's only currency.
	w.wantStatus("40", w.refund(bot, "40", change(`{"amount":40,"sku":"ABC"}`)), gatehouse.StatusApproved)
	w.wantStatus("50", w.refund(bot, "50", nil), gatehouse.StatusApproved)
	asked("the amount is used up", w.refund(bot, "0.01", nil))
}

// TestGrantOfTwoCurrencies: each has its own limit, and people decide on an amount without a
// currency.
func TestGrantOfTwoCurrencies(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	w.grant(ana, func(n *gatehouse.NewGrant) {
		n.Amounts = append(n.Amounts, gatehouse.Magnitude{Amount: "5", Currency: "USD"})
	})
	refund := func(text string) *gatehouse.Action {
		return w.refund(bot, "1", func(p *gatehouse.Proposal) { p.ProposedChange = gatehouse.JSON(text) })
	}
	w.wantStatus("in USD", refund(`{"amount":5,"currency":"USD"}`), gatehouse.StatusApproved)
	w.wantStatus("more USD", refund(`{"amount":1,"currency":"USD"}`), gatehouse.StatusPending)
	w.wantStatus("without a currency", refund(`{"amount":1}`), gatehouse.StatusPending)
	w.wantStatus("in EUR", refund(`{"amount":50,"currency":"EUR"}`), gatehouse.StatusApproved)
}

// TestGrantWithoutMoney: a grant without amounts covers no action that moves money, and a grant
// with amounts covers no action without money.
func TestGrantWithoutMoney(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	w.grant(ana, func(n *gatehouse.NewGrant) { n.When, n.Amounts = "true", nil })
	note := w.refund(bot, "", func(p *gatehouse.Proposal) { p.ProposedChange = `{"title":"blue"}` })
	w.wantStatus("without money", note, gatehouse.StatusApproved)
	w.wantStatus("with money", w.refund(bot, "1", nil), gatehouse.StatusPending)

	w, bot, ana = refunds(t, "")
	w.grant(ana, func(n *gatehouse.NewGrant) { n.When = "true" })
	note = w.refund(bot, "", func(p *gatehouse.Proposal) { p.ProposedChange = `{"title":"blue"}` })
	w.wantStatus("money that cannot be read", note, gatehouse.StatusPending)
}

// TestGrantUnderRules: the rules of the active policy come first: a deny denies, a higher level
// asks, and both end the grant; if the rules ask for two people, or for others, people are asked.
func TestGrantUnderRules(t *testing.T) {
	t.Parallel()
	rule := func(then string) string {
		return "rules: [{id: r, when: \"change.amount > 30\", then: " + then + "}]\n"
	}
	for then, want := range map[string]struct {
		status gatehouse.Status
		end    gatehouse.GrantEnd
	}{
		"deny":                                   {gatehouse.StatusDenied, gatehouse.GrantPolicy},
		"needs_approval, risk: 4":                {gatehouse.StatusPending, gatehouse.GrantPolicy},
		"needs_approval, required: 2":            {gatehouse.StatusPending, ""},
		"needs_approval, people: [ben]":          {gatehouse.StatusPending, ""},
		"needs_approval, people: [ana]":          {gatehouse.StatusApproved, ""},
		"needs_approval, reason: a large refund": {gatehouse.StatusApproved, ""},
	} {
		w, bot, ana := refunds(t, rule(then))
		w.person("ben")
		g := w.grant(ana, nil)
		w.wantStatus(then+", below", w.refund(bot, "20", nil), gatehouse.StatusApproved)
		w.wantStatus(then, w.refund(bot, "40", nil), want.status)
		if got := w.granted(g.ID); got.EndReason != want.end {
			t.Errorf("%s: the grant ended by %q, want %q", then, got.EndReason, want.end)
		}
		after := gatehouse.StatusApproved
		if want.end != "" {
			after = gatehouse.StatusPending
		}
		w.wantStatus(then+", after", w.refund(bot, "20", nil), after)
	}
}

// TestGrantOfLongWindow: a new policy with a shorter maximum duration ends longer grants when they
// are used.
func TestGrantOfLongWindow(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	g := w.grant(ana, nil)
	if _, err := w.gate.ApplyPolicy(w.admin, "version: 1\ngrants: {up_to: 3, max_window: 59m}\n"); err != nil {
		t.Fatal(err)
	}
	w.wantStatus("longer than allowed", w.refund(bot, "10", nil), gatehouse.StatusPending)
	if got := w.granted(g.ID); got.EndReason != gatehouse.GrantPolicy {
		t.Errorf("ended by %q", got.EndReason)
	}
}

// TestGrantUnderCeiling: each use counts under the ceilings; if a ceiling is full, people are asked
// and the grant is not used.
func TestGrantUnderCeiling(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "ceilings: [{name: two, per: tenant, window: 1h, count: 2}]\n")
	g := w.grant(ana, nil)
	for range 2 {
		w.wantStatus("below the ceiling", w.refund(bot, "10", nil), gatehouse.StatusApproved)
	}
	w.wantStatus("at the ceiling", w.refund(bot, "10", nil), gatehouse.StatusPending)
	if got := w.granted(g.ID); got.Used != 2 {
		t.Errorf("used %d", got.Used)
	}
}

// TestGrantEnds: a grant ends at once with its time, when it is revoked, when the grantor loses the
// right, and under a policy without grants; it does not return.
func TestGrantEnds(t *testing.T) {
	t.Parallel()
	off, on := true, false
	disable := func(who string, to *bool) func(*world) error {
		return func(w *world) error {
			_, err := w.gate.UpdatePrincipal(w.admin, who, gatehouse.PrincipalChange{Disabled: to})
			return err
		}
	}
	roles := func(list ...gatehouse.Role) func(*world) error {
		return func(w *world) error {
			_, err := w.gate.UpdatePrincipal(w.admin, "ana", gatehouse.PrincipalChange{Roles: &list})
			return err
		}
	}
	apply := func(source string) func(*world) error {
		return func(w *world) error { _, err := w.gate.ApplyPolicy(w.admin, source); return err }
	}
	activate := func(version int) func(*world) error {
		return func(w *world) error { _, err := w.gate.ActivatePolicy(w.admin, version); return err }
	}
	for name, c := range map[string]struct {
		end, back func(*world) error
		why       gatehouse.GrantEnd
	}{
		"expired": {end: func(w *world) error { w.clock.Advance(time.Hour); return nil }},
		"revoked": {end: func(w *world) error {
			list, err := w.gate.ListGrants(w.admin)
			if err == nil {
				_, err = w.gate.RevokeGrant(w.admin, list[0].ID)
			}
			return err
		}, why: gatehouse.GrantRevoked},
		"disabled":   {disable("ana", &off), disable("ana", &on), gatehouse.GrantRightLost},
		"agent off":  {disable("bot", &off), disable("bot", &on), gatehouse.GrantRightLost},
		"role lost":  {roles(gatehouse.RoleViewer), roles(gatehouse.RoleApprover), gatehouse.GrantRightLost},
		"no grants":  {apply("version: 1\n"), apply(withGrants), gatehouse.GrantPolicy},
		"activation": {activate(2), activate(1), gatehouse.GrantPolicy},
	} {
		w, bot, ana := refunds(t, "")
		w.person("ben") // somebody must be left who may answer
		must(t, errors.Join(apply("version: 1\n")(w), activate(1)(w)))
		g := w.grant(ana, nil)
		w.wantStatus(name+", before", w.refund(bot, "10", nil), gatehouse.StatusApproved)
		if err := c.end(w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := w.granted(g.ID); got.EndReason != c.why {
			t.Errorf("%s: ended by %q", name, got.EndReason)
		}
		w.wantStatus(name, w.refund(bot, "10", nil), gatehouse.StatusPending)
		if c.back != nil {
			if err := c.back(w); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			w.wantStatus(name+", and back", w.refund(bot, "10", nil), gatehouse.StatusPending)
		}
		if got := w.granted(g.ID); got.Used != 1 {
			t.Errorf("%s: %d used", name, got.Used)
		}
	}
}

// TestGrantRefused: a grant for actions that cannot be approved in advance is refused.
func TestGrantRefused(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	refused := func(what string, who context.Context, code gatehouse.Code, change func(*gatehouse.NewGrant)) {
		t.Helper()
		_, err := w.gate.CreateGrant(who, newGrant(change))
		w.wantCode(what, gatehouse.CodeOf(err), code)
	}
	refused("an agent", bot, gatehouse.CodeRoleRequired, nil)
	operator := w.principal("op", gatehouse.KindPerson, gatehouse.RoleOperator)
	refused("an operator", operator, gatehouse.CodeRoleRequired, nil)
	plain, err := gatehouse.CallerFrom(ana)
	must(t, err)
	bare := *plain
	bare.StepUp = false
	refused("without the edit token", gatehouse.NewContext(t.Context(), &bare), gatehouse.CodeEditTokenRequired, nil)
	w.principal("gone", gatehouse.KindAgent, gatehouse.RoleProposer)
	_, err = w.gate.UpdatePrincipal(w.admin, "gone", gatehouse.PrincipalChange{Disabled: new(true)})
	must(t, err)
	for what, change := range map[string]func(*gatehouse.NewGrant){
		"longer than the policy's": func(n *gatehouse.NewGrant) { n.For = gatehouse.Duration(5 * time.Hour) },
		"longer than a day":        func(n *gatehouse.NewGrant) { n.For = gatehouse.Duration(25 * time.Hour) },
		"a bad condition":          func(n *gatehouse.NewGrant) { n.When = "change.amount <=" },
		"no condition":             func(n *gatehouse.NewGrant) { n.When = " " },
		"no count":                 func(n *gatehouse.NewGrant) { n.Count = 0 },
		"a bad amount":             func(n *gatehouse.NewGrant) { n.Amounts[0].Amount = "-1" },
		"no currency":              func(n *gatehouse.NewGrant) { n.Amounts[0].Currency = "" },
		"nobody":                   func(n *gatehouse.NewGrant) { n.Agent = "nobody" },
		"a person":                 func(n *gatehouse.NewGrant) { n.Agent = "ana" },
		"a disabled agent":         func(n *gatehouse.NewGrant) { n.Agent = "gone" },
		"an unknown operation":     func(n *gatehouse.NewGrant) { n.Operation = "none" },
		"a policy":                 func(n *gatehouse.NewGrant) { n.Connector = "gatehouse" },
	} {
		refused(what, ana, gatehouse.CodeInvalid, change)
	}
	w.targets.floor = gatehouse.L4
	refused("an operation of L4", ana, gatehouse.CodeInvalid, nil)
	w.targets.floor = 0

	g := w.grant(ana, nil)
	for who, ctx := range map[string]context.Context{"an agent": bot, "an operator": operator} {
		_, err := w.gate.RevokeGrant(ctx, g.ID)
		w.wantCode("revoked by "+who, gatehouse.CodeOf(err), gatehouse.CodeRoleRequired)
	}
	_, err = w.gate.RevokeGrant(gatehouse.NewContext(t.Context(), &bare), g.ID)
	w.wantCode("revoked without the edit token", gatehouse.CodeOf(err), gatehouse.CodeEditTokenRequired)

	sponsor := "ana"
	if _, err := w.gate.UpdatePrincipal(w.admin, "bot", gatehouse.PrincipalChange{Sponsor: &sponsor}); err != nil {
		t.Fatal(err)
	}
	refused("the agent's sponsor", ana, gatehouse.CodeSelfApproval, nil)
	if _, err := w.gate.ApplyPolicy(w.admin, "version: 1\n"); err != nil {
		t.Fatal(err)
	}
	refused("no grants", w.person("ben"), gatehouse.CodeInvalid, nil)
}

// TestGrantExcludesSponsorAndEditor: after the grantor has become the agent's sponsor, the grant approves nothing;
// nor does it approve an edited or revised change.
func TestGrantExcludesSponsorAndEditor(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	ben := w.person("ben")
	w.grant(ana, nil)
	a := w.refund(bot, "60", nil)
	w.wantStatus("before the edit", a, gatehouse.StatusPending)
	edited, err := w.gate.Edit(ben, a.ID, gatehouse.EditRequest{
		Digest: a.Digest, Note: "less", ProposedChange: `{"amount":40,"currency":"EUR"}`,
	})
	must(t, err)
	w.wantStatus("an edited change", edited, gatehouse.StatusPending)
	like := w.refund(bot, "40", nil).Proposal
	like.IdempotencyKey = ""
	revised, err := w.gate.Revise(bot, edited.ID, &like)
	must(t, err)
	w.wantStatus("a revision", revised, gatehouse.StatusPending)
	sponsor := "ana"
	if _, err := w.gate.UpdatePrincipal(w.admin, "bot", gatehouse.PrincipalChange{Sponsor: &sponsor}); err != nil {
		t.Fatal(err)
	}
	w.wantStatus("by its sponsor", w.refund(bot, "10", nil), gatehouse.StatusPending)
}

// TestGrantorOutOfOffice: a grant ends when it is used while its grantor is disabled, even if the
// disabling did not end it.
func TestGrantorOutOfOffice(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	w.person("ben")
	g := w.grant(ana, nil)
	err := w.store.Update(t.Context(), g.Tenant, func(tx gatehouse.Tx) error {
		p, err := tx.FindPrincipal(g.Grantor)
		if err != nil {
			return err
		}
		p.Disabled = true
		return tx.UpdatePrincipal(p)
	})
	must(t, err)
	w.wantStatus("without the grantor", w.refund(bot, "10", nil), gatehouse.StatusPending)
	if got := w.granted(g.ID); got.EndReason != gatehouse.GrantRightLost {
		t.Errorf("ended by %q", got.EndReason)
	}
}

// TestGrantTried: a dry run shows the worst case and stores nothing.
func TestGrantTried(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	g := w.grant(ana, func(n *gatehouse.NewGrant) { n.DryRun = true })
	if g.ID != "" || !strings.HasPrefix(g.Worst, "at most 3 times") {
		t.Errorf("tried as %+v", g)
	}
	if list, err := w.gate.ListGrants(ana); err != nil || len(list) != 0 {
		t.Errorf("stored %v, %v", list, err)
	}
	w.wantStatus("without a grant", w.refund(bot, "10", nil), gatehouse.StatusPending)
}

// TestGrantsAreFew: one operation of one agent has a bounded number of open grants.
func TestGrantsAreFew(t *testing.T) {
	t.Parallel()
	w, _, ana := refunds(t, "")
	var last *gatehouse.Grant
	for range gatehouse.MaxGrants {
		last = w.grant(ana, nil)
	}
	_, err := w.gate.CreateGrant(ana, newGrant(nil))
	w.wantCode("one more", gatehouse.CodeOf(err), gatehouse.CodeInvalid)
	w.grant(ana, func(n *gatehouse.NewGrant) { n.Operation = "update" })
	if _, err := w.gate.RevokeGrant(ana, last.ID); err != nil {
		t.Fatal(err)
	}
	w.grant(ana, nil)
}

// TestGrantsAtOnce: of fifty concurrent proposals, only as many are approved as the grant's count
// and amount allow.
func TestGrantsAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		count  int
		amount gatehouse.Decimal
	}{{7, "1000"}, {50, "75"}} {
		w, bot, ana := refunds(t, "")
		g := w.grant(ana, func(n *gatehouse.NewGrant) {
			n.Count, n.Amounts[0].Amount = c.count, c.amount
		})
		var all sync.WaitGroup
		approved := make([]int, 50)
		for i := range approved {
			all.Go(func() {
				a, _, err := w.gate.Propose(bot, proposal(func(p *gatehouse.Proposal) {
					p.ActionType, p.Operation, p.CurrentState = "refund", "refund", ""
					p.ProposedChange = `{"amount":10,"currency":"EUR"}`
				}))
				if err != nil {
					t.Error(err)
				} else if a.Status == gatehouse.StatusApproved {
					approved[i] = 1
				}
			})
		}
		all.Wait()
		n := 0
		for _, one := range approved {
			n += one
		}
		if got := w.granted(g.ID); n != 7 || got.Used != 7 || got.UsedAmounts[0].Amount.Cmp("70") != 0 {
			t.Errorf("%d of %s: %d approved, %d used, %v", c.count, c.amount, n, got.Used, got.UsedAmounts)
		}
	}
}

// TestGrantOfManyRows: no grant covers a change of rows that the action does not name.
func TestGrantOfManyRows(t *testing.T) {
	t.Parallel()
	w, bot, ana := refunds(t, "")
	w.grant(ana, func(n *gatehouse.NewGrant) {
		n.Operation, n.When, n.Amounts = "update_where", "true", nil
	})
	where := func(change gatehouse.JSON) func(*gatehouse.Proposal) {
		return func(p *gatehouse.Proposal) { p.Operation, p.ProposedChange = "update_where", change }
	}
	w.wantStatus("of another shape", w.refund(bot, "", where(`{"title":"blue"}`)), gatehouse.StatusApproved)
	w.wantStatus("20 rows", w.refund(bot, "", where(
		`{"max_rows":20,"set":{"title":"blue"},"where":[{"column":"title","op":"=","value":"red"}]}`,
	)), gatehouse.StatusPending)
}
