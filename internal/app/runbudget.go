package app

import (
	"context"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
)

// promised is what the model calls of this process that are under way may cost
// at most, by whose budget it is.
type promised struct {
	mu   sync.Mutex
	most map[promise]gatehouse.Decimal
}

// promise is a budget: of a workflow, or of the tenant when that is "".
type promise struct{ tenant, workflow, currency string }

// reserveBudget reports why a call may not be made: what was spent, with the
// most that this call and those under way can cost, would pass a budget. Else
// it keeps that much until release is called. What other processes have under
// way is not known here: each may pass a budget by that.
func (r *Runs) reserveBudget(ctx context.Context, w *work) (release func(), over *gatehouse.StepFailure, err error) {
	tenant := w.step.Tenant
	budgets := make(map[promise]*Budget, 2)
	if b := w.def.Limits.Budget; b != nil {
		budgets[promise{tenant, w.run.Workflow, b.Currency}] = &Budget{b.Amount, b.Currency, b.Window.D()}
	}
	if b := r.config.Limits(tenant).Budget; b != nil {
		budgets[promise{tenant, "", b.Currency}] = b
	}
	if len(budgets) == 0 {
		return func() {}, nil, nil
	}
	most, currency, known := r.config.Models.Most(tenant, w.spec.Provider, w.with)
	r.promised.mu.Lock()
	defer r.promised.mu.Unlock()
	err = r.gate.store.View(ctx, func(tx gatehouse.ReadTx) error {
		over = nil
		for p, b := range budgets {
			of := "workflow"
			if p.workflow == "" {
				of = "tenant"
			}
			if !known || currency != b.Currency {
				over = exceeded(w, "the budget of the %s is in %s, and what this call costs in that is not known", of, b.Currency)
				return nil
			}
			spent, err := tx.Spent(tenant, p.workflow, b.Currency, tx.Now().Add(-b.Window))
			if err != nil {
				return err
			}
			underWay := r.promised.most[p]
			if underWay == "" {
				underWay = "0"
			}
			if spent.Add(underWay).Add(most).Cmp(b.Amount) > 0 {
				over = exceeded(w, "the budget of the %s is %s %s in %s: %s are spent, calls under way may cost %s, and this one %s",
					of, b.Amount, b.Currency, gatehouse.Duration(b.Window), spent, underWay, most)
				// What is under way may come to less.
				over.Retryable = spent.Add(most).Cmp(b.Amount) <= 0
				return nil
			}
		}
		return nil
	})
	if err != nil || over != nil {
		return nil, over, err
	}
	for p := range budgets {
		if r.promised.most[p] == "" {
			r.promised.most[p] = "0"
		}
		r.promised.most[p] = r.promised.most[p].Add(most)
	}
	return func() {
		r.promised.mu.Lock()
		defer r.promised.mu.Unlock()
		for p := range budgets {
			if r.promised.most[p] = r.promised.most[p].Sub(most); r.promised.most[p].IsZero() {
				delete(r.promised.most, p)
			}
		}
	}, nil, nil
}

func exceeded(w *work, format string, args ...any) *gatehouse.StepFailure {
	f := mistake("budget_exceeded", format, args...)
	return &gatehouse.StepFailure{Generation: w.step.Generation, Code: f.Code, Detail: f.Detail}
}
