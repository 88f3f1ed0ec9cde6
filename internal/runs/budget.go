package runs

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// budget bounds the cost of the model calls of a workflow or, if the workflow is "", of the
// tenant.
type budget struct {
	workflow string
	*Budget
}

// claimAge is the age at which a claim on a budget is deleted: longer than any
// budget's window.
const claimAge = 400 * 24 * time.Hour

// reserveBudget stores a claim for the maximum cost of a call. If the amount spent, the claims of calls under way
// and this maximum together exceed a budget, or if the maximum is not known in the budget's currency, it stores
// nothing and returns the reason, over. Without a budget it does nothing. All processes see the claim. It survives
// a crash of this process, since the call may have been made. The transaction that stores the call's cost removes
// the claim.
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

	most, currency, known := r.config.Models.MaxCost(tenant, w.spec.Provider, w.with)
	err = r.Update(ctx, tenant, nil, func(tx gatehouse.Tx) error {
		over = nil
		if err := tx.LockBudget(); err != nil {
			return err
		}
		for _, b := range budgets {
			of := "workflow"
			if b.workflow == "" {
				of = "tenant"
			}
			if !known || currency != b.Currency {
				over = exceeded(w,
					"the budget of the %s is in %s, and the cost of this call in that currency is not known", of, b.Currency)
				return nil
			}

			since := tx.Now().Add(-b.Window)
			// Claims first: a call that ends between the two reads removes its claim and stores its cost. So it is
			// counted at least once.
			claimed, err := tx.BudgetClaimed(b.workflow, b.Currency, since)
			if err != nil {
				return err
			}
			spent, err := tx.Spent(b.workflow, b.Currency, since)
			if err != nil {
				return err
			}
			if spent.Add(claimed).Add(most).Cmp(b.Amount) > 0 {
				over = exceeded(w,
					"the budget of the %s is %s %s in %s: %s are spent, calls under way may cost %s, and this one %s",
					of, b.Amount, b.Currency, gatehouse.Duration(b.Window), spent, claimed, most)
				// The calls under way may cost less than claimed.
				over.Retryable = spent.Add(most).Cmp(b.Amount) <= 0
				return nil
			}
		}
		return tx.ClaimBudget(&gatehouse.BudgetClaim{
			Tenant: tenant, Workflow: w.run.Workflow, StepID: w.step.ID, Generation: w.step.Generation, Most: most,
			Currency: currency, At: tx.Now(),
		}, tx.Now().Add(-claimAge))
	})
	return over, err
}

func exceeded(w *work, format string, args ...any) *gatehouse.StepFailure {
	return new(w.failure(mistake("budget_exceeded", format, args...)))
}
