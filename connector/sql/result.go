package sqlconn

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// maxReversal limits the JSON of a reversal, in bytes: it must fit in a proposal's body.
const maxReversal = 512 << 10

// maxImage limits each image in a receipt, in bytes.
const maxImage = 16 << 10

// spell asks the database how it writes an approved value that differs from the text in the row. It asks only for
// types whose values have several spellings, such as {1, 2} for {1,2}.
func (c *Connector) spell(ctx context.Context, q querier, p *plan, after map[string]row) error {
	p.spelled = make(map[columnValue]gatehouse.JSON)
	for _, ref := range p.refs {
		for _, f := range p.changeOf(ref) {
			i := p.table.byName[f.Name]
			col := p.table.columns[i]
			_, asked := p.spelled[columnValue{i, f.Value}]
			if after[ref] == nil || col.spellExpr == "" || asked || col.equal(f.Value, after[ref][i].json) {
				continue
			}
			var written any
			args := []any{c.dialect.bind(col, f.Value)}
			if err := queryOne(ctx, q, "SELECT "+col.spellExpr, args, &written); err != nil {
				return err
			}
			value, err := c.dialect.decode(col, written)
			if err != nil {
				return err
			}
			p.spelled[columnValue{i, f.Value}] = value.json
		}
	}
	return nil
}

// asApproved reports whether a column holds the approved value, in the database's spelling or in the proposal's.
func (p *plan) asApproved(column int, want, got gatehouse.JSON) bool {
	col := p.table.columns[column]
	written := p.spelled[columnValue{column, want}]
	return col.equal(want, got) || !isNull(written) && col.equal(written, got)
}

// verify compares the written values with the approved ones.
func (p *plan) verify(before, after map[string]row) error {
	for _, ref := range p.refs {
		r := after[ref]
		if p.op == opDelete {
			if r != nil {
				return &refusal{"not_as_approved", "the row " + gatehouse.Quote(ref) + " is still there after the delete"}
			}
			continue
		}
		if r == nil {
			return &refusal{"not_as_approved", "after the change, no row has the key " + gatehouse.Quote(ref)}
		}
		for _, f := range p.changeOf(ref) {
			i := p.table.byName[f.Name]
			col := p.table.columns[i]
			if !p.asApproved(i, f.Value, r[i].json) {
				return &refusal{"not_as_approved", fmt.Sprintf("column %s (%s) would hold %s instead of %s",
					col.name, col.decl, clip(r[i].json), clip(f.Value))}
			}
		}
		if err := p.verifyVersion(before[ref], r); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) verifyVersion(before, after row) error {
	v := p.table.version
	if !p.table.raisesVersion() || p.op != opUpdate {
		return nil
	}
	old := gatehouse.Decimal("0")
	if !isNull(before[v].json) {
		var ok bool
		if old, ok = decimal(before[v].json); !ok {
			return &refusal{"not_as_approved", "the version is not a number"}
		}
	}
	if got, ok := decimal(after[v].json); !ok || got.Cmp(old.Add("1")) != 0 {
		return &refusal{"not_as_approved", "the version was not raised by one"}
	}
	return nil
}

// result describes the applied change for the receipt.
func (p *plan) result(before, after map[string]row) connector.Result {
	request := []gatehouse.Member{
		{Name: "statement", Value: gatehouse.StringJSON(p.op)},
		{Name: "table", Value: gatehouse.StringJSON(p.table.entity.Table)},
		{Name: "rows", Value: gatehouse.JSON(strconv.Itoa(len(p.refs)))},
	}
	response := []gatehouse.Member{{Name: "rows_affected", Value: gatehouse.JSON(strconv.Itoa(len(p.refs)))}}
	if p.upsert {
		did := map[string]string{opInsert: "inserted", opUpdate: "updated"}[p.op]
		response = append(response, gatehouse.Member{Name: "did", Value: gatehouse.StringJSON(did)})
	}
	if p.where != nil {
		response = appendImage(response, "keys", gatehouse.MustJSON(p.refs))
	}
	res := connector.Result{Reversal: p.reversal(before, after)}
	if !p.bulk {
		ref := p.refs[0]
		key := gatehouse.Member{Name: "key", Value: gatehouse.StringJSON(ref)}
		if p.makesKey {
			response = append(response, key)
		} else {
			request = append(request, key)
		}
		if p.version != "" {
			request = append(request, gatehouse.Member{Name: "version", Value: gatehouse.StringJSON(p.version)})
		}
		shown := after[ref]
		if shown == nil {
			shown = before[ref]
		}
		res.ExternalID = text(shown[p.table.extern].json)
		if p.op != opInsert {
			response = appendImage(response, "pre_image", p.image(before[ref], p.changed(ref)))
		}
		if p.op != opDelete {
			response = appendImage(response, "post_image", p.image(after[ref], p.changed(ref)))
			if v := p.table.version; v >= 0 {
				response = append(response,
					gatehouse.Member{Name: "version", Value: gatehouse.StringJSON(text(after[ref][v].json))})
			}
		}
	}
	res.RequestMetadata = gatehouse.ObjectJSON(request...)
	res.ResponseMetadata = gatehouse.ObjectJSON(response...)
	return res
}

func appendImage(members []gatehouse.Member, name string, image gatehouse.JSON) []gatehouse.Member {
	if len(image) > maxImage {
		return append(members, gatehouse.Member{Name: name + "_omitted", Value: gatehouse.StringJSON("larger than 16 KiB")})
	}
	return append(members, gatehouse.Member{Name: name, Value: image})
}

// changed lists the columns that a change names; for an insert or a delete, all columns except the
// key and the version.
func (p *plan) changed(ref string) []int {
	if p.op == opUpdate {
		return p.namedColumns(ref)
	}
	var columns []int
	for i := range p.table.columns {
		if i != p.table.key && i != p.table.version {
			columns = append(columns, i)
		}
	}
	return columns
}

// namedColumns lists the columns that a change names, except the key.
func (p *plan) namedColumns(ref string) []int {
	var columns []int
	for _, f := range p.changeOf(ref) {
		if i := p.table.byName[f.Name]; i != p.table.key {
			columns = append(columns, i)
		}
	}
	return columns
}

func (p *plan) image(r row, columns []int) gatehouse.JSON {
	members := make([]gatehouse.Member, len(columns))
	for n, i := range columns {
		members[n] = gatehouse.Member{Name: p.table.columns[i].name, Value: r[i].json}
	}
	return gatehouse.ObjectJSON(members...)
}

// reversal describes the change that reverses this one. It is nil if an overwritten value cannot be
// restored from JSON, was not visible to the connector, or exceeds the limits, if a deleted row
// cannot get its key back, or if other rows may have been deleted or changed with it.
func (p *plan) reversal(before, after map[string]row) *gatehouse.Reversal {
	if len(p.refs) > maxBulkReversal || p.keyLost() || p.op == opDelete && p.table.cascades {
		return nil
	}
	rev := &gatehouse.Reversal{Target: gatehouse.Target{EntityType: p.entityType}}
	rev.Operation = map[string]string{opInsert: opDelete, opUpdate: opUpdate, opDelete: opInsert}[p.op]
	if p.bulk {
		rev.Operation = bulkPrefix + rev.Operation
		rev.Target.EntityRefs = p.refs
	} else {
		rev.Target.EntityRef = p.refs[0]
		if p.op == opDelete && p.table.entity.KeyFrom == keyFromDatabase {
			rev.Operation = opUpsert // an upsert inserts the row under its own key
		}
	}
	var state, change []gatehouse.Member
	for _, ref := range p.refs {
		now, back, ok := p.undo(ref, before[ref], after[ref])
		if !ok {
			return nil
		}
		if !p.bulk {
			rev.CurrentState, rev.ProposedChange = now, back
			if p.table.version >= 0 && p.op != opDelete {
				rev.Target.Version = text(after[ref][p.table.version].json)
			}
			break
		}
		state = append(state, gatehouse.Member{Name: ref, Value: now})
		change = append(change, gatehouse.Member{Name: ref, Value: back})
	}
	if p.bulk {
		if p.op != opDelete {
			rev.CurrentState = gatehouse.ObjectJSON(state...)
		}
		rev.ProposedChange = gatehouse.ObjectJSON(change...)
		if p.op == opInsert {
			rev.ProposedChange = "{}"
		}
	}
	if len(rev.CurrentState)+len(rev.ProposedChange) > maxReversal {
		return nil
	}
	return rev
}

// keyLost reports whether deleted rows cannot be inserted again under their keys.
func (p *plan) keyLost() bool {
	key := p.table.columns[p.table.key]
	return p.op == opDelete &&
		(key.generated && !key.identity || p.bulk && p.table.entity.KeyFrom == keyFromDatabase)
}

// undo returns the state that the reversal expects in the row, and the change that restores the row.
func (p *plan) undo(ref string, before, after row) (now, back gatehouse.JSON, ok bool) {
	columns := p.changed(ref)
	t := p.table
	withVersion := columns
	if t.version >= 0 {
		withVersion = append(append([]int(nil), columns...), t.version)
	}
	switch p.op {
	case opUpdate:
		for _, i := range columns {
			if !before[i].restorable {
				return "", "", false
			}
		}
		return p.image(after, p.comparable(after, p.guarding(columns, withVersion))), p.image(before, columns),
			len(columns) > 0
	case opInsert:
		shown := p.comparable(after, p.guarding(columns, withVersion))
		if len(shown) == 0 && t.version < 0 {
			shown = []int{t.key} // a delete must name a state, and no other column is left
		}
		return p.image(after, shown), "{}", true
	}
	if t.hidden {
		return "", "", false
	}
	var written []int
	for _, i := range withVersion {
		if t.columns[i].generated {
			continue
		}
		if !before[i].restorable {
			return "", "", false
		}
		written = append(written, i)
	}
	return "", p.image(before, written), true
}

// guarding returns the columns of the reversal's pre-image. They include the version for a bulk change,
// because the target of a bulk change names no version.
func (p *plan) guarding(columns, withVersion []int) []int {
	if p.bulk {
		return withVersion
	}
	return columns
}

// comparable leaves out columns whose values have no exact JSON form.
func (p *plan) comparable(r row, columns []int) []int {
	var out []int
	for _, i := range columns {
		if r[i].restorable {
			out = append(out, i)
		}
	}
	return out
}
