package gate

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// readAhead reads what an approval looks at outside of its transaction, the target
// and the policy, so that one transaction decides. It refuses nothing: whatever it
// cannot read, the transaction tells. Its one error is that the caller is another now.
func (r *ruling) readAhead(ctx context.Context) error {
	if r.known != nil || r.decision.Decision != gatehouse.Approve || !r.gate.checksAny() {
		return nil
	}
	c := r.caller
	var a *gatehouse.Action
	var now time.Time
	err := r.gate.Store.Read(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) (err error) {
		a, r.policyKnown = nil, false
		o := gatehouse.PrefetchPlan{Policy: true}
		if c.Presumed != nil {
			o.Key = c.Presumed.Key
		}
		tx.Prefetch(o)
		found, err := tx.FindAction(r.id)
		if proven := usecase.Prove(tx, c); proven != nil || err != nil {
			return errors.Join(proven, err)
		}
		a, now = found, tx.Now()
		if !r.asked(a) || r.refused(a, now) {
			return nil
		}
		return r.lookAtPolicy(tx, a)
	})
	if errors.Is(err, usecase.ErrPresumed) {
		return err
	}
	if a == nil || !r.asked(a) || r.refused(a, now) || r.policyKnown && r.plain(a, r.policyVersion) {
		return nil
	}
	r.known = a
	if !r.policyKnown {
		return nil // look reads it
	}
	return r.judge(ctx)
}

// refused reports whether the transaction will refuse an answer before it looks at
// the target, as far as the action as it was read tells.
func (r *ruling) refused(a *gatehouse.Action, now time.Time) bool {
	ap, person := a.Approval, r.caller.Principal
	return ap == nil || entitled(ap, person, now) != nil || ap.VoteOf(person.Person) != nil || r.decision.Digest != a.Digest
}
