package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// situation is one part of the run. Its error describes what went wrong.
type situation struct {
	name string
	play func(ctx context.Context, p *play, l *Line) error
}

func situations() []situation {
	return []situation{
		{"routine price changes", routinePrices},
		{"safe changes, allowed by the policy", safeChanges},
		{"a refund in the wrong currency", wrongCurrency},
		{"refunds up to a ceiling", refundCeiling},
		{"a record that changes under review", changedUnderReview},
		{"an order that the ledger refuses", refusedOrder},
		{"a new customer, to be confirmed", newCustomer},
		{"a dead letter, replayed", replayedOrder},
		{"a bulk deletion that needs two people", bulkDeletion},
		{"a question that escalates, answered by mail", escalation},
		{"a lost answer, safe to ask again", lostAnswerRepeated},
		{"a lost answer, not safe to ask again", lostAnswerUnknown},
		{"an approval sent five times more", repeatedApproval},
		{"a change undone", reversal},
	}
}

// item holds the columns of an item that the agent reads.
type item struct {
	sku, name, price, currency, version string
	cents                               int
}

func (p *play) item(ctx context.Context, sku string) (it item, err error) {
	err = p.ledger.QueryRowContext(ctx,
		`SELECT sku, name, price, currency, version, CAST(replace(price, '.', '') AS INTEGER) FROM items WHERE sku = ?`, sku).
		Scan(&it.sku, &it.name, &it.price, &it.currency, &it.version, &it.cents)
	return it, err
}

// priceChange makes the proposal of a new price.
func priceChange(it item, price, why string) *gatehouse.Proposal {
	return &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update",
		Target:         gatehouse.Target{EntityType: "item", EntityRef: it.sku, Version: it.version},
		CurrentState:   object("price", it.price, "currency", it.currency),
		ProposedChange: object("price", price), Rationale: why,
	}
}

// object makes a JSON object from pairs of names and string values.
func object(pairs ...string) gatehouse.JSON {
	m := map[string]string{}
	for i := 1; i < len(pairs); i += 2 {
		m[pairs[i-1]] = pairs[i]
	}
	return gatehouse.MustJSON(m)
}

const routineCount = 25

// routinePrices: one price is reviewed by itself, one has a mistake and is rejected, and the
// rest is decided in bulk.
func routinePrices(ctx context.Context, p *play, l *Line) error {
	var first, slip *gatehouse.Action
	bulk := gatehouse.BulkDecision{Decision: gatehouse.Approve, Notes: "as the supplier's letter says"}
	var seen []*gatehouse.Action
	verdict := gatehouse.Approve
	for i := range routineCount {
		it, err := p.item(ctx, sku(101+i))
		if err != nil {
			return err
		}
		price := money(it.cents * 104 / 100)
		if i == 1 {
			price = money(it.cents * 1040 / 100)
		}
		a, err := p.propose(ctx, l, priceChange(it, price, "supplier raised cost by 4 %"))
		if err != nil {
			return err
		}
		switch i {
		case 0:
			first = a
			p.Stage.Say(fmt.Sprintf("%s proposes %s from %s to %s %s", agentName, it.sku, it.price, price, it.currency))
			if verdict, err = p.ask(ctx, l, p.ana, a.ID, gatehouse.Approve, "as the supplier's letter says"); err != nil {
				return err
			}
			p.Stage.Say("ana " + verb(verdict) + " it")
		case 1:
			slip = a
			p.Stage.Say(fmt.Sprintf("%s proposes %s from %s to %s, ten times too much", agentName, it.sku, it.price, price))
		default:
			if a, err = p.ana.see(ctx, a.ID); err != nil {
				return err
			}
			bulk.Items = append(bulk.Items, gatehouse.BulkItem{ActionID: a.ID, Digest: a.Digest})
			seen = append(seen, a)
		}
	}
	slipped, err := p.ask(ctx, l, p.ana, slip.ID, gatehouse.Reject, "4 % were agreed")
	if err != nil {
		return err
	}
	p.Stage.Say(fmt.Sprintf("ana %s that, and approves %d more like the first in one answer", verb(slipped),
		len(bulk.Items)))
	answer, err := p.ana.api.BulkDecide(ctx, bulk)
	if err != nil {
		return err
	}
	for i, res := range answer.Results {
		if res.Result != gatehouse.Decided {
			return fmt.Errorf("bulk: %s %s%s", subject(seen[i]), res.Result, res.Skipped)
		}
		l.Decided++
		if err := p.ana.note(seen[i], gatehouse.Approve, res.Result); err != nil {
			return err
		}
	}
	if verdict == gatehouse.Approve {
		seen = append(seen, first)
	}
	if slipped == gatehouse.Approve {
		seen = append(seen, slip)
	}
	for _, a := range seen {
		if _, err = p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
			return err
		}
	}
	p.applied = seen[0]
	l.Outcome = fmt.Sprintf("%d applied, %d rejected", l.Applied, l.Refused)
	return nil
}

func verb(d gatehouse.DecisionKind) string {
	if d == gatehouse.Reject {
		return "rejects"
	}
	return "approves"
}

// safeChanges: changes of L1 and L2 need no approval.
func safeChanges(ctx context.Context, p *play, l *Line) error {
	for i, q := range []*gatehouse.Proposal{
		{ActionType: "tag", ProposedChange: object("tag", "bestseller"), Rationale: "sold most this week"},
		{ActionType: "tag", ProposedChange: object("tag", "gift"), Rationale: "often bought with wrapping"},
		{ActionType: "spec_update", ProposedChange: object("description", "Oiled, 24 cm high, with a switch"),
			Rationale: "was empty"},
	} {
		it, err := p.item(ctx, sku(201+i))
		if err != nil {
			return err
		}
		q.Connector, q.Operation = "shop", "update"
		q.Target = gatehouse.Target{EntityType: "item", EntityRef: it.sku, Version: it.version}
		a, err := p.propose(ctx, l, q)
		if err != nil {
			return err
		}
		if a.Policy.Outcome != gatehouse.OutcomeAllow {
			return fmt.Errorf("%s ended with %s", subject(a), a.Policy.Outcome)
		}
		if _, err := p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
			return err
		}
	}
	p.Stage.Say(agentName + " sets two tags and a description; the policy lets L1 and L2 pass")
	l.Outcome = "applied, nobody was asked"
	return nil
}

// refund holds the columns of a refund that the agent reads.
type refund struct{ id, order, currency, requested, version string }

func (p *play) refund(ctx context.Context, id string) (r refund, err error) {
	err = p.ledger.QueryRowContext(ctx,
		`SELECT id, order_id, order_currency, requested, version FROM refunds WHERE id = ?`, id).
		Scan(&r.id, &r.order, &r.currency, &r.requested, &r.version)
	return r, err
}

func (p *play) payRefund(ctx context.Context, l *Line, id, currency string) (*gatehouse.Action, refund, error) {
	r, err := p.refund(ctx, id)
	if err != nil {
		return nil, r, err
	}
	if currency == "" {
		currency = r.currency
	}
	a, err := p.propose(ctx, l, &gatehouse.Proposal{
		ActionType: "refund", Connector: "shop", Operation: "update",
		Target: gatehouse.Target{EntityType: "refund", EntityRef: r.id, Version: r.version},
		CurrentState: object("order_id", r.order, "order_currency", r.currency, "requested", r.requested, "status",
			"requested"),
		ProposedChange: object("status", "paid", "paid", r.requested, "paid_currency", currency),
		Magnitude:      &gatehouse.Magnitude{Amount: gatehouse.Decimal(r.requested), Currency: currency},
		Rationale:      "the parcel came back",
	})
	return a, r, err
}

func wrongCurrency(ctx context.Context, p *play, l *Line) error {
	a, r, err := p.payRefund(ctx, l, refundID(1), "USD")
	if err != nil {
		return err
	}
	p.Stage.Say(fmt.Sprintf("%s would pay %s USD for order %s, which is in %s", agentName, r.requested, r.order,
		r.currency))
	if a.Status != gatehouse.StatusDenied || len(a.Policy.Reasons) == 0 {
		return fmt.Errorf("%s is %s", subject(a), a.Status)
	}
	l.Outcome = "denied: " + a.Policy.Reasons[0]
	return nil
}

// refundCeiling: the first refund fits the limit of 250.00 a day. The second would exceed it,
// and no approval changes that.
func refundCeiling(ctx context.Context, p *play, l *Line) error {
	a, r, err := p.payRefund(ctx, l, refundID(2), "")
	if err != nil {
		return err
	}
	p.Stage.Say(fmt.Sprintf("ana retypes %s, and approves the refund", r.requested))
	if err := p.ana.approve(ctx, l, a.ID, "parcel checked"); err != nil {
		return err
	}
	if _, err := p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
		return err
	}
	if a, r, err = p.payRefund(ctx, l, refundID(3), ""); err != nil {
		return err
	}
	if a, err = p.ana.see(ctx, a.ID); err != nil {
		return err
	}
	_, err = p.ana.decide(ctx, a, gatehouse.Decision{Decision: gatehouse.Approve, Confirm: retyped(a)})
	if err := refused(l, err, gatehouse.CodeCeilingExceeded); err != nil {
		return err
	}
	p.Stage.Say(fmt.Sprintf("ana approves %s more; that would pass the ceiling of 250.00 a day, so she rejects it",
		r.requested))
	if err := p.ana.settle(ctx, l, a, gatehouse.Decision{Decision: gatehouse.Reject, Notes: "tomorrow"}); err != nil {
		return err
	}
	l.Outcome = "1 paid; the next: ceiling_exceeded"
	return nil
}

// changedUnderReview: the target changes after the reviewer has read it.
func changedUnderReview(ctx context.Context, p *play, l *Line) error {
	it, err := p.item(ctx, sku(301))
	if err != nil {
		return err
	}
	a, err := p.propose(ctx, l, priceChange(it, money(it.cents+150), "competitor raised theirs"))
	if err != nil {
		return err
	}
	old, err := p.ana.see(ctx, a.ID)
	if err != nil {
		return err
	}
	clerk := money(it.cents + 40)
	if err := p.outside(ctx,
		entry{Operation: "update", Target: gatehouse.Target{EntityType: "item", EntityRef: it.sku},
			Change: object("price", clerk)}); err != nil {
		return err
	}
	p.Stage.Say(fmt.Sprintf("while ana looks at %s, a clerk sets its price to %s in the ledger", it.sku, clerk))
	_, err = p.ana.decide(ctx, old, gatehouse.Decision{Decision: gatehouse.Approve})
	if err := refused(l, err, gatehouse.CodeTargetChanged); err != nil {
		return err
	}
	if it, err = p.item(ctx, it.sku); err != nil {
		return err
	}
	q := priceChange(it, money(it.cents+110), "competitor raised theirs")
	q.Metadata = `{"demo":true}`
	if a, err = p.agent.Revise(ctx, a.ID, q); err != nil {
		return fmt.Errorf("revise: %w", err)
	}
	l.Proposed++
	p.Stage.Say(fmt.Sprintf("her approval is refused; %s revises: from %s to %s", agentName, it.price,
		money(it.cents+110)))
	d, err := p.ask(ctx, l, p.ana, a.ID, gatehouse.Approve, "fine now")
	if err != nil {
		return err
	}
	if d == gatehouse.Reject {
		l.Outcome = "target_changed; the revision was rejected"
		return nil
	}
	if _, err := p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
		return err
	}
	l.Outcome = "target_changed; revised, approved, applied"
	return nil
}

// bulkDeletion: L5 needs two people, and the agent's own sponsor may not be one of them.
func bulkDeletion(ctx context.Context, p *play, l *Line) error {
	var refs []string
	rows := map[string]map[string]int{}
	for i := itemCount - 24; i <= itemCount; i++ {
		refs = append(refs, sku(i))
		rows[sku(i)] = map[string]int{"discontinued": 1}
	}
	a, err := p.propose(ctx, l, &gatehouse.Proposal{
		ActionType: "bulk_delete", Connector: "shop", Operation: "bulk_delete",
		Target:       gatehouse.Target{EntityType: "item", EntityRefs: refs},
		CurrentState: gatehouse.MustJSON(rows), ProposedChange: `{"deleted":true}`,
		Rationale: "discontinued, and nobody ever ordered them",
	})
	if err != nil {
		return err
	}
	if a, err = p.sam.see(ctx, a.ID); err != nil {
		return err
	}
	approve := gatehouse.Decision{Decision: gatehouse.Approve, Confirm: retyped(a)}
	_, err = p.sam.decide(ctx, a, approve)
	if err := refused(l, err, gatehouse.CodeSelfApproval); err != nil {
		return err
	}
	p.Stage.Say("sam answers for " + agentName + ", so the gate does not take his approval")
	if a, err = p.ana.see(ctx, a.ID); err != nil {
		return err
	}
	answer, err := p.ana.decide(ctx, a, approve)
	if err != nil {
		return err
	}
	if answer.Code != gatehouse.VoteRecorded || answer.Required != 2 {
		return fmt.Errorf("ana's vote had the result %s, %d of %d", answer.Code, answer.Votes, answer.Required)
	}
	p.Stage.Say(fmt.Sprintf("ana retypes %d, the number of items: 1 of 2; then ben does: 2 of 2", len(refs)))
	if err := p.ben.approve(ctx, l, a.ID, "checked against the orders"); err != nil {
		return err
	}
	if _, err := p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
		return err
	}
	l.Outcome = fmt.Sprintf("%d items deleted at once", len(refs))
	return nil
}

func joined(words []string) string { return strings.Join(words, ", ") }
