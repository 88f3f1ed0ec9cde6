package netsuite

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// The ways of reading a record.
const (
	readsNothing = iota
	readsREST
	readsRESTlet
)

// reader is how an update's target is read.
func (c *Connector) reader() int {
	switch {
	case c.cfg.via(opUpdate) == viaREST:
		return readsREST
	case c.cfg.RESTlet.Protocol == protocolGatehouse:
		return readsRESTlet
	case c.cfg.RESTlet.Reads == viaREST:
		return readsREST
	}
	return readsNothing
}

// readerOf is how a target of this entity is read. The record service cannot read a single line.
func (c *Connector) readerOf(e *entity) int {
	if how := c.reader(); e.Line == nil || how != readsREST {
		return how
	}
	return readsNothing
}

// record is a target that was read, in canonical values.
type record struct {
	id       string
	modified string
	fields   map[string]gatehouse.JSON
}

// state returns the named fields as an object.
func (r *record) state(names []string) gatehouse.JSON {
	members := make([]gatehouse.Member, len(names))
	for i, name := range names {
		members[i] = gatehouse.Member{Name: name, Value: r.fields[name]}
	}
	return gatehouse.ObjectJSON(members...)
}

// readRecord reads a target; nil if it does not exist. A failure proves nothing about the target,
// and the read can be repeated.
func (c *Connector) readRecord(ctx context.Context, e *entity, ref string, how int) (*record, *connector.Error) {
	var x *exchange
	var failure *connector.Error
	w := wireREST
	if how == readsRESTlet {
		w = wireGatehouse
		x, failure = c.do(ctx, c.restlet(http.MethodGet, e.readParameters(ref)))
	} else {
		x, failure = c.do(ctx, c.record(http.MethodGet, e, ref))
	}
	if failure != nil {
		return nil, rest.ReadFailure(failure)
	}
	if x.answer.Status == http.StatusNotFound && how == readsREST || errorCode(x.doc) == "RCRD_DSNT_EXIST" {
		return nil, nil
	}
	object := x.doc
	if how == readsRESTlet {
		if outcome, _ := x.doc.Get("outcome"); outcome == `"not_found"` {
			return nil, nil
		}
		object, _ = x.doc.Get("fields")
	}
	if x.answer.Status != http.StatusOK || !object.IsObject() {
		failure = x.refusal(false)
		if failure.Code != "clock_skew" {
			failure.Kind, failure.Code = connector.Transient, "check_failed"
		}
		return nil, failure
	}
	return e.recordOf(x.doc, object, w), nil
}

// recordOf builds a record: id and modification time are members of doc, the fields are members of object.
func (e *entity) recordOf(doc, object gatehouse.JSON, w wire) *record {
	out := &record{fields: make(map[string]gatehouse.JSON, len(e.fields))}
	out.id = rest.Text(doc, "ns_internal_id")
	out.modified = rest.Text(doc, "lastmodified")
	if w == wireREST {
		out.id, out.modified = rest.Text(doc, "id"), rest.Text(doc, "lastModifiedDate")
	}
	for name, f := range e.fields {
		key := f.wireName(w)
		if f.Type == typeLines {
			key = f.Sublist
		}
		value, ok := object.Get(key)
		if !ok && w != wireREST {
			continue
		}
		out.fields[name] = f.read(value, w)
	}
	return out
}

// readParameters ask Gatehouse's RESTlet for all fields of a record or a line.
func (e *entity) readParameters(ref string) url.Values {
	id, line := e.split(ref)
	q := e.readFields()
	q.Set("ns_internal_id", id)
	if e.Line != nil {
		q.Set("value", line)
	}
	return q
}

// readFields are the parameters of a read, without the id of the record or the line.
func (e *entity) readFields() url.Values {
	q := url.Values{"protocol": {protocol}, "do": {"read"}, "record_type": {e.Record}}
	var names []string
	for _, f := range e.fields {
		if f.Type != typeLines {
			names = append(names, f.Field.Field)
		}
	}
	slices.Sort(names)
	q.Set("fields", strings.Join(slices.Compact(names), ","))
	if e.Line != nil {
		q.Set("sublist", e.Line.Sublist)
		q.Set("key", e.Line.Key)
	}
	return q
}

// differences compares a record with the call's description of it.
func (e *entity) differences(r *record, call connector.Call) connector.State {
	if r == nil {
		return connector.State{Expected: expectation(call), Actual: "null"}
	}
	if call.Target.Version != "" && call.Target.Version != r.modified {
		return rest.OtherVersion(call.Target.Version, r.modified)
	}
	return rest.Compare(call, func(m gatehouse.Member) (gatehouse.JSON, bool) {
		got := r.fields[m.Name]
		return got, e.fields[m.Name].same(m.Value, got)
	})
}

func expectation(call connector.Call) gatehouse.JSON {
	if call.Target.Version != "" {
		return gatehouse.StringJSON(call.Target.Version)
	}
	if call.CurrentState != "" {
		return call.CurrentState
	}
	return "{}"
}

// differing lists the members of a change whose values the record does not have.
func (e *entity) differing(r *record, change gatehouse.JSON) []string {
	members, _ := change.Fields()
	var out []string
	for _, m := range members {
		if got, ok := r.fields[m.Name]; !ok || !e.fields[m.Name].same(m.Value, got) {
			out = append(out, m.Name)
		}
	}
	return out
}

// Checks implements [connector.SelectiveChecker].
func (c *Connector) Checks(call connector.Call) bool {
	e, v := c.validate(call)
	return len(v) == 0 && call.Operation != opCreate && c.readerOf(e) != readsNothing
}

// Check implements [connector.Checker].
func (c *Connector) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	e, v := c.validate(call)
	switch {
	case len(v) > 0:
		return connector.State{}, rest.Invalid(v.Err())
	case call.Operation == opCreate:
		return connector.State{Matches: true}, nil
	case c.readerOf(e) == readsNothing:
		return connector.State{Matches: true, Unchecked: true}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if call.Operation == opBulkUpdate {
		return c.checkBulk(ctx, e, call)
	}
	r, failure := c.readRecord(ctx, e, call.Target.EntityRef, c.readerOf(e))
	if failure != nil {
		return connector.State{}, failure
	}
	return e.differences(r, call), nil
}

// ReadsState implements [connector.StateReader].
func (c *Connector) ReadsState(call connector.Call) bool { return c.Checks(call) }

// ReadState implements [connector.StateReader].
func (c *Connector) ReadState(ctx context.Context, call connector.Call) (connector.Snapshot, error) {
	if !c.ReadsState(call) {
		return connector.Snapshot{}, rest.NoState()
	}
	e := c.entities[call.Target.EntityType]
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if call.Operation == opBulkUpdate {
		return c.readBulkState(ctx, e, call)
	}
	r, failure := c.readRecord(ctx, e, call.Target.EntityRef, c.readerOf(e))
	if failure != nil {
		return connector.Snapshot{}, failure
	}
	return e.snapshot(r, call), nil
}

// snapshot is the present state of one record, in the form that a new proposal of the call needs.
func (e *entity) snapshot(r *record, call connector.Call) connector.Snapshot {
	if r == nil {
		return connector.Snapshot{Gone: true}
	}
	names := connector.Fields(call.CurrentState)
	for _, name := range connector.Fields(call.ProposedChange) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	out := connector.Snapshot{Matches: e.differences(r, call).Matches, CurrentState: r.state(names)}
	if call.Target.Version != "" {
		out.Version = r.modified
	}
	return out
}

// ReadBack implements [connector.ReadBacker]. It never returns Absent, because an earlier call may
// still arrive.
func (c *Connector) ReadBack(ctx context.Context, call connector.Call) (connector.Finding, connector.Result, error) {
	e, v := c.validate(call)
	if len(v) > 0 {
		return connector.Inconclusive, connector.Result{}, rest.Invalid(v.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if call.Operation == opBulkUpdate {
		return c.readBackBulk(ctx, e, call)
	}
	if c.cfg.via(call.Operation) == viaRESTlet && c.cfg.RESTlet.Protocol == protocolGatehouse {
		return c.readBackKey(ctx, e, call)
	}
	ref, how := call.Target.EntityRef, c.readerOf(e)
	if call.Operation == opCreate {
		if c.cfg.via(opCreate) != viaREST {
			return connector.Inconclusive, connector.Result{}, nil
		}
		ref, how = "eid:"+call.TargetKey(), readsREST
	}
	if how == readsNothing {
		return connector.Inconclusive, connector.Result{}, nil
	}
	r, failure := c.readRecord(ctx, e, ref, how)
	switch {
	case failure != nil:
		return connector.Inconclusive, connector.Result{}, failure
	case r == nil || len(e.differing(r, call.ProposedChange)) > 0:
		return connector.Inconclusive, connector.Result{}, nil
	}
	res := c.found(e, call, r)
	return connector.Present, res, nil
}

// Conditional implements [connector.Conditional]. It is true for an update by Gatehouse's RESTlet if the
// call, or each line of a bulk update, names a version or a pre-image. The RESTlet compares them with
// the record, and saves only if nobody has saved the record since.
func (c *Connector) Conditional(call connector.Call) bool {
	if call.Operation == opCreate || c.cfg.class(call.Operation) != connector.ClassB {
		return false
	}
	lines := []connector.Call{call}
	if call.Operation == opBulkUpdate {
		lines = linesOf(call)
	}
	return !slices.ContainsFunc(lines, func(line connector.Call) bool {
		pre, _ := line.CurrentState.Fields()
		return line.Target.Version == "" && len(pre) == 0
	})
}
