package netsuite

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// maxRefs limits the records that one request reads, because their ids are part of its URL.
const maxRefs = 50

// maxDifferences limits the differing records that a check shows.
const maxDifferences = 20

// validateBulk validates the target of a bulk update, and that its state and change have a member for
// each record.
func (e *entity) validateBulk(call connector.Call, v *gatehouse.Violations) {
	target := call.Target
	switch {
	case target.EntityRef != "":
		v.Add("/target/entity_ref", "names one record; a bulk_update has entity_refs")
	case target.Version != "":
		v.Add("/target/version", "is one version for many records; give the values of each in current_state")
	case len(target.EntityRefs) == 0 || len(target.EntityRefs) > maxBulk:
		v.Add("/target/entity_refs", "must be 1 to %d records", maxBulk)
	}
	if len(*v) > 0 {
		return
	}
	for i, ref := range target.EntityRefs {
		e.checkRef("/target/entity_refs/"+strconv.Itoa(i), ref, v)
	}
	eachRecord("/proposed_change", call.ProposedChange, target.EntityRefs, v)
	if pre, err := call.CurrentState.Fields(); err == nil && len(pre) > 0 {
		eachRecord("/current_state", call.CurrentState, target.EntityRefs, v)
	}
	for _, line := range linesOf(call) {
		e.checkState("/current_state"+gatehouse.JoinPointer(line.Target.EntityRef), line.CurrentState, v)
	}
}

// eachRecord checks that an object has an object for each record, and nothing else.
func eachRecord(at string, object gatehouse.JSON, refs []string, v *gatehouse.Violations) {
	named := byName(object)
	for _, ref := range refs {
		if value, ok := named[ref]; !ok || !value.IsObject() {
			v.Add(at, "must have one object for each of entity_refs")
			return
		}
		delete(named, ref)
	}
	if len(named) > 0 {
		v.Add(at, "must name nothing but entity_refs")
	}
}

// readRecords reads the records of a bulk update in their order, nil for one that does not exist.
// The result is shorter than refs if the time or maxRequests is used up.
func (c *Connector) readRecords(ctx context.Context, e *entity, refs []string) ([]*record, *connector.Error) {
	var out []*record
	p, failure := c.pages(ctx, len(refs), func(offset int, within string) *rest.Request {
		q := e.readFields()
		q.Set("refs", strings.Join(refs[offset:min(offset+maxRefs, len(refs))], ","))
		q.Set("within_ms", within)
		return c.restlet(http.MethodGet, q)
	}, func(_ int, doc gatehouse.JSON) {
		var r *record
		if object, _ := doc.Get("fields"); object.IsObject() {
			r = e.recordOf(doc, object, wireGatehouse)
		}
		out = append(out, r)
	})
	return out, asReadFailure(p, failure)
}

// asReadFailure makes the failure of a read transient, because a read can be repeated. The failure of a
// request without an answer may stay not_sent or terminal.
func asReadFailure(p paged, failure *connector.Error) *connector.Error {
	if failure != nil && p.last.answer != nil {
		failure.Kind = connector.Transient
	}
	return rest.ReadFailure(failure)
}

// checkBulk compares as many records as can be read in time. The RESTlet compares each one again.
func (c *Connector) checkBulk(ctx context.Context, e *entity, call connector.Call) (connector.State, error) {
	records, failure := c.readRecords(ctx, e, call.Target.EntityRefs)
	if failure != nil {
		return connector.State{}, failure
	}
	var expected, actual []gatehouse.Member
	lines := linesOf(call)
	for i, r := range records {
		state := e.differences(r, lines[i])
		if state.Matches {
			continue
		}
		if len(expected) == maxDifferences {
			break
		}
		ref := lines[i].Target.EntityRef
		expected = append(expected, gatehouse.Member{Name: ref, Value: state.Expected})
		actual = append(actual, gatehouse.Member{Name: ref, Value: state.Actual})
	}
	if expected == nil {
		return connector.State{Matches: true, Unchecked: len(records) == 0}, nil
	}
	return connector.State{Expected: gatehouse.ObjectJSON(expected...), Actual: gatehouse.ObjectJSON(actual...)}, nil
}

// readBulkState reads the present values of all records.
func (c *Connector) readBulkState(ctx context.Context, e *entity, call connector.Call) (connector.Snapshot, error) {
	records, failure := c.readRecords(ctx, e, call.Target.EntityRefs)
	if failure != nil {
		return connector.Snapshot{}, failure
	}
	if len(records) < len(call.Target.EntityRefs) {
		return connector.Snapshot{}, &connector.Error{
			Kind: connector.Transient, Code: "timeout",
			Detail: "not all records were read within the time or the permitted requests",
		}
	}
	out := connector.Snapshot{Matches: true}
	members := make([]gatehouse.Member, len(records))
	for i, line := range linesOf(call) {
		one := e.snapshot(records[i], line)
		if one.Gone {
			return one, nil
		}
		out.Matches = out.Matches && one.Matches
		members[i] = gatehouse.Member{Name: line.Target.EntityRef, Value: one.CurrentState}
	}
	out.CurrentState = gatehouse.ObjectJSON(members...)
	return out, nil
}

// readBackBulk asks the RESTlet for the outcomes of all lines. For a line in doubt, the record itself
// decides.
func (c *Connector) readBackBulk(
	ctx context.Context, e *entity, call connector.Call,
) (connector.Finding, connector.Result, error) {
	b := e.batch(call)
	p, failure := c.pages(ctx, len(b.lines), func(offset int, within string) *rest.Request {
		return c.restlet(http.MethodGet, url.Values{
			"protocol": {protocol}, "do": {"status"}, "operation": {call.Operation}, "record_type": {e.Record},
			"idempotency_key": {call.TargetKey()}, "offset": {strconv.Itoa(offset)},
			"count": {strconv.Itoa(len(b.lines))}, "within_ms": {within},
		})
	}, b.take)
	if failure != nil {
		return connector.Inconclusive, connector.Result{}, asReadFailure(p, failure)
	}
	var doubtful []*line
	var refs []string
	for _, l := range b.lines {
		switch inDoubt := l.failure != nil && l.failure.Code == "in_doubt"; {
		case l.answer == "", rest.Text(l.answer, "digest") != string(call.Digest), l.failure != nil && !inDoubt:
			return connector.Inconclusive, connector.Result{}, nil
		case inDoubt:
			doubtful, refs = append(doubtful, l), append(refs, l.Target.EntityRef)
		}
	}
	records, failure := c.readRecords(ctx, e, refs)
	if failure != nil {
		return connector.Inconclusive, connector.Result{}, failure
	}
	for i, l := range doubtful {
		if i >= len(records) || records[i] == nil || len(e.differing(records[i], l.ProposedChange)) > 0 {
			return connector.Inconclusive, connector.Result{}, nil
		}
		l.failure = nil
	}
	return connector.Present, c.bulkResult(b, p), nil
}
