package sqlconn

import (
	"context"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// maxDifferences limits how many rows of a bulk operation are shown.
const maxDifferences = 20

// Check compares the rows with the proposal's version and pre-image, and for an insert verifies
// that there is no row. It locks nothing, because Execute compares again.
func (c *Connector) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	p, cerr := c.prepare(ctx, call)
	if cerr != nil {
		return connector.State{}, cerr
	}
	if p.where != nil {
		return c.checkMatch(ctx, p)
	}
	rows, err := readRows(ctx, c.reader, c.dialect, p.table, p.refs, false)
	if err != nil {
		return connector.State{}, c.unreachable(err)
	}
	var expected, actual []gatehouse.Member
	different := 0
	for _, ref := range p.refs {
		d := p.difference(ref, rows[ref])
		if d == nil {
			continue
		}
		if !p.bulk {
			return connector.State{Expected: d.expected, Actual: d.actual}, nil
		}
		if different++; different <= maxDifferences {
			expected = append(expected, gatehouse.Member{Name: ref, Value: d.expected})
			actual = append(actual, gatehouse.Member{Name: ref, Value: d.actual})
		}
	}
	if different == 0 {
		return connector.State{Matches: true}, nil
	}
	if more := different - maxDifferences; more > 0 {
		// No key is empty, so the name "" is free.
		actual = append(actual,
			gatehouse.Member{Name: "", Value: gatehouse.StringJSON(strconv.Itoa(more) + " more rows differ")})
	}
	return connector.State{Expected: gatehouse.ObjectJSON(expected...), Actual: gatehouse.ObjectJSON(actual...)}, nil
}

// Conditional is true for an update or delete of one row, which compares the version or the pre-image
// while writing; for an update or delete of several rows that names a pre-image of each row; for an
// insert that names its key, which requires the row to be absent; and for an upsert, which is one of these.
func (c *Connector) Conditional(call connector.Call) bool {
	op, many, _ := splitOperation(call.Operation)
	switch {
	case op == opUpdateWhere:
		return false
	case op == opInsert:
		return c.cfg.Entities[call.Target.EntityType].KeyFrom != keyFromDatabase
	case many || len(call.Target.EntityRefs) > 0:
		rows, _ := call.CurrentState.Fields()
		return len(rows) > 0 && !slices.ContainsFunc(rows, func(row gatehouse.Member) bool {
			pre, _ := row.Value.Fields()
			return len(pre) == 0
		})
	}
	return true
}

// difference is nil if the row permits the operation.
func (p *plan) difference(ref string, r row) *difference {
	if p.op != opInsert {
		return p.table.compare(r, p.version, p.pre[ref])
	}
	if r == nil {
		return nil
	}
	return &difference{"null", p.image(r, p.comparable(r, p.changed(ref)))}
}
