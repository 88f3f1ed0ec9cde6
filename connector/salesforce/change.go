package salesforce

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// send makes a call that writes. An answer whose status is not in want is a failure.
func (c *Connector) send(
	ctx context.Context, method, path string, header http.Header, body gatehouse.JSON, want ...int,
) (connector.Result, *rest.Answer, *connector.Error) {
	res, a, failed := c.api.Do(ctx, method, path, nil, header, body)
	if failed == nil && !slices.Contains(want, a.Status) {
		failed = c.failure(a)
	}
	return res, a, failed
}

// readSettled reads a record repeatedly until the second of its last change has passed on Salesforce's
// clock. Any later write then sets another time than the one that was read.
func (c *Connector) readSettled(ctx context.Context, call connector.Call) (record, *connector.Error) {
	for read := range 3 {
		if read > 0 {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return record{}, rest.NotSent("timeout", "the time ran out before the record's last change was a second old")
			}
		}
		r, failed := c.before(ctx, call)
		if failed != nil || r.seen.Unix() > r.modified.Unix() {
			return r, failed
		}
	}
	e := rest.NotSent("too_recent", "each read found a change of the last second, or LastModifiedDate is in the future")
	e.RetryAfter = 5 * time.Second
	return record{}, e
}

// update sets fields on the condition that the record was not written since it was read. The answer
// does not contain the new values, so they are read again.
func (c *Connector) update(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	was, failed := c.readSettled(ctx, call)
	if failed != nil {
		return connector.Result{}, failed
	}
	header := http.Header{"If-Unmodified-Since": {was.modified.UTC().Format(http.TimeFormat)}}
	res, _, failed := c.send(ctx, http.MethodPatch, c.path(call.Target.EntityType, call.Target.EntityRef), header,
		call.ProposedChange, http.StatusNoContent, http.StatusOK)
	if failed != nil {
		return res, failed
	}
	res.ExternalID = call.Target.EntityRef
	now, failed := c.after(ctx, call, call.Target.EntityRef)
	if failed != nil {
		return res, failed
	}
	if failed := differs(call.ProposedChange, was, now); failed != nil {
		return res, failed
	}
	of := connector.Fields(call.ProposedChange)
	res.Reversal = &gatehouse.Reversal{
		Operation: opUpdate, Target: call.Target, CurrentState: now.only(of), ProposedChange: was.only(of),
	}
	res.Reversal.Target.Version = now.version
	return res, nil
}

// after reads the result of a change.
func (c *Connector) after(ctx context.Context, call connector.Call, id string) (record, *connector.Error) {
	r, gone, _, failed := c.read(ctx, c.names(call), call.Target.EntityType, id)
	if failed != nil || gone {
		return r, &connector.Error{
			Code: "not_confirmed", Detail: "Salesforce has accepted the change, but the record could not be read " +
				"afterwards",
		}
	}
	return r, nil
}

// differs compares a record with the approved change. If even the time of the last change is the
// same, Salesforce has not applied the update.
func differs(change gatehouse.JSON, was, now record) *connector.Error {
	members, _ := change.Fields()
	var wrong []string
	for _, m := range members {
		if got := now.value(m.Name); !holds(m.Value, got) {
			wrong = append(wrong, m.Name+" is "+rest.Brief(got)+" instead of "+rest.Brief(m.Value))
		}
	}
	if wrong == nil {
		return nil
	}
	e := &connector.Error{Code: "not_as_approved", Detail: "the record was changed, but " + strings.Join(wrong, "; ")}
	if !was.modified.IsZero() && was.modified.Equal(now.modified) {
		e.Kind, e.Detail = connector.Terminal, "Salesforce has dropped the change: "+strings.Join(wrong, "; ")
	}
	return e
}

// remove deletes a record. The record stays in the recycle bin for 15 days, but the REST API cannot
// restore it.
func (c *Connector) remove(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	if _, failed := c.before(ctx, call); failed != nil {
		return connector.Result{}, failed
	}
	res, _, failed := c.send(ctx, http.MethodDelete, c.path(call.Target.EntityType, call.Target.EntityRef), nil, "",
		http.StatusNoContent)
	if failed == nil {
		res.ExternalID = call.Target.EntityRef
	}
	return res, failed
}

// create creates a record at the URL of its key, where Salesforce permits only one. An existing
// record was created by an earlier call, and is left unchanged.
func (c *Connector) create(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	object, field, key := call.Target.EntityType, c.objects[call.Target.EntityType].KeyField, call.TargetKey()
	made, gone, _, failed := c.read(ctx, c.names(call), object, field, key)
	switch {
	case failed != nil:
		return connector.Result{}, rest.NothingSent(failed)
	case !gone:
		return created(call, made, rest.MadeBefore(made.id))
	}
	res, a, failed := c.send(ctx, http.MethodPatch, c.path(object, field, key), nil, call.ProposedChange,
		http.StatusCreated, http.StatusOK, http.StatusNoContent)
	if failed != nil {
		return res, failed
	}
	id := rest.Text(a.JSON(), "id")
	made, gone, _, failed = c.read(ctx, c.names(call), object, field, key)
	if failed != nil || gone || id != "" && id != made.id {
		return res, &connector.Error{
			Code: "not_confirmed", Detail: "the record was made, but could not be read afterwards",
		}
	}
	res.ExternalID = made.id
	return created(call, made, res)
}

// created compares a created record with the approved one, and adds the reversal to the result.
func created(call connector.Call, made record, res connector.Result) (connector.Result, *connector.Error) {
	if failed := differs(call.ProposedChange, record{}, made); failed != nil {
		return res, failed
	}
	res.Reversal = undoing(call, made)
	return res, nil
}

// undoing describes the reversal of a create: a delete, which is refused if the created record has
// changed since.
func undoing(call connector.Call, made record) *gatehouse.Reversal {
	back := &gatehouse.Reversal{
		Operation: opDelete, Target: call.Target, ProposedChange: "{}",
		CurrentState: made.only(connector.Fields(call.ProposedChange)),
	}
	back.Target.EntityRef, back.Target.Version = made.id, made.version
	return back
}

// ReadBack implements [connector.ReadBacker]. It never returns Absent, because an earlier call may
// still arrive.
func (c *Connector) ReadBack(ctx context.Context, call connector.Call) (connector.Finding, connector.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	object, ref := call.Target.EntityType, call.Target.EntityRef
	parts := []string{object, ref}
	if call.Operation == opCreate {
		parts = []string{object, c.objects[object].KeyField, call.TargetKey()}
	}
	now, gone, deleted, failed := c.read(ctx, c.names(call), parts...)
	if failed != nil {
		return connector.Inconclusive, connector.Result{}, failed
	}
	there := !gone && differs(call.ProposedChange, record{}, now) == nil
	if call.Operation == opDelete {
		there, now.id = deleted, ref
	}
	if !there {
		return connector.Inconclusive, connector.Result{}, nil
	}
	return connector.Present, rest.MadeBefore(now.id), nil
}
