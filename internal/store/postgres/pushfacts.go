package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const pushFactColumns = `h.connector, h.status, h.error_code, h.last_error, h.target_says, h.created_at, h.not_before,
	h.sent_at, h.applied_at, h.finished_at`

// PushFacts reads the recent pushes by id, then the older open ones by status.
func (t *readTx) PushFacts(since time.Time, readBy string, fn func(gatehouse.PushFact)) error {
	var where condition
	where.add("h.tenant = ?", t.tenant)
	shared.AddReadableBy(where.add, "h.action_seq", t.tenant, readBy)
	last := where.number(" ORDER BY h.id DESC LIMIT ?", gatehouse.MaxPushFacts)
	err := t.each(`SELECT `+pushFactColumns+` FROM push h WHERE `+where.sql()+last, func(r *row) error {
		// The server also sends the rows of older pushes; they are skipped.
		if f := shared.ScanPushFact(r); !f.CreatedAt.Before(since) {
			fn(f)
		}
		return nil
	}, where.args...)
	if err != nil {
		return err
	}
	var open condition
	open.add("h.tenant = ?", t.tenant)
	open.add("h.created_at < ?", since)
	shared.AddReadableBy(open.add, "h.action_seq", t.tenant, readBy)
	last = open.number(" LIMIT ?", gatehouse.MaxPushFacts)
	return t.each(`SELECT `+pushFactColumns+` FROM push h WHERE h.status IN ('queued', 'picking', 'sent') AND `+
		open.sql()+last,
		func(r *row) error { fn(shared.ScanPushFact(r)); return nil }, open.args...)
}
