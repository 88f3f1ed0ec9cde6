package app

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// budget is what bounds the cost of a model call: the workflow's, or with "" the
// tenant's.
type budget struct {
	workflow string
	*Budget
}

// claimAge is after how long a claim on a budget says nothing any more: no
// budget's window is as long.
const claimAge = 400 * 24 * time.Hour

// reserveBudget reports why a call may not be made: what was spent, with the
// most that this call and those under way can cost, would pass a budget. Else
// it claims that much, in the store: all processes see it, and it stays after
// one that dies, as its call may have cost that. The claim goes in the
// transaction that stores what the call cost.
func (r *Runs) reserveBudget(ctx context.Context, w *work) (over *gatehouse.StepFailure, err error) {
	tenant := w.step.Tenant
	var budgets []budget
	if b := w.def.Limits.Budget; b != nil {
		budgets = append(budgets, budget{w.run.Workflow, &Budget{b.Amount, b.Currency, b.Window.D()}})
	}
	if b := r.config.Limits(tenant).Budget; b != nil {
		budgets = append(budgets, budget{"", b})
	}
	if len(budgets) == 0 {
		return nil, nil
	}
	most, currency, known := r.config.Models.Most(tenant, w.spec.Provider, w.with)
	err = r.gate.update(ctx, nil, func(tx gatehouse.Tx) error {
		over = nil
		if err := tx.LockBudget(tenant); err != nil {
			return err
		}
		for _, b := range budgets {
			of := "workflow"
			if b.workflow == "" {
				of = "tenant"
			}
			if !known || currency != b.Currency {
				over = exceeded(w, "the budget of the %s is in %s, and what this call costs in that is not known", of, b.Currency)
				return nil
			}
			since := tx.Now().Add(-b.Window)
			spent, err := tx.Spent(tenant, b.workflow, b.Currency, since)
			if err != nil {
				return err
			}
			claimed, err := tx.BudgetClaimed(tenant, b.workflow, b.Currency, since)
			if err != nil {
				return err
			}
			if spent.Add(claimed).Add(most).Cmp(b.Amount) > 0 {
				over = exceeded(w, "the budget of the %s is %s %s in %s: %s are spent, calls under way may cost %s, and this one %s",
					of, b.Amount, b.Currency, gatehouse.Duration(b.Window), spent, claimed, most)
				// What is under way may come to less.
				over.Retryable = spent.Add(most).Cmp(b.Amount) <= 0
				return nil
			}
		}
		return tx.ClaimBudget(&gatehouse.BudgetClaim{
			Tenant: tenant, Workflow: w.run.Workflow, StepID: w.step.ID, Generation: w.step.Generation, Most: most, Currency: currency, At: tx.Now(),
		}, tx.Now().Add(-claimAge))
	})
	return over, err
}

func exceeded(w *work, format string, args ...any) *gatehouse.StepFailure {
	f := mistake("budget_exceeded", format, args...)
	return &gatehouse.StepFailure{Generation: w.step.Generation, Code: f.Code, Detail: f.Detail}
}
