package dispatch

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// The reads of a target outside of a push: for a decision, for a page, and for an unknown outcome.

// acquireReadSlot takes a slot for a read outside of a push, unless the target must not be called. done
// releases the slot.
func (r *Registry) acquireReadSlot(ctx context.Context, tenant, name string) (done func(), failure *connector.Error) {
	if failure := r.beginCall(tenant, name); failure != nil {
		return nil, failure
	}
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	if !r.callLimits.acquireForRead(ctx, name, r.Concurrency(name)) {
		return nil, &connector.Error{
			Kind: connector.NotSent, Code: codeConcurrency,
			Detail: "other calls of this connector were under way for too long",
		}
	}
	return func() { r.callLimits.release(name, r.Concurrency(name)) }, nil
}

// Check compares the target with the proposal's version and pre-image. checked
// is false when the connector cannot compare them. An error is a
// *connector.Error or has code invalid.
func (r *Registry) Check(
	ctx context.Context, a *gatehouse.Action,
) (matches bool, expected, actual gatehouse.JSON, checked bool, err error) {
	if failure := r.unready(a.Tenant, a.Connector); failure != nil {
		return false, "", "", false, failure
	}
	c, _, err := r.operation(a.Tenant, a.Connector, a.Operation)
	if err != nil {
		return false, "", "", false, err
	}
	checker, ok := c.(connector.Checker)
	if !ok {
		return false, "", "", false, nil
	}
	done, failure := r.acquireReadSlot(ctx, a.Tenant, a.Connector)
	if failure != nil {
		return false, "", "", false, failure
	}
	defer done()
	s, err := r.check(ctx, checker, callOf(a, 0))
	if err != nil {
		return false, "", "", false, err
	}
	return s.Matches, s.Expected, s.Actual, !s.Unchecked, nil
}

// Checks reports whether Check asks the target.
func (r *Registry) Checks(a *gatehouse.Action) bool {
	c, ok := r.Lookup(a.Tenant, a.Connector)
	if !ok {
		return true // Check reports the error
	}
	if s, ok := c.(connector.SelectiveChecker); ok {
		return asksTarget(s, callOf(a, 0))
	}
	_, ok = c.(connector.Checker)
	return ok
}

// ChecksAny reports whether any connector is a [connector.Checker].
func (r *Registry) ChecksAny() bool {
	for _, t := range r.snapshot().targets {
		if _, ok := t.Connector.(connector.Checker); ok {
			return true
		}
	}
	return false
}

// ReadsState reports whether ReadState can read the target of an action.
func (r *Registry) ReadsState(a *gatehouse.Action) bool {
	_, ok := r.stateReader(a)
	return ok
}

// stateReader returns the connector of an action, if it can read the state of the action's target.
func (r *Registry) stateReader(a *gatehouse.Action) (connector.StateReader, bool) {
	c, _, err := r.operation(a.Tenant, a.Connector, a.Operation)
	reader, ok := c.(connector.StateReader)
	return reader, err == nil && ok && readsState(reader, callOf(a, 0))
}

// ReadState reads the current version and pre-image of an action's target. The
// state is in canonical form. An error is a *connector.Error, or a
// *gate.UnreadableError when another try cannot succeed.
func (r *Registry) ReadState(ctx context.Context, a *gatehouse.Action) (gatehouse.TargetState, error) {
	reader, ok := r.stateReader(a)
	if !ok {
		return gatehouse.TargetState{}, &gate.UnreadableError{Detail: "the connector cannot read the state of this target"}
	}
	done, failure := r.acquireReadSlot(ctx, a.Tenant, a.Connector)
	if failure != nil {
		return gatehouse.TargetState{}, failure
	}
	defer done()
	s, failure := r.readState(ctx, reader, callOf(a, 0))
	switch {
	case failure != nil && failure.Kind == connector.Terminal:
		return gatehouse.TargetState{}, &gate.UnreadableError{Detail: clip(failure.Detail), Cause: failure}
	case failure != nil:
		return gatehouse.TargetState{}, failure
	case s.Gone:
		return gatehouse.TargetState{Gone: true, ReadAt: time.Now().UTC()}, nil
	case r.redactor(a.Tenant).Finds(s.Version) || r.redactor(a.Tenant).FindsJSON(s.CurrentState):
		// A redacted state would not be the target's, and nobody may read the
		// unredacted one.
		return gatehouse.TargetState{}, &gate.UnreadableError{Detail: "the target's present state holds a secret of " +
			"this server"}
	}
	out := gatehouse.TargetState{Matches: s.Matches, Version: s.Version, ReadAt: time.Now().UTC()}
	if s.CurrentState == "" {
		return out, nil
	}
	var err error
	if out.CurrentState, err = gatehouse.Canonicalize([]byte(s.CurrentState)); err != nil {
		return gatehouse.TargetState{}, &gate.UnreadableError{Detail: "the connector returned a state that is not JSON",
			Cause: err}
	}
	return out, nil
}

// ReadBack asks a target about the earlier attempts of an action whose outcome
// is unknown. The receipt has no id yet; its outcome is applied or not_sent. It
// is nil when nothing is proven. For class C an absence proves nothing either:
// a person decides, because a replay would be a second call. An error is a
// *connector.Error, or has code invalid or busy.
func (r *Registry) ReadBack(ctx context.Context, a *gatehouse.Action, attempts int) (*gatehouse.Receipt, error) {
	c, op, err := r.operation(a.Tenant, a.Connector, a.Operation)
	if err != nil {
		return nil, err
	}
	reader, ok := c.(connector.ReadBacker)
	if !ok {
		return nil, nil
	}
	done, failure := r.acquireReadSlot(ctx, a.Tenant, a.Connector)
	if failure != nil {
		return nil, failure
	}
	defer done()
	finding, res, failure := r.readBack(ctx, reader, callOf(a, attempts))
	if failure != nil {
		return nil, failure
	}
	out := &gatehouse.Receipt{
		Tenant: a.Tenant, ActionID: a.ID, IdempotencyKey: a.IdempotencyKey, Attempt: attempts, Source: sourceReadBack,
		ExternalID: clipTo(res.ExternalID, maxExternalID), RequestMetadata: res.RequestMetadata,
		ResponseMetadata: res.ResponseMetadata,
	}
	switch {
	case finding == connector.Present:
		out.Outcome, out.Reversal, out.Reversible = gatehouse.ReceiptApplied, res.Reversal, res.Reversal != nil
	case finding == connector.Absent && !callsOnce(op.Class):
		out.Outcome = gatehouse.ReceiptNotSent
	default:
		return nil, nil
	}
	return out, nil
}
