package sqlite

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
	from := `push`
	where.add("tenant = ?", t.tenant)
	if f.Status != "" {
		where.add("status = ?"+narrow(f.Status), string(f.Status))
	}
	shared.AddReadableBy(where.add, "action_seq", t.tenant, f.ReadBy)
	if f.DeadLetters {
		from = `push INDEXED BY push_dead`
		where.add(deadLetters)
	}
	if f.Connector != "" {
		where.add("connector = ?", f.Connector)
	}
	if f.Code != "" {
		where.add("error_code = ?", f.Code)
	}
	if !f.Since.IsZero() {
		where.add("finished_at >= ?", f.Since)
	}
	if c.ID != "" {
		where.add("id < ?", c.ID)
	}
	limit := shared.PageLimit(f.Limit)
	list, err := t.pushes(`SELECT `+pushColumns+` FROM `+from+` WHERE `+where.sql()+`
ORDER BY id DESC LIMIT ?`, append(where.args, limit+1)...)
	page.Items = append([]*gatehouse.Push{}, list...)
	return shared.Finish(page, limit, func(p *gatehouse.Push) shared.Cursor { return shared.Cursor{ID: p.ID} },
		shared.KindPushes, bound...), err
}

// narrow returns the index condition that finds the pushes of a status; "" for
// applied pushes, which are by far the most and have no index of their own.
func narrow(status gatehouse.PushStatus) string {
	switch status {
	case gatehouse.PushPicking, gatehouse.PushSent:
		return ` AND seq IN (SELECT seq FROM push INDEXED BY push_lease
  WHERE lane = '' AND status IN ('picking', 'sent')
UNION ALL SELECT seq FROM push INDEXED BY push_lease_lane
  WHERE lane <> '' AND status IN ('picking', 'sent'))`
	case gatehouse.PushApplied:
		return ""
	}
	return ` AND status <> 'picking' AND status <> 'sent' AND status <> 'applied'`
}

// ListCorpus lists the corpus entries by approval, newest first.
func (t *readTx) ListCorpus(readBy, cursor string, limit int) (page gatehouse.Page[*gatehouse.CorpusEntry], err error) {
	bound := shared.BoundToReader([]string{t.tenant}, readBy)
	c, err := shared.ParseCursor(cursor, shared.KindCorpus, bound...)
	if err != nil {
		return page, err
	}
	before := cmp.Or(c.ID, shared.MaxText)
	limit = shared.PageLimit(limit)
	page.Items = []*gatehouse.CorpusEntry{}
	var rows []place
	var where condition
	// Each approval that people decided makes a corpus entry.
	where.add("tenant = ? AND id < ? AND status IN ('approved', 'rejected')", t.tenant, before)
	shared.AddReadableBy(where.add, "seq", t.tenant, readBy)
	err = t.each(
		`SELECT seq, id FROM approval WHERE `+where.sql()+` ORDER BY id DESC LIMIT ?`,
		func(r *stmt) error { rows = append(rows, place{seq: r.Int(), id: r.Text()}); return nil },
		append(where.args, limit+1)...)
	if err != nil {
		return page, err
	}
	n, err := t.fit(rows[:min(limit, len(rows))])
	if err != nil {
		return page, err
	}
	if n < len(rows) {
		page.NextCursor = shared.Cursor{Kind: shared.KindCorpus, Filter: shared.FilterHash(bound),
			ID: rows[n-1].id}.Encode()
	}
	actions, err := t.loadActions(rows[:n])
	for _, a := range actions {
		page.Items = append(page.Items, shared.CorpusEntryOf(a))
	}
	return page, err
}
