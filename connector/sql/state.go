package sqlconn

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// ReadsState is true for operations on existing rows: an update or a delete, of one row or of many,
// and an upsert. It is true for an update_where if current_state names the number of rows, which is
// then the state.
func (c *Connector) ReadsState(call connector.Call) bool {
	op, _, ok := splitOperation(call.Operation)
	return ok && op != opInsert && (op != opUpdateWhere || !isNull(call.CurrentState))
}

// ReadState reads the rows of the call by their keys; for an update_where, it counts the matching
// rows. It locks nothing.
func (c *Connector) ReadState(ctx context.Context, call connector.Call) (connector.Snapshot, error) {
	if !c.ReadsState(call) {
		return connector.Snapshot{}, fail(connector.Terminal, "unsupported",
			"this operation has no state that can be read", nil)
	}
	p, cerr := c.prepare(ctx, call)
	if cerr != nil {
		return connector.Snapshot{}, cerr
	}
	if p.where != nil {
		return c.readMatch(ctx, p)
	}
	rows, err := readRows(ctx, c.reader, c.dialect, p.table, p.refs, false)
	if err != nil {
		return connector.Snapshot{}, c.unreachable(err)
	}

	out := connector.Snapshot{Matches: true}
	var states []gatehouse.Member
	for _, ref := range p.refs {
		r := rows[ref]
		if r == nil && p.upsert { // then the upsert inserts
			return connector.Snapshot{Matches: p.op == opInsert}, nil
		}
		if r == nil {
			return connector.Snapshot{Gone: true}, nil
		}
		if p.difference(ref, r) != nil {
			out.Matches = false
		}
		if image := p.image(r, p.described(ref, r)); image != "{}" {
			states = append(states, gatehouse.Member{Name: ref, Value: image})
		}
	}
	switch {
	case len(states) == 0:
	case p.bulk:
		out.CurrentState = gatehouse.ObjectJSON(states...)
	default:
		out.CurrentState = states[0].Value
	}
	if p.version != "" || p.upsert && p.table.version >= 0 {
		out.Version = text(rows[p.refs[0]][p.table.version].json)
	}
	return out, nil
}

// described lists the columns of a row's pre-image, then the other columns that an update or upsert
// sets. Of the latter it leaves out the version, and columns whose values have no exact JSON form.
func (p *plan) described(ref string, r row) []int {
	var columns []int
	taken := make(map[int]bool)
	for _, f := range p.pre[ref] {
		i := p.table.byName[f.Name]
		columns, taken[i] = append(columns, i), true
	}
	if p.op != opUpdate && !p.upsert {
		return columns
	}
	for _, i := range p.comparable(r, p.namedColumns(ref)) {
		if !taken[i] && i != p.table.version {
			columns = append(columns, i)
		}
	}
	return columns
}
