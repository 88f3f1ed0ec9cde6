package postgres

import (
	"cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ListPushes lists pushes, newest first.
func (t *readTx) ListPushes(f gatehouse.PushFilter) (page gatehouse.Page[*gatehouse.Push], err error) {
	bound := shared.PushBound(t.tenant, f)
	c, err := shared.ParseCursor(f.Cursor, shared.KindPushes, bound...)
	if err != nil {
		return page, err
	}
	var where condition
	where.add("h.tenant = ?", t.tenant)
	if f.Status != "" {
		where.add("h.status = ?", string(f.Status))
	}
	shared.AddReadableBy(where.add, "h.action_seq", t.tenant, f.ReadBy)
	if f.DeadLetters {
		where.add(deadLetters)
	}
	if f.Connector != "" {
		where.add("h.connector = ?", f.Connector)
	}
	if f.Code != "" {
		where.add("h.error_code = ?", f.Code)
	}
	if !f.Since.IsZero() {
		where.add("h.finished_at >= ?", f.Since)
	}
	if c.ID != "" {
		where.add("h.id < ?", c.ID)
	}
	limit := shared.PageLimit(f.Limit)
	sql := `SELECT ` + pushColumns + ` FROM push h WHERE ` + where.sql() + where.number(
		` ORDER BY h.id DESC LIMIT ?`,
		limit+1,
	)
	list, err := t.pushes(sql, where.args...)
	page.Items = append([]*gatehouse.Push{}, list...)
	return shared.Finish(page, limit, func(p *gatehouse.Push) shared.Cursor { return shared.Cursor{ID: p.ID} },
		shared.KindPushes, bound...), err
}

// ListCorpus lists corpus entries, those of the newest approvals first.
func (t *readTx) ListCorpus(readBy, cursor string, limit int) (page gatehouse.Page[*gatehouse.CorpusEntry], err error) {
	bound := shared.BoundToReader([]string{t.tenant}, readBy)
	c, err := shared.ParseCursor(cursor, shared.KindCorpus, bound...)
	if err != nil {
		return page, err
	}
	before := cmp.Or(c.ID, shared.MaxText)
	limit = shared.PageLimit(limit)
	page.Items = []*gatehouse.CorpusEntry{}
	w := &pageScan{limit: limit + 1, before: func(p, q pagePosition) bool { return p.approval > q.approval }}
	// Each approval that people decided makes a corpus entry.
	w.add("tenant = ? AND id < ? AND status IN ('approved', 'rejected')", t.tenant, before)
	shared.AddReadableBy(w.add, "seq", t.tenant, readBy)
	w.positions = w.number(`SELECT 0::bigint AS at, 0 AS bucket, false AS large, (SELECT ctid FROM action
WHERE action.seq = z.seq) AS place FROM (SELECT seq FROM approval
WHERE `+w.sql()+` ORDER BY id DESC LIMIT ?) z`, limit+1)
	rows, actions, err := t.pageRows(w)
	if err != nil {
		return page, err
	}
	n, more := w.cut(rows)
	if more {
		page.NextCursor = shared.Cursor{
			Kind: shared.KindCorpus, Filter: shared.FilterHash(bound), ID: rows[n-1].approval,
		}.Encode()
	}
	for _, a := range actions[:n] {
		page.Items = append(page.Items, shared.CorpusEntryOf(a))
	}
	return page, nil
}
