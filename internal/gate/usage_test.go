package gate_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

const pricesPolicy = `version: 1
risk: {price_change: 3, note: 3}
ceilings:
  - {name: prices, when: 'action.type == "price_change"', per: agent, window: 1h, limit: 100, amount: change.price}
  - {name: daily, when: 'action.type == "price_change"', per: tenant, window: 1h, count: 2}
`

// priced proposes a price that the ceiling "prices" counts.
func (w *world) priced(who context.Context, price string) *gatehouse.Action {
	w.t.Helper()
	return w.propose(who, func(p *gatehouse.Proposal) {
		p.ProposedChange = gatehouse.JSON(`{"price":"` + price +
			`"}`)
	})
}

// excesses maps the ids of listed actions to the ceilings that they exceed.
func excesses(actions []*gatehouse.Action) map[string]string {
	out := make(map[string]string)
	for _, a := range actions {
		for _, x := range a.Exceeds {
			out[a.ID] += x.Ceiling + " " + string(x.Used) + " " + string(x.Left) + ";"
			if x.Never {
				out[a.ID] += "never;"
			}
		}
	}
	return out
}

// TestListsShowExceededCeilings: lists agree with the action read by its id.
func TestListsShowExceededCeilings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pricesPolicy)
	bot, ana := w.agent(), w.person("ana")
	other := w.principal("other", gatehouse.KindAgent, gatehouse.RoleProposer)
	first, second, small := w.priced(bot, "60.00"), w.priced(bot, "60.00"), w.priced(bot, "40.00")
	large, others := w.priced(bot, "160.00"), w.priced(other, "60.00")
	note := w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = "note" })

	lists := func(when string, want map[string]string) {
		t.Helper()
		for name, f := range map[string]gatehouse.ActionFilter{
			"newest": {}, "pending": {Status: gatehouse.StatusPending}, "urgency": {Sort: gatehouse.SortUrgency},
		} {
			page, err := w.gate.ListActions(w.admin, f)
			must(t, err)
			inbox, _, err := w.gate.Inbox(w.admin, f)
			must(t, err)
			single := make([]*gatehouse.Action, len(page.Items))
			for i, a := range page.Items {
				single[i] = w.find(a.ID)
			}
			for where, got := range map[string]map[string]string{"list": excesses(page.Items),
				"inbox": excesses(inbox.Items), "by id": excesses(single)} {
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s, %s, %s: %s", when, name, where, d)
				}
			}
		}
	}
	lists("nothing used", map[string]string{large.ID: "prices 0 100;never;"})
	if _, err := w.gate.Decide(ana, first.ID, gatehouse.Decision{Decision: gatehouse.Approve,
		Digest: first.Digest}); err != nil {
		t.Fatal(err)
	}
	lists("60 of 100 used", map[string]string{large.ID: "prices 60 40;never;", second.ID: "prices 60 40;"})
	if _, err := w.gate.Decide(ana, small.ID, gatehouse.Decision{Decision: gatehouse.Approve,
		Digest: small.Digest}); err != nil {
		t.Fatal(err)
	}
	lists("both ceilings full", map[string]string{
		large.ID: "prices 100 0;never;daily 2 0;", second.ID: "prices 100 0;daily 2 0;", others.ID: "daily 2 0;",
	})
	if len(note.Exceeds) != 0 {
		t.Error("an action without ceilings exceeds one")
	}
	w.clock.Advance(2 * time.Hour)
	page, err := w.gate.ListActions(w.admin, gatehouse.ActionFilter{Sort: gatehouse.SortUrgency})
	must(t, err)
	if d := cmp.Diff(map[string]string{large.ID: "prices 0 100;never;"}, excesses(page.Items)); d != "" {
		t.Errorf("after the window: %s", d)
	}
}

// TestUsageOfAnAgent: an agent sees its own account even if more accounts than the list holds are fuller, and no other
// account is read.
func TestUsageOfAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `version: 1
risk: {price_change: 1}
rules: [{id: all, when: 'true', then: allow}]
ceilings:
  - {name: prices, when: 'true', per: agent, window: 1h, limit: 100, amount: change.price}
`)
	bot := w.agent()
	w.priced(bot, "1.00")
	for i := range gatehouse.MaxCeilingAccounts {
		w.priced(w.principal(fmt.Sprintf("other-%d", i), gatehouse.KindAgent, gatehouse.RoleProposer), "60.00")
	}
	idle := w.principal("idle", gatehouse.KindAgent, gatehouse.RoleProposer)
	counted := &countedStore{Store: w.store}
	w.gate.Store = counted
	for want, who := range map[gatehouse.Decimal]context.Context{"1": bot, "0": idle} {
		if list, err := w.gate.PolicyUsage(who); err != nil || len(list) != 1 || list[0].Used != want {
			t.Errorf("%+v, %v, want one account of which %s is used", list, err, want)
		}
	}
	if counted.accounts != 1 {
		t.Errorf("%d accounts were read, of which the agents need 1", counted.accounts)
	}
}

// TestUsageOfTargets: an agent that reads only its own actions sees no account of a target, also if an earlier policy
// had the ceiling per target.
func TestUsageOfTargets(t *testing.T) {
	t.Parallel()
	source := func(per string) string {
		return `version: 1
risk: {price_change: 1}
rules: [{id: all, when: 'true', then: allow}]
ceilings:
  - {name: prices, when: 'true', per: ` + per + `, window: 1h, limit: 100, amount: change.price}
  - {name: all, when: 'true', per: tenant, window: 1h, count: 9}
`
	}
	w := newWorld(t, source("target"))
	bot, ana := w.agent(), w.person("ana")
	w.priced(w.principal("other", gatehouse.KindAgent, gatehouse.RoleProposer), "60.00")
	scopes := func(who context.Context) (list []string) {
		t.Helper()
		accounts, err := w.gate.PolicyUsage(who)
		must(t, err)
		for _, a := range accounts {
			list = append(list, a.Ceiling+" "+a.Scope)
		}
		return list
	}
	target := "prices target:shop/item/SKU-1"
	if d := cmp.Diff([]string{target, "all tenant"}, scopes(ana)); d != "" {
		t.Errorf("a person: %s", d)
	}
	if d := cmp.Diff([]string{"all tenant"}, scopes(bot)); d != "" {
		t.Errorf("an agent: %s", d)
	}
	_, err := w.gate.ApplyPolicy(w.admin, source("type"))
	must(t, err)
	if d := cmp.Diff([]string{target, "all tenant"}, scopes(ana)); d != "" {
		t.Errorf("a person, under the next policy: %s", d)
	}
	if d := cmp.Diff([]string{"prices ", "all tenant"}, scopes(bot)); d != "" {
		t.Errorf("an agent, under the next policy: %s", d)
	}
}

// countedStore counts the transactions of View, their queries of ceilings, and the accounts that they list.
type countedStore struct {
	gatehouse.Store
	views, asked, accounts int
}

type countedTx struct {
	gatehouse.ReadTx
	s *countedStore
}

func (s *countedStore) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	s.views++
	return s.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) error { return fn(countedTx{tx, s}) })
}

func (t countedTx) CeilingUses(spans []gatehouse.CeilingSpan) ([]gatehouse.Decimal, error) {
	t.s.asked++
	return t.ReadTx.CeilingUses(spans)
}

func (t countedTx) ListCeilingUse(
	ceiling, scope string, since time.Time, limit int,
) ([]gatehouse.CeilingUse, error) {
	list, err := t.ReadTx.ListCeilingUse(ceiling, scope, since, limit)
	t.s.accounts += len(list)
	return list, err
}

// TestAListAsksForCeilingsOnce: one statement per page, however many ceilings and
// scopes; none for a page without ceilings.
func TestAListAsksForCeilingsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pricesPolicy)
	bot := w.agent()
	counted := &countedStore{Store: w.store}
	g := gate.New(counted, w.targets, &wake.Hub{}, gate.Config{PolicySource: []byte(pricesPolicy)},
		slog.New(slog.DiscardHandler))
	list := func(want int) {
		t.Helper()
		counted.views, counted.asked = 0, 0
		if _, err := g.ListActions(w.admin, gatehouse.ActionFilter{}); err != nil {
			t.Fatal(err)
		}
		if counted.views != want || counted.asked != want {
			t.Errorf("%d transactions asked %d times, want %d", counted.views, counted.asked, want)
		}
	}
	w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = "note" })
	list(0)
	other := w.principal("other", gatehouse.KindAgent, gatehouse.RoleProposer)
	for range 5 {
		w.priced(bot, "60.00")
		w.priced(other, "60.00")
	}
	list(1)
}
