package storetest

import (
	"github.com/gatehouse-dev/gatehouse"
)

// targets: a change of a target marks the open actions on it that expected
// another version, and no others.
func (s *suite) targets() {
	on := func(ref, version string, refs ...string) func(*gatehouse.Action) {
		return func(a *gatehouse.Action) {
			a.Connector, a.Target = "shop", gatehouse.Target{
				EntityType: "item",
				EntityRef:  ref,
				EntityRefs: refs,
				Version:    version,
			}
		}
	}
	seven, eight := s.pending(on("walnuts", "7")), s.pending(on("walnuts", "8"))
	many := s.pending(on("", "", "almonds", "walnuts"))
	s.pending(on("almonds", "7"))
	s.pending(on("", "", `say "walnuts"`, `"walnuts","`, "walnuts\\"))
	s.pending(on("walnuts", "7"), func(a *gatehouse.Action) { a.Target.EntityType = "order" })
	asks := func(about gatehouse.About) func(*gatehouse.Action) {
		return func(a *gatehouse.Action) { a.Approval.About = about.Seal(a.CurrentState) }
	}
	entity := gatehouse.About{Connector: "shop", EntityType: "item", EntityRef: "walnuts", Operation: "update",
		Version: "7"}
	step := s.pending(asks(entity))
	s.same("about", s.find(step.ID).Approval.About, step.Approval.About)
	s.same("about nothing", s.find(seven.ID).Approval.About, (*gatehouse.About)(nil))
	for _, change := range []func(*gatehouse.About){
		func(a *gatehouse.About) { a.Connector = "shop2" },
		func(a *gatehouse.About) { a.EntityType = "items" },
		func(a *gatehouse.About) { a.EntityRef = "walnuts2" },
		func(a *gatehouse.About) { a.EntityRef = `","entity_ref":"walnuts` },
		func(a *gatehouse.About) { a.EntityRef, a.Version = `walnuts","version":"8"}`, "9" },
	} {
		other := entity
		change(&other)
		s.pending(asks(other))
	}
	entity.Version = "8"
	fresh := s.pending(asks(entity))
	open := func(version string, limit int) (ids []string) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) (err error) {
			ids, err = tx.OpenOnTarget(
				gatehouse.TargetChange{Connector: "shop", EntityType: "item", EntityRef: "walnuts", Version: version},
				limit,
			)
			return err
		})
		return ids
	}
	s.same("on another version", open("8", 10), []string{seven.ID, many.ID, step.ID})
	s.same("at most so many", open("8", 1), []string{seven.ID})
	s.same("on no known version", open("", 10), []string{seven.ID, eight.ID, many.ID, step.ID, fresh.ID})
	m := gatehouse.TargetMark{At: s.now(), Version: "8", By: "erp"}
	s.update(func(tx gatehouse.Tx) error { return tx.MarkTarget(seven.Approval.ID, m) })
	s.same("marked", open("8", 10), []string{many.ID, step.ID})
	s.same("marked with another version", open("9", 10), []string{seven.ID, eight.ID, many.ID, step.ID, fresh.ID})
	s.same("the mark", s.find(seven.ID).Approval.TargetChanged, &m)
	s.same("no mark", s.find(eight.ID).Approval.TargetChanged, (*gatehouse.TargetMark)(nil))
	s.update(func(tx gatehouse.Tx) error {
		a, err := tx.LockAction(seven.ID)
		if err == nil {
			s.same("the mark, locked", a.Approval.TargetChanged, &m)
		}
		return err
	})
	s.view(func(tx gatehouse.ReadTx) error {
		page, err := tx.ListActions(gatehouse.ActionFilter{Limit: 20})
		for _, a := range page.Items {
			if a.ID == seven.ID {
				s.same("the mark, in a list", a.Approval.TargetChanged, &m)
			}
		}
		return err
	})
	s.update(func(tx gatehouse.Tx) error { return tx.MarkTarget(step.Approval.ID, m) })
	s.same("the step is marked", open("8", 10), []string{many.ID})
	s.same("the mark of the step", s.find(step.ID).Approval.TargetChanged, &m)
	answered := s.pending()
	s.update(func(tx gatehouse.Tx) error {
		return tx.MoveApproval(answered.Approval.ID, gatehouse.ApprovalRejected)
	})
	s.updateReturns(
		gatehouse.ErrConflict,
		"what has its answer",
		func(tx gatehouse.Tx) error { return tx.MarkTarget(answered.Approval.ID, m) },
	)
	s.as("acme").updateReturns(
		gatehouse.ErrConflict,
		"another tenant's",
		func(tx gatehouse.Tx) error { return tx.MarkTarget(eight.Approval.ID, m) },
	)

	results := []gatehouse.Evaluated{{
		ByID: "prn_check", By: "check", At: s.now(),
		NewEvaluated: gatehouse.NewEvaluated{Digest: eight.Digest, Result: "warn", Score: "0.40", Text: "“new”"},
	}}
	s.update(func(tx gatehouse.Tx) error { return tx.SetEvaluated(eight.Approval.ID, results) })
	s.same("the evaluations", s.find(eight.ID).Approval.Evaluated, results)
	s.same("no evaluations", s.find(seven.ID).Approval.Evaluated, []gatehouse.Evaluated(nil))
	s.update(func(tx gatehouse.Tx) error {
		a, err := tx.LockAction(eight.ID)
		if err == nil {
			s.same("the evaluations, locked", a.Approval.Evaluated, results)
		}
		return err
	})
	s.updateReturns(gatehouse.ErrConflict, "an evaluation of what has its answer",
		func(tx gatehouse.Tx) error { return tx.SetEvaluated(answered.Approval.ID, results) })
	s.as("acme").updateReturns(gatehouse.ErrConflict, "an evaluation of another tenant's",
		func(tx gatehouse.Tx) error { return tx.SetEvaluated(eight.Approval.ID, results) })
}
