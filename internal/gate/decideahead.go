package gate

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// readAhead reads the action and the policy before the transaction of an approval, which
// then need not restart to have them prepared. It refuses nothing: the transaction reports
// what cannot be read. It fails when the caller has changed, or when the context ends.
func (r *ruling) readAhead(ctx context.Context) error {
	c := r.caller
	_, expected := r.gate.prepared.Load(c.Principal.Tenant)
	if r.known != nil || r.decision.Decision != gatehouse.Approve || !expected && !r.gate.checksAny() {
		return nil
	}
	var o *gatehouse.OpenedDecision
	var now time.Time
	decides := func() bool { return o.Action != nil && r.approvesPending(o.Action) && !r.refused(o.Action, now) }
	_ = r.gate.Store.Read(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) error {
		r.policyKnown = false
		found, err := tx.FindDecision(gatehouse.DecisionQuery{By: c, ActionID: r.id})
		if err != nil {
			return err
		}
		if o, now = found, tx.Now(); decides() {
			return r.readPolicy(tx, o.Action, o.PolicyVersion, o.Proposer)
		}
		return nil
	})
	if o == nil {
		return nil
	}
	if err := usecase.Verify(c, o.CallerFacts); err != nil {
		return err
	}
	if !decides() {
		return nil
	}
	if r.policyKnown && r.needsNoPreparation(o.Action, r.policyVersion) {
		r.gate.prepared.Delete(c.Principal.Tenant)
		return nil
	}
	r.known = o.Action
	if !r.policyKnown {
		return nil // prepare reads it
	}
	return r.judge(ctx)
}

// refused reports whether the transaction will refuse an answer before it needs the target. It
// judges by the action as it was read.
func (r *ruling) refused(a *gatehouse.Action, now time.Time) bool {
	ap, person := a.Approval, r.caller.Principal
	return ap == nil || entitled(ap, person, now) != nil || ap.VoteOf(person.Person) != nil ||
		r.decision.Digest != a.Digest
}
