package sqlite

import (
	"errors"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const pushFactColumns = `connector, status, error_code, last_error, target_says, created_at, not_before, sent_at,
	applied_at, finished_at`

// PushFacts reads the recent pushes by id, then the older ones that are queued or leased, by their indexes.
func (t *readTx) PushFacts(since time.Time, readBy string, fn func(gatehouse.PushFact)) error {
	var where condition
	where.add("tenant = ?", t.tenant)
	shared.AddReadableBy(where.add, "action_seq", t.tenant, readBy)
	err := t.each(`SELECT `+pushFactColumns+` FROM push WHERE `+where.sql()+` ORDER BY id DESC LIMIT ?`,
		func(r *stmt) error {
			f := shared.ScanPushFact(r)
			if f.CreatedAt.Before(since) {
				return errEnough
			}
			fn(f)
			return nil
		}, append(where.args, gatehouse.MaxPushFacts)...)
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	var open condition
	open.add("tenant = ?", t.tenant)
	open.add("created_at < ?", since)
	shared.AddReadableBy(open.add, "action_seq", t.tenant, readBy)
	selected := `SELECT ` + pushFactColumns + ` FROM `
	return t.each(
		selected+`push INDEXED BY push_status
  WHERE status <> 'picking' AND status <> 'sent' AND status <> 'applied' AND status = 'queued' AND `+open.sql()+`
UNION ALL `+selected+`push INDEXED BY push_lease WHERE lane = '' AND status IN ('picking', 'sent') AND `+open.sql()+`
UNION ALL `+selected+`push INDEXED BY push_lease_lane WHERE lane <> '' AND status IN ('picking', 'sent') AND `+
			open.sql()+`
LIMIT ?`,
		func(r *stmt) error { fn(shared.ScanPushFact(r)); return nil },
		append(slices.Concat(open.args, open.args, open.args), gatehouse.MaxPushFacts)...)
}
