package notify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// TestRoutes: a route takes the messages that match everything it names.
func TestRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const source = `version: 1
risk: {price_change: 3, refund: 4}
ceilings:
  - {name: refunds, when: 'action.type == "refund"', per: tenant, window: 24h, limit: 1000000, amount: change.amount}
`
	if _, err := w.Gate.ApplyPolicy(w.Admin(), source); err != nil {
		t.Fatal(err)
	}
	routes := map[string]notify.Route{
		"all": {}, "refunds": {Types: []string{"ref*"}}, "high": {Risk: gatehouse.L4},
		"items": {Targets: []string{"item/SKU-1*"}}, "orders": {Targets: []string{"invoice/x", "order/*"}},
		"large": {Amount: "10000"}, "euros": {Amount: "10000", Currency: "EUR"},
		"outcomes":     {Tell: []gatehouse.NotificationKind{gatehouse.NotifyDecided}},
		"large orders": {Amount: "10000", Targets: []string{"order/*"}},
	}
	config := notify.Config{DigestAfter: 1000}
	e := newEndpoint(t)
	for name, r := range routes {
		c := *w.hook(e)
		c.Name = name
		r.Channels = []string{name}
		config.Channels, config.Routes = append(config.Channels, &c), append(config.Routes, r)
	}
	n := w.notifier(config)
	for _, c := range []struct {
		name   string
		target gatehouse.Target
		kind   string
		claims *gatehouse.Magnitude
		amount string
		want   string
	}{
		{"an item", gatehouse.Target{EntityType: "item", EntityRef: "SKU-17"}, "price_change", nil, "1", "all items"},
		{"another item", gatehouse.Target{EntityType: "item", EntityRef: "SKU-2"}, "price_change", nil, "99999", "all"},
		{"several", gatehouse.Target{EntityType: "item", EntityRefs: []string{"SKU-2", "SKU-1"}}, "price_change", nil, "1",
			"all items"},
		{
			"a claimed amount", gatehouse.Target{EntityType: "order", EntityRef: "2026/11/1"}, "price_change",
			&gatehouse.Magnitude{Amount: "-10000", Currency: "EUR"}, "1", "all euros large large orders orders",
		},
		{
			"another currency", gatehouse.Target{EntityType: "order", EntityRef: "1"}, "price_change",
			&gatehouse.Magnitude{Amount: "10000.01", Currency: "USD"}, "1", "all large large orders orders",
		},
		{"a counted amount", gatehouse.Target{EntityType: "case", EntityRef: "1"}, "refund", nil, "20000",
			"all high large refunds"},
		{"a small one", gatehouse.Target{EntityType: "case", EntityRef: "1"}, "refund", nil, "9999.99", "all high refunds"},
	} {
		a, _, err := w.Gate.Propose(w.As("bot"), &gatehouse.Proposal{
			ActionType: c.kind, Connector: "shop", Operation: "update", Target: c.target, Magnitude: c.claims,
			ProposedChange: gatehouse.JSON(`{"amount":` + c.amount + `}`),
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		w.spread(n)
		var got []string
		for _, row := range w.list(gatehouse.NotificationFilter{ActionID: a.ID}) {
			got = append(got, row.Channel)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s goes to %q, want %q", c.name, got, c.want)
		}
	}
}

// TestGiven: mails and cards show what the proposer sends for the reviewer, failures first, and a card
// with many facts shows all of them.
func TestGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := newOffice(t, w)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail(), o.channel}})
	added, removed := 120, 4
	_, _, err := w.Gate.Propose(w.As("bot"), &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update",
		Target:         gatehouse.Target{EntityType: "item", EntityRef: "walnuts"},
		ProposedChange: `{"amount":"12"}`, OnBehalfOf: "bo",
		Context: `{"edge":"code<b>","feature":"checkout","feature_vector_state":{"convergence_progress":` +
			`"2/3 evaluators passed","edges_completed":["intent","requirements"]},` +
			`"iteration":12345678901234567890,"project_id":"apollo"}`,
		Rationale: strings.Repeat("because ", 100),
		Evaluations: []gatehouse.Evaluation{
			{Name: "schema", Kind: "deterministic", Result: "pass"},
			{Name: "review", Kind: "probabilistic", Result: "warn", Confidence: "0.820", Details: "no tests"},
			{Name: "tests", Kind: "deterministic", Result: "fail"},
		},
		ArtifactDiff: &gatehouse.ArtifactDiff{
			Type: "spec", Summary: "adds a step", LinesAdded: &added, LinesRemoved: &removed,
		},
	})
	must(t, err)
	w.send(n, "mail")
	w.deliver(n, "slack")
	texts := map[string]string{"the mail": w.smtp.Mails()[0].Text, "the card": o.slack.Messages()[0].All()}
	for where, text := range texts {
		for _, want := range []string{
			"project apollo, feature checkout, edge code<b>, iteration 12345678901234567890",
			"tests (deterministic) fail; review (probabilistic) warn, confidence 0.820: no tests; schema (deterministic) pass",
			"State of the work", "convergence_progress 2/3 evaluators passed; edges_completed intent, requirements",
			"Rationale of the proposer", "because because", "Rationale of the proposer. Gatehouse shows them in full.",
			"spec, 120 lines added, 4 removed: adds a step", "act_", "Time left",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", where, want, text)
			}
		}
	}
	if text, want := texts["the card"], "shop update on item walnuts: /amount"; !strings.Contains(text, want) {
		t.Errorf("the card lacks %q:\n%s", want, text)
	}
}
