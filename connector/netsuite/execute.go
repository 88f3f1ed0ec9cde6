package netsuite

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// Execute implements [connector.Connector]. It writes each record at most once. An update of class C
// reads the record before and after the write, if the record can be read.
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	e, v := c.validate(call)
	if len(v) > 0 {
		return connector.Result{}, rest.Invalid(v.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var res connector.Result
	var failure *connector.Error
	switch restlet := c.cfg.via(call.Operation) == viaRESTlet; {
	case call.Operation == opBulkUpdate:
		res, failure = c.bulkUpdate(ctx, e, call)
	case call.Operation == opUpdate && c.cfg.class(opUpdate) == connector.ClassC:
		res, failure = c.update(ctx, e, call)
	case restlet:
		res, _, failure = c.callRESTlet(ctx, e, call, nil)
	default:
		res, failure = c.create(ctx, e, call)
	}
	if failure != nil {
		return res, failure
	}
	return res, nil
}

// update makes an update of class C, for which NetSuite has no conditional write. If the record can be
// read, update compares it with the pre-image before the write, and with the change after the write.
func (c *Connector) update(ctx context.Context, e *entity, call connector.Call) (connector.Result, *connector.Error) {
	id, _ := e.split(call.Target.EntityRef)
	unlock := c.records.Lock(ctx, e.Record+"/"+id)
	if unlock == nil {
		return connector.Result{}, rest.NotSent("timeout",
			"the time ran out while another change of the record was under way")
	}
	defer unlock()
	var before *record
	if c.readerOf(e) != readsNothing {
		var failure *connector.Error
		if before, failure = c.readRecord(ctx, e, call.Target.EntityRef, c.readerOf(e)); failure != nil {
			return connector.Result{}, rest.NothingSent(failure)
		}
		if state := e.differences(before, call); !state.Matches {
			return connector.Result{}, rest.Changed(state)
		}
	}
	if c.cfg.via(opUpdate) == viaRESTlet {
		res, after, failure := c.callRESTlet(ctx, e, call, before)
		if failure == nil && after == nil {
			failure = c.verify(ctx, e, call, &res, call.Target.EntityRef)
		}
		return res, failure
	}
	r := c.record(http.MethodPatch, e, id)
	r.SetJSON(e.recordBody(call.ProposedChange))
	x, failure := c.do(ctx, r)
	res := connector.Result{RequestMetadata: r.Metadata()}
	if failure != nil {
		return res, failure
	}
	if x.answer.Status != http.StatusNoContent && x.answer.Status != http.StatusOK {
		res.ResponseMetadata = x.answer.Metadata(x.doc)
		return res, x.refusal(false)
	}
	res.ExternalID = id
	res.ResponseMetadata = c.receiptMetadata(x, e, id)
	res.Reversal = e.reversal(call, before)
	return res, c.verify(ctx, e, call, &res, id)
}

// create creates a record with the key as its external id. A record that an earlier attempt has created is
// compared, and left unchanged: the same write again would undo what others have changed since.
func (c *Connector) create(ctx context.Context, e *entity, call connector.Call) (connector.Result, *connector.Error) {
	eid := "eid:" + call.TargetKey()
	if call.Attempt > 1 {
		made, failure := c.readRecord(ctx, e, eid, readsREST)
		switch {
		case failure != nil:
			return connector.Result{}, rest.NothingSent(failure)
		case made != nil:
			return c.found(e, call, made), e.asApproved(made, call.ProposedChange)
		}
	}
	r := c.record(http.MethodPut, e, eid)
	r.SetJSON(e.recordBody(call.ProposedChange))
	x, failure := c.do(ctx, r)
	res := connector.Result{RequestMetadata: r.Metadata()}
	if failure != nil {
		return res, failure
	}
	switch x.answer.Status {
	case http.StatusNoContent, http.StatusCreated, http.StatusOK:
	default:
		res.ResponseMetadata = x.answer.Metadata(x.doc)
		return res, x.refusal(false)
	}
	location := x.answer.Header.Get("Location")
	id := location[strings.LastIndexByte(location, '/')+1:]
	if !recordRef.MatchString(id) {
		id = ""
	}
	res.ExternalID = id
	res.ResponseMetadata = c.receiptMetadata(x, e, id)
	failure = c.verify(ctx, e, call, &res, eid)
	res.Reversal = e.undoCreate(call, res.ExternalID)
	return res, failure
}

// verify reads the result of a change. If it cannot be read, the change counts as applied, because
// NetSuite has confirmed it, and the receipt says that the values were not compared.
func (c *Connector) verify(
	ctx context.Context, e *entity, call connector.Call, res *connector.Result, ref string,
) *connector.Error {
	note := func(name string, value gatehouse.JSON) {
		res.ResponseMetadata = rest.With(res.ResponseMetadata, name, value)
	}
	how := c.readerOf(e)
	if call.Operation == opCreate {
		how = readsREST
	}
	if how == readsNothing {
		note("compared", "false")
		return nil
	}
	r, failure := c.readRecord(ctx, e, ref, how)
	note("compared", gatehouse.MustJSON(failure == nil && r != nil))
	if r == nil {
		return nil
	}
	if res.ExternalID == "" && r.id != "" {
		res.ExternalID = r.id
		note("ns_internal_id", gatehouse.StringJSON(r.id))
	}
	return e.asApproved(r, call.ProposedChange)
}

// asApproved compares the result of a change with the approved change. The change has been made, so
// a failure is ambiguous.
func (e *entity) asApproved(r *record, change gatehouse.JSON) *connector.Error {
	names := e.differing(r, change)
	if len(names) == 0 {
		return nil
	}
	return &connector.Error{
		Kind: connector.Ambiguous, Code: "not_as_approved",
		Detail: "NetSuite saved values that differ from the approved ones: " + rest.Brief(r.state(names)),
	}
}

// receiptMetadata is the answer's metadata with the members that all NetSuite receipts have.
func (c *Connector) receiptMetadata(x *exchange, e *entity, id string) gatehouse.JSON {
	j := rest.With(x.answer.Metadata(x.doc), "record_type", gatehouse.StringJSON(e.Record))
	if id != "" {
		j = rest.With(j, "ns_internal_id", gatehouse.StringJSON(id))
	}
	at := rest.Text(x.doc, "applied_at")
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		date, err := http.ParseTime(x.answer.Header.Get("Date"))
		if err != nil {
			date = time.Now()
		}
		at = date.UTC().Format(time.RFC3339)
	}
	j = rest.With(j, "applied_at", gatehouse.StringJSON(at))
	if r := c.cfg.RESTlet; r != nil && strings.HasSuffix(x.request.URL.Path, "/restlet.nl") {
		j = rest.With(j, "script", gatehouse.StringJSON(r.Script))
		j = rest.With(j, "deploy", gatehouse.StringJSON(r.Deploy))
	}
	return j
}

// reversal describes the reversal of an update: to the values that were read before, else to those
// in the proposal's pre-image.
func (e *entity) reversal(call connector.Call, before *record) *gatehouse.Reversal {
	members, _ := call.ProposedChange.Fields()
	for i, m := range members {
		old, ok := call.CurrentState.Get(m.Name)
		if before != nil {
			old, ok = before.fields[m.Name]
		}
		if !ok {
			return nil
		}
		members[i].Value = old
	}
	back := call.Target
	back.Version = ""
	return &gatehouse.Reversal{
		Operation: opUpdate, Target: back, CurrentState: call.ProposedChange,
		ProposedChange: gatehouse.ObjectJSON(members...),
	}
}

// inactive is the name of the boolean field that makes a record inactive.
const inactive = "inactive"

func (e *entity) hasInactive() bool {
	f, ok := e.fields[inactive]
	return ok && f.Type == typeBoolean
}

// undoCreate describes the reversal of a create: an update that makes the new record inactive. It is nil
// if the entity has no boolean field inactive.
func (e *entity) undoCreate(call connector.Call, id string) *gatehouse.Reversal {
	if was, ok := call.ProposedChange.Get(inactive); id == "" || !e.hasInactive() || ok && was == "true" {
		return nil
	}
	return &gatehouse.Reversal{
		Operation: opUpdate, Target: gatehouse.Target{EntityType: call.Target.EntityType, EntityRef: id},
		CurrentState: `{"inactive":false}`, ProposedChange: `{"inactive":true}`,
	}
}

// found is the result of a call whose effect was read back.
func (c *Connector) found(e *entity, call connector.Call, r *record) connector.Result {
	res := connector.Result{ExternalID: r.id}
	if res.ExternalID == "" {
		res.ExternalID, _ = e.split(call.Target.EntityRef)
	}
	res.ResponseMetadata = gatehouse.ObjectJSON(
		gatehouse.Member{Name: "ns_internal_id", Value: gatehouse.StringJSON(res.ExternalID)},
		gatehouse.Member{Name: "record_type", Value: gatehouse.StringJSON(e.Record)},
		gatehouse.Member{Name: "lastmodified", Value: gatehouse.StringJSON(r.modified)},
	)
	if call.Operation == opCreate {
		res.Reversal = e.undoCreate(call, res.ExternalID)
	} else {
		res.Reversal = e.reversal(call, nil)
	}
	return res
}
