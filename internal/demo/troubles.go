package demo

import (
	"context"
	"fmt"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
)

// The customer of an order. The order arrives before the ledger has the customer.
const newCustomerName = "Mara Lindqvist"

var newCustomerID = customer(customerCount + 1)

// refusedOrder: the ledger does not know the customer of an approved order. A retry cannot help,
// so the order is a dead letter at once.
func refusedOrder(ctx context.Context, p *play, l *Line) error {
	it, err := p.item(ctx, sku(1042))
	if err != nil {
		return err
	}
	a, err := p.propose(ctx, l, &gatehouse.Proposal{
		ActionType: "create_order", Connector: "shop", Operation: "insert",
		Target: gatehouse.Target{EntityType: "order", EntityRef: orderID(orderCount + 1)},
		ProposedChange: gatehouse.MustJSON(map[string]any{
			"customer_id": newCustomerID, "sku": it.sku, "quantity": 2, "total": money(2 * it.cents),
			"currency": it.currency, "status": "open", "placed_on": "2026-10-01",
		}),
		Rationale: "came in by mail",
	})
	if err != nil {
		return err
	}
	if err := p.ana.approve(ctx, l, a.ID, ""); err != nil {
		return err
	}
	if p.order, err = p.finish(ctx, l, a.ID, gatehouse.StatusFailed); err != nil {
		return err
	}
	p.Stage.Say(fmt.Sprintf("ana approves an order of %s, whom the ledger does not know", newCustomerID))
	l.Refused++
	l.Outcome = "a dead letter: " + p.order.Failure.Code
	return nil
}

// newCustomer: L4 requires the reviewer to retype the name.
func newCustomer(ctx context.Context, p *play, l *Line) error {
	a, err := p.propose(ctx, l, &gatehouse.Proposal{
		ActionType: "create_customer", Connector: "shop", Operation: "insert",
		Target:         gatehouse.Target{EntityType: "customer", EntityRef: newCustomerID},
		ProposedChange: object("name", newCustomerName, "email", "mara@example.com", "country", "US", "currency", "USD"),
		Rationale:      "her order waits for the customer record",
	})
	if err != nil {
		return err
	}
	if a, err = p.ben.see(ctx, a.ID); err != nil {
		return err
	}
	_, err = p.ben.decide(ctx, a, gatehouse.Decision{Decision: gatehouse.Approve})
	if err := refused(l, err, gatehouse.CodeConfirmation); err != nil {
		return err
	}
	p.Stage.Say(fmt.Sprintf("ben's approval is not accepted before he retypes the name: %s", newCustomerName))
	if err := p.ben.settle(ctx, l, a,
		gatehouse.Decision{Decision: gatehouse.Approve, Confirm: newCustomerName}); err != nil {
		return err
	}
	if _, err := p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
		return err
	}
	l.Outcome = "confirmation_required; then applied"
	return nil
}

// replayedOrder: the cause is fixed, so the same order is sent again under its existing
// approval.
func replayedOrder(ctx context.Context, p *play, l *Line) error {
	if p.order == nil {
		return fmt.Errorf("there is no dead letter")
	}
	answer, err := p.admin.ReplayDeadLetters(ctx, gatehouse.ReplayRequest{IDs: []string{p.order.Push.ID}})
	if err != nil {
		return err
	}
	if answer.Replayed != 1 {
		return fmt.Errorf("not replayed: %s", answer.Results[0].Skipped)
	}
	if _, err := p.finish(ctx, l, p.order.ID, gatehouse.StatusApplied); err != nil {
		return err
	}
	p.Stage.Say("now that the customer is there, the administrator replays the order")
	l.Outcome = "applied at the second attempt"
	return nil
}

// lostAnswerRepeated: the change was made, but the answer was lost. The operation is idempotent
// by key, so the gate repeats it safely.
func lostAnswerRepeated(ctx context.Context, p *play, l *Line) error {
	a, err := p.propose(ctx, l, &gatehouse.Proposal{
		ActionType: "receive_goods", Connector: warehouseConnector, Operation: opReceive,
		Target:         gatehouse.Target{EntityType: "item", EntityRef: sku(401)},
		ProposedChange: `{"quantity":24}`, Rationale: "two crates came",
	})
	if err != nil {
		return err
	}
	if err := p.ben.approve(ctx, l, a.ID, "counted"); err != nil {
		return err
	}
	if a, err = p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
		return err
	}
	calls := p.Warehouse.Calls(opReceive)
	if a.Push.Attempts != 2 || calls != 2 {
		return fmt.Errorf("%d attempts, %d calls; both should be 2", a.Push.Attempts, calls)
	}
	p.Stage.Say("the warehouse books 24 items in, but the connection breaks before its answer; " +
		"called again with the same key, it books nothing twice")
	l.Outcome = fmt.Sprintf("applied once, in %d calls", calls)
	return nil
}

// lostAnswerUnknown: here a repetition would pay twice. The gate marks the outcome as unknown,
// and an operator resolves it.
func lostAnswerUnknown(ctx context.Context, p *play, l *Line) error {
	who := customer(77)
	a, err := p.propose(ctx, l, &gatehouse.Proposal{
		ActionType: "store_credit", Connector: warehouseConnector, Operation: opCredit,
		Target:         gatehouse.Target{EntityType: "customer", EntityRef: who},
		ProposedChange: object("amount", "15.00", "currency", "USD", "reason", "broken in the post"),
		Rationale:      "photo of the parcel is clear",
	})
	if err != nil {
		return err
	}
	if err := p.ana.approve(ctx, l, a.ID, ""); err != nil {
		return err
	}
	if a, err = p.finish(ctx, l, a.ID, gatehouse.StatusUnknown); err != nil {
		return err
	}
	p.Stage.Say("the connection breaks again; a second call could pay twice, so the gate asks olga")
	var found int
	err = p.ledger.QueryRowContext(ctx,
		`SELECT count(*) FROM credits WHERE customer_id = ? AND amount = '15.00' AND reason = 'broken in the post'`,
		who).Scan(&found)
	if err != nil {
		return err
	}
	if calls := p.Warehouse.Calls(opCredit); found != 1 || calls != 1 {
		return fmt.Errorf("%d credits after %d calls; both should be 1", found, calls)
	}
	_, err = p.olga.ResolvePush(ctx, a.Push.ID, gatehouse.Resolution{
		Outcome: "applied", Reason: "the credit is in the ledger",
	})
	if err != nil {
		return err
	}
	if _, err := p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
		return err
	}
	p.Stage.Say("olga finds the credit in the ledger, and resolves it as applied")
	l.Outcome = "unknown; resolved as applied"
	return nil
}

const repeats = 5

// repeatedApproval: a client sends its approval five times more, concurrently, as if it had not got
// the answer. The change is still decided once and applied once.
func repeatedApproval(ctx context.Context, p *play, l *Line) error {
	it, err := p.item(ctx, sku(501))
	if err != nil {
		return err
	}
	a, err := p.propose(ctx, l, priceChange(it, money(it.cents-50), "to clear the shelf"))
	if err != nil {
		return err
	}
	if err := p.ben.approve(ctx, l, a.ID, ""); err != nil {
		return err
	}
	var wg sync.WaitGroup
	answers := make([]string, repeats)
	for i := range answers {
		wg.Go(func() {
			s, err := p.ben.api.Answer(ctx, a.Approval.ID, gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest})
			if err != nil {
				answers[i] = err.Error()
				return
			}
			answers[i] = s.Status
		})
	}
	wg.Wait()
	for _, s := range answers {
		if s != gatehouse.AlreadyApproved {
			return fmt.Errorf("the answers were: %s", joined(answers))
		}
	}
	if _, err := p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
		return err
	}
	p.Stage.Say("ben's client sends his approval five times more, all at once")
	l.Outcome = fmt.Sprintf("%d × already_approved, applied once", repeats)
	return nil
}

// reversal: a reversal is a separate proposal, derived from the receipt.
func reversal(ctx context.Context, p *play, l *Line) error {
	if p.applied == nil {
		return fmt.Errorf("nothing was applied that could be undone")
	}
	a, err := p.agent.Reverse(ctx, p.applied.ID, gatehouse.ReverseRequest{Rationale: "demo: the supplier took it back"})
	if err != nil {
		return fmt.Errorf("reverse: %w", err)
	}
	l.Proposed++
	if err := p.ana.approve(ctx, l, a.ID, ""); err != nil {
		return err
	}
	if _, err := p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
		return err
	}
	old, err := p.agent.FindAction(ctx, p.applied.ID)
	if err != nil {
		return err
	}
	if old.Status != gatehouse.StatusReversed {
		return fmt.Errorf("%s is %s instead of reversed", subject(old), old.Status)
	}
	before, _ := old.CurrentState.Get("price")
	price, _ := before.Text()
	p.Stage.Say(fmt.Sprintf("the price of %s goes back to %s, approved like any other change", old.Target.EntityRef,
		price))
	l.Outcome = "reversed"
	return nil
}
