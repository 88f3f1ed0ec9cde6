package sqlite

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const pushColumns = `tenant, id, action_id, connector, idempotency_key, digest, status, attempts, attempt_base,
  last_error, error_code, not_before, created_at, next_attempt, picked_at, sent_at, applied_at, finished_at,
  generation, lease_owner, lease_until, replays, lane,
target_says, closed_at, closed_by, closed_reason, put_back`

// FindPush finds by id.
func (t *readTx) FindPush(id string) (p *gatehouse.Push, err error) {
	err = t.one(`SELECT `+pushColumns+` FROM push WHERE tenant = ? AND id = ?`,
		func(r *stmt) error { p = shared.ScanPush(r); return nil }, t.tenant, id)
	if err == gatehouse.ErrNotFound { //nolint:errorlint // the package's own, unwrapped
		a, err := t.FindArchived(id)
		return shared.ArchivedPush(id, a, err)
	}
	return p, err
}

// LockPush is FindPush: the writer's transaction is the lock. A push that was
// read with its action and not written since is not read again.
func (t *tx) LockPush(id string) (p *gatehouse.Push, err error) {
	if p = t.lastPush; p != nil && p.ID == id && p.Tenant == t.tenant {
		t.lastPush = nil // from now on the caller owns it
	} else if p, err = t.FindPush(id); err != nil {
		return nil, err
	}
	t.knownPush = knownPush{t.tenant, p.ID, p.ActionID}
	return p, nil
}

// attachPush adds the push and the latest receipt to one action.
func (t *readTx) attachPush(row scanned) error {
	err := t.each(`SELECT `+pushColumns+` FROM push WHERE action_seq = ?`,
		func(r *stmt) error {
			t.lastPush = shared.ScanPush(r)
			row.action.SetPush(t.lastPush)
			return nil
		}, row.seq)
	if err != nil || row.action.Push == nil {
		return err
	}
	return t.each(`SELECT `+receiptColumns+` FROM receipt WHERE action_seq = ? AND late = 0 ORDER BY seq DESC LIMIT 1`,
		func(r *stmt) (err error) { row.action.Receipt = shared.ScanReceipt(r, &err); return err }, row.seq)
}

// deadLetters is the condition of an index and the SQL form of [gatehouse.Push.DeadLetter].
const deadLetters = `(status = 'unknown' OR status = 'failed' AND closed_at IS NULL)`

// CountAllDeadLetters counts the dead letters of all tenants.
func (t *readTx) CountAllDeadLetters() (int, error) {
	n, err := t.number(`SELECT count(*) FROM push INDEXED BY push_dead
  WHERE (status = 'unknown' OR status = 'failed' AND closed_at IS NULL)`)
	return int(n), err
}

// deadLetterOf finds the newest dead letter with an effect.
func (t *readTx) deadLetterOf(effect gatehouse.Hash) (id string, err error) {
	err = t.each(`SELECT action_id FROM push INDEXED BY push_effect
  WHERE tenant = ? AND effect = ? AND (status = 'unknown' OR status = 'failed' AND closed_at IS NULL)
  ORDER BY id DESC LIMIT 1`,
		func(r *stmt) error { id = r.Text(); return nil }, t.tenant, effect[:])
	return id, err
}

// MarkDeadLetter stores the fields that the list of dead letters shows.
func (t *tx) MarkDeadLetter(p *gatehouse.Push, effect gatehouse.Hash) error {
	if err := t.Owns(p.Tenant); err != nil {
		return err
	}
	t.lastPush = nil
	return t.guarded(`UPDATE OR ROLLBACK push SET target_says = ?, effect = ?
WHERE tenant = ? AND id = ? AND status = ? AND generation = ? AND (status = 'failed' OR status = 'unknown')`,
		p.TargetSays, effect[:], p.Tenant, p.ID, string(p.Status), p.Generation)
}

// ClosePush closes a failed push permanently.
func (t *tx) ClosePush(id, by, reason string) error {
	t.lastPush = nil
	return t.guarded(`UPDATE OR ROLLBACK push SET closed_at = ?, closed_by = ?, closed_reason = ?
WHERE tenant = ? AND id = ? AND status = 'failed' AND closed_at IS NULL`, t.at, by, reason, t.tenant, id)
}

// PushCounts counts by status, with three indexes: of the pushes that are neither leased nor applied, of those
// that the dispatcher holds, and of those that external workers hold. Applied pushes, by far the most, are the
// total minus the rest.
func (t *readTx) PushCounts() (map[gatehouse.PushStatus]int, error) {
	counts := make(map[gatehouse.PushStatus]int)
	applied, err := t.number(`SELECT count(*) FROM push`)
	if err != nil {
		return nil, err
	}
	err = t.each(`SELECT status, count(*) FROM push INDEXED BY push_status
  WHERE status <> 'picking' AND status <> 'sent' AND status <> 'applied' GROUP BY status
UNION ALL SELECT status, count(*) FROM push INDEXED BY push_lease
  WHERE lane = '' AND status IN ('picking', 'sent') GROUP BY status
UNION ALL SELECT status, count(*) FROM push INDEXED BY push_lease_lane
  WHERE lane <> '' AND status IN ('picking', 'sent') GROUP BY status`,
		func(r *stmt) error {
			status, n := gatehouse.PushStatus(r.Text()), r.Int()
			counts[status] += int(n)
			applied -= n
			return nil
		})
	if applied > 0 {
		counts[gatehouse.PushApplied] = int(applied)
	}
	return counts, err
}

const (
	// queuedTenant returns the first tenant in a range that has queued pushes,
	// and when the first of them is due.
	queuedTenant = `SELECT tenant, due_at FROM push INDEXED BY push_due_tenant
WHERE status = 'queued' AND lane = '' AND tenant > ? AND tenant <= ? ORDER BY tenant, due_at LIMIT 1`
	countDue = `SELECT count(*) FROM (SELECT 1 FROM push INDEXED BY push_due_tenant
WHERE tenant = ? AND status = 'queued' AND lane = '' AND due_at <= ? LIMIT ?)`
	inFlight = `SELECT count(*) FROM push INDEXED BY push_lease
  WHERE lane = '' AND status IN ('picking', 'sent') AND tenant = ?`
	nextLease = `SELECT lease_until FROM (SELECT lease_until FROM push INDEXED BY push_lease
  WHERE lane = '' AND status IN ('picking', 'sent') ORDER BY lease_until LIMIT 1)
UNION ALL SELECT lease_until FROM (SELECT lease_until FROM push INDEXED BY push_lease_lane
  WHERE lane <> '' AND status IN ('picking', 'sent') ORDER BY lease_until LIMIT 1)
ORDER BY lease_until LIMIT 1`
	leasesEnded = `SELECT * FROM (SELECT ` + pushColumns + ` FROM push INDEXED BY push_lease
  WHERE lane = '' AND status IN ('picking', 'sent') AND lease_until <= ?1
  ORDER BY lease_until LIMIT ?2)
UNION ALL SELECT * FROM (SELECT ` + pushColumns + ` FROM push INDEXED BY push_lease_lane
  WHERE lane <> '' AND status IN ('picking', 'sent') AND lease_until <= ?1
  ORDER BY lease_until LIMIT ?2)
ORDER BY lease_until LIMIT ?2`
)

// walk calls fn for each tenant in the range (after, last] that has queued
// pushes, until fn has enough. Each tenant costs one index lookup.
func (t *readTx) walk(after, last string, fn func(tenant string, due time.Time) (enough bool, err error)) error {
	for {
		var tenant string
		var due time.Time
		err := t.each(queuedTenant, func(r *stmt) error { tenant, due = r.Text(), r.Time(); return nil }, after, last)
		if err != nil || tenant == "" {
			return err
		}
		if enough, err := fn(tenant, due); err != nil || enough {
			return err
		}
		after = tenant
	}
}

// NextPushAt returns the time at which the next push falls due or the next lease ends.
// Queued pushes of the tenants in except do not count.
func (t *readTx) NextPushAt(except ...string) (next time.Time, err error) {
	err = t.each(nextLease, func(r *stmt) error { next = r.Time(); return nil })
	if err != nil {
		return next, err
	}
	except = slices.Sorted(slices.Values(except)) // may be all tenants: looked up by binary search
	err = t.walk("", shared.MaxText, func(tenant string, due time.Time) (bool, error) {
		if _, left := slices.BinarySearch(except, tenant); !left && (next.IsZero() || due.Before(next)) {
			next = due
		}
		return false, nil
	})
	return next, err
}

// DueTenants lists the tenants with due pushes, round-robin: in the order of their names, first those greater than
// after, then the others.
func (t *readTx) DueTenants(after string, limit, each int) (list []gatehouse.DueTenant, err error) {
	look := func(tenant string, due time.Time) (bool, error) {
		if due.After(t.at) {
			return false, nil
		}
		n, err := t.number(countDue, tenant, t.at, each)
		if err != nil {
			return false, err
		}
		busy, err := t.number(inFlight, tenant)
		list = append(list, gatehouse.DueTenant{Tenant: tenant, Due: int(n), InFlight: int(busy)})
		return len(list) == limit, err
	}
	err = t.walk(after, shared.MaxText, look)
	if err == nil && after != "" && len(list) < limit {
		err = t.walk("", after, look)
	}
	return list, err
}

// ExpiredLeases lists the pushes whose lease has ended, oldest first.
func (t *readTx) ExpiredLeases(limit int) ([]*gatehouse.Push, error) {
	return t.pushes(leasesEnded, t.at, limit)
}

func (t *readTx) pushes(sql string, args ...any) (list []*gatehouse.Push, err error) {
	err = t.each(sql, func(r *stmt) error { list = append(list, shared.ScanPush(r)); return nil }, args...)
	return list, err
}

// insertPush inserts the push of an action that is known to be approved.
func (t *tx) insertPush(p *gatehouse.Push, seq int64) error {
	if fresh := (gatehouse.Push{
		ID: p.ID, Tenant: p.Tenant, ActionID: p.ActionID, Connector: p.Connector, IdempotencyKey: p.IdempotencyKey,
		Digest: p.Digest, Status: gatehouse.PushQueued, NotBefore: p.NotBefore, CreatedAt: p.CreatedAt,
		NextAttempt: p.NextAttempt,
	}); *p == fresh {
		_, err := t.exec(`
INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts,
  attempt_base, last_error, error_code, not_before, created_at, next_attempt, picked_at, sent_at, applied_at,
  finished_at, generation, lease_owner, lease_until, replays, lane)
VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', 0, 0, '', '', ?, ?, ?, NULL, NULL, NULL, NULL, 0, '', NULL, 0, '')`,
			p.Tenant, p.ID, seq, p.ActionID, p.Connector, p.IdempotencyKey, string(p.Digest), p.NotBefore, p.CreatedAt,
			p.NextAttempt)
		return err
	}
	_, err := t.exec(`
INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts,
  attempt_base, last_error, error_code, not_before, created_at, next_attempt, picked_at, sent_at, applied_at,
  finished_at, generation, lease_owner, lease_until, replays, lane)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		p.Tenant, p.ID, seq, p.ActionID, p.Connector, p.IdempotencyKey, string(p.Digest), string(p.Status), p.Attempts,
		p.AttemptBase, p.LastError, p.ErrorCode, p.NotBefore, p.CreatedAt, p.NextAttempt, p.PickedAt, p.SentAt, p.AppliedAt,
		p.FinishedAt, p.Generation, p.LeaseOwner, p.LeaseUntil, p.Replays, p.Lane)
	return err
}

// InsertPush puts an action into the outbox: once, and only while the action is
// approved.
func (t *tx) InsertPush(p *gatehouse.Push) error {
	if err := t.Owns(p.Tenant); err != nil {
		return err
	}
	if !gatehouse.PushStatus("").CanMove(p.Status) {
		return gatehouse.ErrConflict
	}
	t.lastPush = nil
	if known := t.knownByID(p.Tenant, p.ActionID); known != nil && known.status == gatehouse.StatusApproved {
		return t.insertPush(p, known.seq)
	}
	n, err := t.exec(`
INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts,
  attempt_base, last_error, error_code, not_before, created_at, next_attempt, picked_at, sent_at, applied_at,
  finished_at, generation, lease_owner, lease_until, replays, lane)
SELECT tenant, ?, seq, id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM action
WHERE tenant = ? AND id = ? AND status = 'approved'`,
		p.ID, p.Connector, p.IdempotencyKey, string(p.Digest), string(p.Status), p.Attempts, p.AttemptBase, p.LastError,
		p.ErrorCode, p.NotBefore, p.CreatedAt, p.NextAttempt, p.PickedAt, p.SentAt, p.AppliedAt, p.FinishedAt, p.Generation,
		p.LeaseOwner, p.LeaseUntil, p.Replays, p.Lane, p.Tenant, p.ActionID)
	if err != nil || n > 0 {
		return err
	}
	return t.whyUnmatched(`SELECT 1 FROM action WHERE tenant = ? AND id = ?`, p.Tenant, p.ActionID)
}

const claimPushes = `
UPDATE OR ROLLBACK push SET status = 'picking', generation = generation + 1, lease_owner = ?, lease_until = ?,
  picked_at = ?
WHERE seq IN (
  SELECT seq FROM push INDEXED BY push_due_tenant
  WHERE tenant = ? AND status = 'queued' AND lane = '' AND due_at <= ?
  ORDER BY due_at, seq LIMIT ?) RETURNING ` + pushColumns

// ClaimPushes claims due pushes for one worker, one statement per tenant; no
// two workers get the same push.
func (t *tx) ClaimPushes(
	owner string, lease time.Duration, shares ...gatehouse.PushShare,
) (list []*gatehouse.Push, err error) {
	until := t.at.Add(lease)
	t.lastPush = nil
	for _, share := range shares {
		n := share.Limit
		if share.Most > 0 {
			busy, err := t.number(inFlight, share.Tenant)
			if err != nil {
				return nil, err
			}
			n = min(n, share.Most-int(busy))
		}
		if n <= 0 {
			continue
		}
		taken, err := t.pushes(claimPushes, owner, until, t.at, share.Tenant, t.at, n)
		if err != nil {
			return nil, err
		}
		list = append(list, taken...)
	}
	slices.SortStableFunc(list, shared.ByDueTime)
	return list, nil
}

const claimLane = `
UPDATE OR ROLLBACK push SET status = 'picking', generation = generation + 1, lease_owner = ?1, lease_until = ?2,
  picked_at = ?3
WHERE seq IN (
  SELECT seq FROM push INDEXED BY push_due_lane
  WHERE tenant = ?4 AND status = 'queued' AND lane <> '' AND lane = ?5 AND due_at <= ?3
  AND (?6 = '' OR EXISTS (
    SELECT 1 FROM action a WHERE a.seq = push.action_seq AND a.proposer_id = ?6))
  AND (?7 = '[]' OR EXISTS (
    SELECT 1 FROM proposal p, json_each(?7) o WHERE p.seq = push.action_seq AND p.operation = o.value))
  ORDER BY due_at, seq LIMIT ?8) RETURNING ` + pushColumns

// ClaimLane claims due pushes for one external worker, lane by lane.
func (t *tx) ClaimLane(c gatehouse.LaneClaim) (list []*gatehouse.Push, err error) {
	t.lastPush = nil
	for _, lane := range c.Lanes {
		if len(list) >= c.Limit {
			break
		}
		operations := "[]"
		if named := c.Operations[lane]; len(named) > 0 {
			operations = string(gatehouse.MustJSON(named))
		}
		taken, err := t.pushes(claimLane, c.Owner, t.at.Add(c.Lease), t.at, t.tenant, lane, c.Proposer, operations,
			c.Limit-len(list))
		if err != nil {
			return nil, err
		}
		list = append(list, taken...)
	}
	return list, nil
}

// waitingLanes goes from lane to lane, with one lookup in push_due_lane for each.
const waitingLanes = `
WITH RECURSIVE l (lane) AS (
  SELECT (
    SELECT lane FROM push INDEXED BY push_due_lane WHERE tenant = ?1 AND status = 'queued' AND lane <> '' ORDER BY lane LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT lane FROM push INDEXED BY push_due_lane
    WHERE tenant = ?1 AND status = 'queued' AND lane <> '' AND lane > l.lane ORDER BY lane LIMIT 1
  ) FROM l WHERE lane IS NOT NULL
)
SELECT lane FROM l WHERE lane IS NOT NULL LIMIT ?2`

// WaitingLanes returns the lanes with queued pushes.
func (t *readTx) WaitingLanes(limit int) (lanes []string, err error) {
	err = t.each(waitingLanes, func(r *stmt) error { lanes = append(lanes, r.Text()); return nil }, t.tenant, limit)
	return lanes, err
}

const (
	dueInLane = `SELECT due_at FROM push INDEXED BY push_due_lane
WHERE tenant = ? AND status = 'queued' AND lane <> '' AND lane = ? AND due_at <= ? ORDER BY due_at, seq LIMIT 1`
	leasedInLane = `SELECT count(*) FROM (SELECT 1 FROM push INDEXED BY push_lease_lane
WHERE lane <> '' AND status IN ('picking', 'sent') AND lease_until > ? AND tenant = ? AND lane = ? LIMIT 1)`
)

// DueInLane reads the first due push of a lane, and looks for a lease.
func (t *readTx) DueInLane(lane string) (since time.Time, leased bool, err error) {
	err = t.each(dueInLane, func(r *stmt) error { since = r.Time(); return nil }, t.tenant, lane, t.at)
	if err != nil {
		return since, false, err
	}
	n, err := t.number(leasedInLane, t.at, t.tenant, lane)
	return since, n != 0, err
}

const (
	// updateSame does not write the generation: otherwise the trigger that compares generations would run.
	updateSame = `
UPDATE OR ROLLBACK push SET status = ?1, attempts = ?2, attempt_base = ?3, last_error = ?4, error_code = ?5,
  not_before = ?6, next_attempt = ?7, picked_at = ?8, sent_at = ?9, applied_at = ?10, finished_at = ?11,
  lease_owner = ?12, lease_until = ?13, replays = ?14, put_back = ?15
WHERE tenant = ?16 AND id = ?17 AND status = ?18 AND generation = ?19 AND action_id = ?20`
	updateRaised = `
UPDATE OR ROLLBACK push SET status = ?1, attempts = ?2, attempt_base = ?3, last_error = ?4, error_code = ?5,
  not_before = ?6, next_attempt = ?7, picked_at = ?8, sent_at = ?9, applied_at = ?10, finished_at = ?11,
  lease_owner = ?12, lease_until = ?13, replays = ?14, put_back = ?15, generation = ?21
WHERE tenant = ?16 AND id = ?17 AND status = ?18 AND generation = ?19 AND action_id = ?20`
)

// UpdatePush writes the mutable fields of a push; ErrConflict unless the stored
// status is from and the stored generation is generation. For a heartbeat, from is the status of p.
func (t *tx) UpdatePush(p *gatehouse.Push, from gatehouse.PushStatus, generation int) error {
	if err := t.Owns(p.Tenant); err != nil {
		return err
	}
	if p.Status != from && !from.CanMove(p.Status) || p.Generation < generation {
		return gatehouse.ErrConflict
	}
	t.lastPush = nil
	args := []any{
		string(p.Status), p.Attempts, p.AttemptBase, p.LastError, p.ErrorCode, p.NotBefore,
		p.NextAttempt, p.PickedAt, p.SentAt, p.AppliedAt, p.FinishedAt, p.LeaseOwner, p.LeaseUntil, p.Replays, p.PutBack,
		p.Tenant, p.ID, string(from), generation, p.ActionID,
	}
	sql := updateSame
	if p.Generation != generation {
		sql, args = updateRaised, append(args, p.Generation)
	}
	if err := t.guarded(sql, args...); err != nil {
		return err
	}
	t.knownPush = knownPush{p.Tenant, p.ID, p.ActionID}
	return nil
}
