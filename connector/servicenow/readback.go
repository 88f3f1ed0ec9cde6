package servicenow

import (
	"context"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// ReadBack implements [connector.ReadBacker]. It never returns Absent, because an earlier call may
// still arrive, and ServiceNow hides records that the user may not read.
func (c *Connector) ReadBack(ctx context.Context, call connector.Call) (connector.Finding, connector.Result, error) {
	finding, res, failed := c.readBack(ctx, call)
	if failed != nil {
		return connector.Inconclusive, connector.Result{}, failed
	}
	return finding, res, nil
}

func (c *Connector) readBack(
	ctx context.Context, call connector.Call,
) (connector.Finding, connector.Result, *connector.Error) {
	var found record
	var there bool
	var failed *connector.Error
	switch call.Operation {
	case opCreate:
		found, there, failed = c.created(ctx, call)
		there = there && notAsApproved(call, record{}, found) == nil
	case opWorkNote, opComment:
		found, there, failed = c.noted(ctx, call)
		there = there && noteDiffers(call, found) == nil
		found = withoutText(found)
	case opAddLabel:
		var id string
		if id, failed = c.labelID(ctx, call); failed == nil {
			found, there, failed = c.labelEntry(ctx, call, id)
		}
	case opUpdate, opAssign:
		var gone bool
		found, gone, failed = c.read(ctx, call)
		there = failed == nil && !gone && notAsApproved(call, record{}, found) == nil
	}
	if failed != nil || !there {
		return connector.Inconclusive, connector.Result{}, failed
	}
	on, gone := found, false
	if call.Operation != opCreate && !changesRecord(call.Operation) { // found is a note or a label's entry
		on, gone, failed = c.read(ctx, call)
	}
	if failed != nil || gone {
		return connector.Inconclusive, connector.Result{}, failed
	}
	return connector.Present, connector.Result{ExternalID: on.externalID(), ResponseMetadata: rest.Found(found.json)}, nil
}
