package sqlite

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const pushColumns = `tenant, id, action_id, connector, idempotency_key, digest, status, attempts, attempt_base, last_error, error_code,
not_before, created_at, next_attempt, picked_at, sent_at, applied_at, finished_at, generation, lease_owner, lease_until, replays`

func scanPush(r *stmt) *gatehouse.Push {
	return &gatehouse.Push{
		Tenant: r.text(), ID: r.text(), ActionID: r.text(), Connector: r.text(), IdempotencyKey: r.text(), Digest: gatehouse.Digest(r.text()),
		Status: gatehouse.PushStatus(r.text()), Attempts: int(r.int()), AttemptBase: int(r.int()), LastError: r.text(), ErrorCode: r.text(),
		NotBefore: r.time(), CreatedAt: r.time(), NextAttempt: r.timePtr(), PickedAt: r.timePtr(), SentAt: r.timePtr(),
		AppliedAt: r.timePtr(), FinishedAt: r.timePtr(), Generation: int(r.int()), LeaseOwner: r.text(), LeaseUntil: r.timePtr(),
		Replays: int(r.int()),
	}
}

// FindPush finds by id.
func (t *readTx) FindPush(tenant, id string) (p *gatehouse.Push, err error) {
	err = t.one(`SELECT `+pushColumns+` FROM push WHERE tenant = ? AND id = ?`,
		func(r *stmt) error { p = scanPush(r); return nil }, tenant, id)
	return p, err
}

// LockPush is FindPush: the writer's transaction is the lock.
func (t *tx) LockPush(tenant, id string) (*gatehouse.Push, error) { return t.FindPush(tenant, id) }

// attachPush adds push and latest receipt to one action.
func (t *readTx) attachPush(row scanned) error {
	err := t.each(`SELECT `+pushColumns+` FROM push WHERE action_seq = ?`,
		func(r *stmt) error { row.action.Push = scanPush(r).Summary(); return nil }, row.seq)
	if err != nil || row.action.Push == nil {
		return err
	}
	return t.each(`SELECT `+receiptColumns+` FROM receipt WHERE action_seq = ? AND late = 0 ORDER BY seq DESC LIMIT 1`,
		func(r *stmt) (err error) { row.action.Receipt, err = scanReceipt(r); return err }, row.seq)
}

// PushCounts counts by status.
func (t *readTx) PushCounts() (map[gatehouse.PushStatus]int, error) {
	counts := make(map[gatehouse.PushStatus]int)
	err := t.each(`SELECT status, count(*) FROM push GROUP BY status`, func(r *stmt) error {
		counts[gatehouse.PushStatus(r.text())] = int(r.int())
		return nil
	})
	return counts, err
}

// NextPushAt tells when there is work next: a push falls due, or a lease ends.
func (t *readTx) NextPushAt() (next time.Time, err error) {
	err = t.one(`SELECT min(at) FROM (
  SELECT * FROM (SELECT due_at AS at FROM push WHERE status = 'queued' ORDER BY due_at LIMIT 1)
  UNION ALL
  SELECT * FROM (SELECT lease_until AS at FROM push WHERE status IN ('picking', 'sent') ORDER BY lease_until LIMIT 1))`,
		func(r *stmt) error {
			if at := r.timePtr(); at != nil {
				next = *at
			}
			return nil
		})
	return next, err
}

// ExpiredLeases lists pushes whose lease has ended, the longest ago first.
func (t *readTx) ExpiredLeases(limit int) ([]*gatehouse.Push, error) {
	return t.pushes(`SELECT `+pushColumns+` FROM push WHERE status IN ('picking', 'sent') AND lease_until <= ?
ORDER BY lease_until LIMIT ?`, t.at, limit)
}

func (t *readTx) pushes(sql string, args ...any) (list []*gatehouse.Push, err error) {
	err = t.each(sql, func(r *stmt) error { list = append(list, scanPush(r)); return nil }, args...)
	return list, err
}

// InsertPush puts an approved action into the outbox: once, and only while it
// is approved.
func (t *tx) InsertPush(p *gatehouse.Push) error {
	if !gatehouse.PushStatus("").CanMove(p.Status) {
		return gatehouse.ErrConflict
	}
	n, err := t.exec(`INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts, attempt_base,
last_error, error_code, not_before, created_at, next_attempt, picked_at, sent_at, applied_at, finished_at, generation, lease_owner,
lease_until, replays)
SELECT tenant, ?, seq, id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM action
WHERE tenant = ? AND id = ? AND status = 'approved'`,
		p.ID, p.Connector, p.IdempotencyKey, string(p.Digest), string(p.Status), p.Attempts, p.AttemptBase, p.LastError, p.ErrorCode,
		p.NotBefore, p.CreatedAt, p.NextAttempt, p.PickedAt, p.SentAt, p.AppliedAt, p.FinishedAt, p.Generation, p.LeaseOwner,
		p.LeaseUntil, p.Replays, p.Tenant, p.ActionID)
	if err != nil || n > 0 {
		return err
	}
	return t.absent(`SELECT 1 FROM action WHERE tenant = ? AND id = ?`, p.Tenant, p.ActionID)
}

const claimPushes = `UPDATE push SET status = 'picking', generation = generation + 1, lease_owner = ?, lease_until = ?, picked_at = ?
WHERE seq IN (SELECT seq FROM push WHERE status = 'queued' AND due_at <= ? `

// ClaimPushes takes due pushes for one worker: one statement, so nobody else
// takes the same.
func (t *tx) ClaimPushes(owner, tenant string, lease time.Duration, limit int) (list []*gatehouse.Push, err error) {
	args := []any{owner, t.at.Add(lease), t.at, t.at}
	of := ""
	if tenant != "" {
		of = `AND tenant = ? `
		args = append(args, tenant)
	}
	list, err = t.pushes(claimPushes+of+`ORDER BY due_at, seq LIMIT ?) RETURNING `+pushColumns, append(args, limit)...)
	slices.SortStableFunc(list, func(a, b *gatehouse.Push) int { return due(a).Compare(due(b)) })
	return list, err
}

func due(p *gatehouse.Push) time.Time {
	if p.NextAttempt != nil && p.NextAttempt.After(p.NotBefore) {
		return *p.NextAttempt
	}
	return p.NotBefore
}

// UpdatePush writes what may change of a push, guarded by the status and the
// generation that its holder read. A heartbeat keeps the status.
func (t *tx) UpdatePush(p *gatehouse.Push, from gatehouse.PushStatus, generation int) error {
	if p.Status != from && !from.CanMove(p.Status) || p.Generation < generation {
		return gatehouse.ErrConflict
	}
	return t.guarded(`UPDATE push SET status = ?, attempts = ?, attempt_base = ?, last_error = ?, error_code = ?, not_before = ?,
next_attempt = ?, picked_at = ?, sent_at = ?, applied_at = ?, finished_at = ?, generation = ?, lease_owner = ?, lease_until = ?, replays = ?
WHERE tenant = ? AND id = ? AND status = ? AND generation = ?`,
		string(p.Status), p.Attempts, p.AttemptBase, p.LastError, p.ErrorCode, p.NotBefore,
		p.NextAttempt, p.PickedAt, p.SentAt, p.AppliedAt, p.FinishedAt, p.Generation, p.LeaseOwner, p.LeaseUntil, p.Replays,
		p.Tenant, p.ID, string(from), generation)
}
