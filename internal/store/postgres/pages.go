package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// last is an id after all others.
const last = "\U0010FFFF"

// ListPushes lists the newest first.
func (t *readTx) ListPushes(tenant string, f gatehouse.PushFilter) (page gatehouse.Page[*gatehouse.Push], err error) {
	c, err := shared.ParseCursor(f.Cursor, shared.KindPushes, tenant, string(f.Status))
	if err != nil {
		return page, err
	}
	var where condition
	where.add("h.tenant = ?", tenant)
	if f.Status != "" {
		where.add("h.status = ?", string(f.Status))
	}
	if c.ID != "" {
		where.add("h.id < ?", c.ID)
	}
	limit := shared.PageLimit(f.Limit)
	sql := `SELECT ` + pushColumns + ` FROM push h WHERE ` + where.sql() + where.place(` ORDER BY h.id DESC LIMIT ?`, limit+1)
	list, err := t.pushes(sql, where.args...)
	page.Items = append([]*gatehouse.Push{}, list...)
	return shared.Finish(page, limit, func(p *gatehouse.Push) shared.Cursor { return shared.Cursor{ID: p.ID} },
		shared.KindPushes, tenant, string(f.Status)), err
}

// ListCorpus lists the newest first.
func (t *readTx) ListCorpus(tenant, cursor string, limit int) (page gatehouse.Page[*gatehouse.CorpusEntry], err error) {
	c, err := shared.ParseCursor(cursor, shared.KindCorpus, tenant)
	if err != nil {
		return page, err
	}
	before := c.ID
	if before == "" {
		before = last
	}
	limit = shared.PageLimit(limit)
	page.Items = []*gatehouse.CorpusEntry{}
	err = t.each(`SELECT tenant, id, action_id, action_type, features, outcome, decided_by, notes, at FROM corpus
WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT $3`, func(r *row) error {
		page.Items = append(page.Items, &gatehouse.CorpusEntry{
			Tenant: r.text(), ID: r.text(), ActionID: r.text(), ActionType: r.text(), Features: r.json(),
			Outcome: gatehouse.DecisionKind(r.text()), DecidedBy: r.text(), Notes: r.text(), At: r.time(),
		})
		return nil
	}, tenant, before, limit+1)
	return shared.Finish(page, limit, func(e *gatehouse.CorpusEntry) shared.Cursor { return shared.Cursor{ID: e.ID} },
		shared.KindCorpus, tenant), err
}

// ListMirror lists the newest first. Rows of applications that ran side by
// side may appear a moment after younger ones.
func (t *readTx) ListMirror(tenant, cursor string, limit int) (page gatehouse.Page[*gatehouse.AppliedMirror], err error) {
	c, err := shared.ParseCursor(cursor, shared.KindMirror, tenant)
	if err != nil {
		return page, err
	}
	before := c.Seq
	if before == 0 {
		before = 1<<63 - 1
	}
	limit = shared.PageLimit(limit)
	page.Items = []*gatehouse.AppliedMirror{}
	var seqs []int64
	err = t.each(`SELECT seq, tenant, action_id, action_type, connector, operation, target, before_state, after_state, digest, external_id,
receipt_id, applied_at FROM mirror WHERE tenant = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3`, func(r *row) error {
		var err error
		seqs = append(seqs, r.int())
		m := &gatehouse.AppliedMirror{Tenant: r.text(), ActionID: r.text(), ActionType: r.text(), Connector: r.text(), Operation: r.text()}
		if target := jsonAt[gatehouse.Target](r, &err); target != nil {
			m.Target = *target
		}
		m.Before, m.After, m.Digest = r.json(), r.json(), gatehouse.Digest(r.text())
		m.ExternalID, m.ReceiptID, m.AppliedAt = r.text(), r.text(), r.time()
		page.Items = append(page.Items, m)
		return err
	}, tenant, before, limit+1)
	return shared.Finish(page, limit, func(*gatehouse.AppliedMirror) shared.Cursor { return shared.Cursor{Seq: seqs[limit-1]} },
		shared.KindMirror, tenant), err
}
