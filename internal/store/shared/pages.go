package shared

import (
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// predicates collects the predicates of a list, in which ? is the next argument.
type predicates struct {
	where []string
	args  []any
}

func (p *predicates) add(predicate string, args ...any) {
	p.where = append(p.where, p.number(predicate, args...))
}

// number appends arguments and replaces each ? with the number of its argument.
func (p *predicates) number(sql string, args ...any) string {
	for _, a := range args {
		p.args = append(p.args, a)
		sql = strings.Replace(sql, "?", "$"+strconv.Itoa(len(p.args)), 1)
	}
	return sql
}

func (p *predicates) sql() string { return strings.Join(p.where, " AND ") }

// ListMirror lists applied changes, newest first. On PostgreSQL, a row of a concurrent transaction may
// appear a moment after younger rows.
func (t Reads) ListMirror(
	readBy, cursor string, limit int,
) (page gatehouse.Page[*gatehouse.AppliedMirror], err error) {
	bound := BoundToReader([]string{t.Tenant()}, readBy)
	c, err := ParseCursor(cursor, KindMirror, bound...)
	if err != nil {
		return page, err
	}
	limit = PageLimit(limit)
	page.Items = []*gatehouse.AppliedMirror{}
	var where predicates
	where.add("tenant = ?", t.Tenant())
	if c.Seq != 0 {
		where.add("seq < ?", c.Seq)
	}
	AddReadableBy(where.add, "action_seq", t.Tenant(), readBy)
	last := where.number(" ORDER BY seq DESC LIMIT ?", limit+1)
	var sizes []int64
	err = t.Each(`SELECT CAST(octet_length(target) AS bigint) + octet_length(before_state) + octet_length(after_state)
FROM mirror WHERE `+where.sql()+last, func(r Row) error { sizes = append(sizes, r.Int()); return nil }, where.args...)
	if err != nil || len(sizes) == 0 {
		return page, err
	}
	limit = Fit(min(limit, len(sizes)), func(i int) int64 { return sizes[i] })
	where.args[len(where.args)-1] = limit + 1
	var seqs []int64
	err = t.Each(`SELECT seq, tenant, action_id, action_type, connector, operation, target, before_state, after_state,
  digest, external_id, receipt_id, applied_at FROM mirror WHERE `+where.sql()+last, func(r Row) error {
		var err error
		seqs = append(seqs, r.Int())
		page.Items = append(page.Items, ScanMirror(r, &err))
		return err
	}, where.args...)
	position := func(*gatehouse.AppliedMirror) Cursor { return Cursor{Seq: seqs[limit-1]} }
	return Finish(page, limit, position, KindMirror, bound...), err
}

// ListReflexions lists reflexions, newest first.
func (t Reads) ListReflexions(
	workflow, readBy, cursor string, limit int,
) (page gatehouse.Page[*gatehouse.Reflexion], err error) {
	bound := BoundToReader([]string{t.Tenant(), workflow}, readBy)
	c, err := ParseCursor(cursor, KindReflexions, bound...)
	if err != nil {
		return page, err
	}
	var where predicates
	where.add("tenant = ?", t.Tenant())
	if workflow != "" {
		where.add("workflow = ?", workflow)
	}
	if readBy != "" {
		where.add("run_id IN (SELECT id FROM run WHERE tenant = ? AND starter_id = ? UNION ALL "+inherited+")",
			t.Tenant(), readBy, t.Tenant(), readBy)
	}
	if c.Seq != 0 {
		where.add("seq < ?", c.Seq)
	}
	limit = PageLimit(limit)
	page.Items = []*gatehouse.Reflexion{}
	var seqs []int64
	last := where.number(" ORDER BY seq DESC LIMIT ?", limit+1)
	err = t.Each(`SELECT seq, tenant, id, run_id, workflow, version, outcome, attempted, happened, otherwise, at
FROM reflexion WHERE `+where.sql()+last, func(r Row) error {
		seqs = append(seqs, r.Int())
		x, err := scanReflexion(r)
		page.Items = append(page.Items, x)
		return err
	}, where.args...)
	position := func(*gatehouse.Reflexion) Cursor { return Cursor{Seq: seqs[limit-1]} }
	return Finish(page, limit, position, KindReflexions, bound...), err
}
