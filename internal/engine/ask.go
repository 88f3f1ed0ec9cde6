package engine

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// ReadBack asks a target what became of an action's earlier attempts, for one
// whose outcome is unknown. The receipt, which has no id yet, is of outcome
// applied or not_sent; it is nil when nothing is proven either way, which for
// class C includes an absence: that is left to a person, since a replay would be
// a second call. An error is an *connector.Error, or has code invalid.
func (r *Registry) ReadBack(ctx context.Context, a *gatehouse.Action, attempts int) (*gatehouse.Receipt, error) {
	c, op, err := r.operation(a.Tenant, a.Connector, a.Operation)
	if err != nil {
		return nil, err
	}
	reader, ok := c.(connector.ReadBacker)
	if !ok {
		return nil, nil
	}
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
