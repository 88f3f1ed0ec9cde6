package storetest

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// budgetClaims: BudgetClaimed sums the claims that were made after a time and not released, by tenant, workflow
// and currency.
func (s *suite) budgetClaims() {
	w, other := s.workflow(tenant, "triage", 1), s.workflow(tenant, "other", 1)
	_, first := s.one(w)
	_, second := s.one(other)
	at := s.now()
	claim := func(st *gatehouse.Step, generation int, most gatehouse.Decimal, currency string, at time.Time) {
		s.Helper()
		s.update(func(tx gatehouse.Tx) error {
			if err := tx.LockBudget(); err != nil {
				return err
			}
			return tx.ClaimBudget(&gatehouse.BudgetClaim{
				Tenant: tenant, Workflow: st.Workflow, StepID: st.ID, Generation: generation, Most: most, Currency: currency,
				At: at,
			}, at.Add(-time.Hour))
		})
	}
	want := func(what, workflow, currency string, since time.Time, sum gatehouse.Decimal) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) error {
			got, err := tx.BudgetClaimed(workflow, currency, since)
			if err == nil && got.Cmp(sum) != 0 {
				s.Errorf("%s: %s, want %s", what, got, sum)
			}
			return err
		})
	}
	before := at.Add(-time.Minute)
	claim(first, 1, "0.25", "USD", at)
	claim(first, 2, "0.0000005", "USD", at)
	claim(second, 1, "1", "USD", at)
	claim(second, 2, "7", "EUR", at)
	want("of the tenant", "", "USD", before, "1.2500005")
	want("of a workflow", "triage", "USD", before, "0.2500005")
	want("in another currency", "", "EUR", before, "7")
	want("of nobody", "nobody", "USD", before, "0")
	want("after them all", "", "USD", at, "0")
	claim(first, 1, "0.5", "USD", at) // the same call
	want("claimed again", "triage", "USD", before, "0.5000005")
	release := func(st *gatehouse.Step, generation int) {
		s.update(func(tx gatehouse.Tx) error { return tx.ReleaseBudget(st.ID, generation) })
	}
	release(first, 1)
	release(first, 1)
	release(first, 9)
	want("settled", "", "USD", before, "1.0000005")
	claim(first, 3, "0.1", "USD", at.Add(2*time.Hour))
	want("what is long past is forgotten", "", "USD", before, "0.1")
	want("in its own currency", "", "EUR", before, "7")
	s.newTenants("acme")
	s.as("acme").view(func(tx gatehouse.ReadTx) error {
		got, err := tx.BudgetClaimed("", "USD", before)
		if err == nil && got.Cmp("0") != 0 {
			s.Errorf("of another tenant: %s", got)
		}
		return err
	})
}
