package servicenow

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// create creates a record whose correlation_id is the call's key. ServiceNow does not make that
// field unique, so the record is searched for first. The record of an earlier call is left unchanged, and compared like
// a new one.
func (c *Connector) create(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	made, there, failed := c.created(ctx, call)
	if failed != nil {
		return connector.Result{}, rest.NothingSent(failed)
	}
	if there {
		res := connector.Result{ExternalID: made.externalID(), ResponseMetadata: rest.Found(made.json)}
		return res, notAsApproved(call, record{}, made)
	}
	fields, _ := call.ProposedChange.Fields()
	body := gatehouse.ObjectJSON(append(fields,
		gatehouse.Member{Name: "correlation_id", Value: gatehouse.StringJSON(call.TargetKey())})...)
	names := append(connector.Fields(call.ProposedChange), "correlation_id")
	path := tablePath(call.Target.EntityType)
	res, a, failed := c.api.Do(ctx, http.MethodPost, path, fieldParameters(names...), nil, body)
	if failed != nil {
		return res, failed
	}
	result, failed := resultOf(a)
	if failed != nil {
		return res, failed
	}
	made = record{result}
	res.ExternalID = made.externalID()
	if failed := notAsApproved(call, record{}, made); failed != nil {
		failed.Says = a.Text(a.JSON())
		return res, failed
	}
	return res, nil
}

// created searches for the record with the call's key.
func (c *Connector) created(ctx context.Context, call connector.Call) (record, bool, *connector.Error) {
	key := call.TargetKey()
	names := append(connector.Fields(call.ProposedChange), "correlation_id")
	found, failed := c.find(ctx, call.Target.EntityType, "correlation_id="+key, names...)
	for _, r := range found {
		// ServiceNow ignores a condition on an unknown field, so the value is compared here too.
		if r.hasValue("correlation_id", key) {
			return r, true, nil
		}
	}
	return record{}, false, failed
}
