package dispatch

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// ReadBack asks a target about the earlier attempts of an action whose outcome
// is unknown. The receipt has no id yet; its outcome is applied or not_sent. It
// is nil when nothing is proven. For class C an absence proves nothing either:
// a person decides, because a replay would be a second call. An error is a
// *connector.Error or has code invalid.
func (r *Registry) ReadBack(ctx context.Context, a *gatehouse.Action, attempts int) (*gatehouse.Receipt, error) {
	c, op, err := r.operation(a.Tenant, a.Connector, a.Operation)
	if err != nil {
		return nil, err
	}
	reader, ok := c.(connector.ReadBacker)
	if !ok {
		return nil, nil
	}
	done, failure := r.begin(ctx, a.Tenant, a.Connector)
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
		ExternalID: res.ExternalID, RequestMetadata: res.RequestMetadata, ResponseMetadata: res.ResponseMetadata,
	}
	switch {
	case finding == connector.Present:
		out.Outcome, out.Reversal, out.Reversible = gatehouse.ReceiptApplied, res.Reversal, res.Reversal != nil
	case finding == connector.Absent && !once(op.Class):
		out.Outcome = gatehouse.ReceiptNotSent
	default:
		return nil, nil
	}
	return out, nil
}
