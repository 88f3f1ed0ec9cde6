package postgres

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const pushColumns = `h.tenant, h.id, h.action_id, h.connector, h.idempotency_key, h.digest, h.status, h.attempts, h.attempt_base,
  h.last_error, h.error_code, h.not_before, h.created_at, h.next_attempt, h.picked_at, h.sent_at, h.applied_at, h.finished_at,
  h.generation, h.lease_owner, h.lease_until, h.replays, h.lane, h.target_says, h.closed_at, h.closed_by, h.closed_reason, h.put_back`

// deadLetters is the condition of an index and the SQL form of [gatehouse.Push.DeadLetter].
const deadLetters = `(status = 'unknown' OR status = 'failed' AND closed_at IS NULL)`

// CountAllDeadLetters counts the dead letters of all tenants.
func (t *readTx) CountAllDeadLetters() (int, error) {
	defer t.useAllTenants()()
	n, err := t.number(`SELECT count(*) FROM push WHERE ` + deadLetters)
	return int(n), err
}

// deadLetterOf finds the newest dead letter with an effect.
const deadLetterOf = `SELECT action_id FROM push WHERE tenant = $1 AND effect = $2 AND ` + deadLetters + ` ORDER BY id DESC LIMIT 1`

const (
	markDeadLetter = guarded + `UPDATE push SET target_says = $1, effect = $2
WHERE tenant = $3 AND id = $4 AND status = $5 AND generation = $6 AND status IN ('failed', 'unknown')` + orConflict
	closePush = guarded + `UPDATE push SET closed_at = $1, closed_by = $2, closed_reason = $3
WHERE tenant = $4 AND id = $5 AND status = 'failed' AND closed_at IS NULL` + orConflict
)

// MarkDeadLetter stores the target's answer and the effect of a push that is a dead letter.
func (t *tx) MarkDeadLetter(p *gatehouse.Push, effect gatehouse.Hash) error {
	if err := t.checkTenant(p.Tenant); err != nil {
		return err
	}
	return t.write(markDeadLetter, p.TargetSays, effect[:], p.Tenant, p.ID, string(p.Status), p.Generation)
}

// ClosePush closes a failed push for good.
func (t *tx) ClosePush(id, by, reason string) error {
	return t.write(closePush, t.Now(), by, reason, t.tenant, id)
}

const findPush = `SELECT ` + pushColumns + ` FROM push h WHERE tenant = $1 AND id = $2`

const lockPush = findPush + ` FOR NO KEY UPDATE`

// FindPush finds a push by id.
func (t *readTx) FindPush(id string) (p *gatehouse.Push, err error) {
	err = t.one(findPush, func(r *row) error { p = shared.ScanPush(r); return nil }, t.tenant, id)
	return t.orArchivedPush(id, p, t.tenant, err)
}

// LockPush is FindPush with a lock on the row.
func (t *tx) LockPush(id string) (p *gatehouse.Push, err error) {
	err = t.lockAndRead([]query{ask(lockPush, func(r *row) error { p = shared.ScanPush(r); return nil }, t.tenant, id)})
	if err == nil && p == nil {
		err = gatehouse.ErrNotFound
	}
	return t.orArchivedPush(id, p, t.tenant, err)
}

// PushCounts counts the pushes of all tenants by status.
func (t *readTx) PushCounts() (map[gatehouse.PushStatus]int, error) {
	defer t.useAllTenants()()
	counts := make(map[gatehouse.PushStatus]int)
	err := t.each(`SELECT status, count(*) FROM push GROUP BY status`, func(r *row) error {
		status := gatehouse.PushStatus(r.Text())
		counts[status] = int(r.Int())
		return nil
	})
	return counts, err
}

// walkTenants finds the tenants with queued pushes and the first due time of each, with one
// index lookup per tenant: tenants after $1, up to and including $2, due times from $3 on.
const walkTenants = `WITH RECURSIVE t (tenant, due_at) AS (
  (SELECT tenant, due_at FROM push
    WHERE status = 'queued' AND lane = '' AND tenant > $1 AND tenant <= $2 AND due_at >= $3 ORDER BY tenant, due_at, seq LIMIT 1)
  UNION ALL
  SELECT n.tenant, n.due_at FROM t CROSS JOIN LATERAL (SELECT p.tenant, p.due_at FROM push p
    WHERE p.status = 'queued' AND p.lane = '' AND p.tenant > t.tenant AND p.tenant <= $2 AND p.due_at >= $3
    ORDER BY p.tenant, p.due_at, p.seq LIMIT 1) n)
`

// pushMarks are the first due time of the queued pushes, and the first lease end of the leased
// ones, of all tenants. A transaction stores no due time and no lease end before its own start.
const pushMarks = `WITH RECURSIVE t (tenant, due_at) AS (
  (SELECT tenant, due_at FROM push WHERE status = 'queued' AND lane = '' ORDER BY tenant, due_at, seq LIMIT 1)
  UNION ALL
  SELECT n.tenant, n.due_at FROM t CROSS JOIN LATERAL (SELECT p.tenant, p.due_at FROM push p
    WHERE p.status = 'queued' AND p.lane = '' AND p.tenant > t.tenant ORDER BY p.tenant, p.due_at, p.seq LIMIT 1) n)
SELECT (SELECT min(due_at) FROM t), (SELECT lease_until FROM push WHERE status IN ('picking', 'sent') ORDER BY lease_until LIMIT 1)`

// lastTenant sorts at or after every tenant.
const lastTenant = "\x7f"

const nextPush = walkTenants + `SELECT least(
  (SELECT min(due_at) FROM t WHERE tenant <> ALL ($5::text[])),
  (SELECT lease_until FROM push WHERE status IN ('picking', 'sent') AND lease_until >= $4 ORDER BY lease_until LIMIT 1))`

// NextPushAt returns when the next push falls due or the next lease ends.
func (t *readTx) NextPushAt(except ...string) (next time.Time, err error) {
	defer t.useAllTenants()()
	if except == nil {
		except = []string{}
	}
	from, err := t.scanFrom(&t.s.pushScan)
	if err != nil {
		return next, err
	}
	err = t.scanRead(&t.s.pushScan, ask(nextPush, func(r *row) error {
		if at := r.TimePtr(); at != nil {
			next = *at
		}
		return nil
	}, "", lastTenant, from[0], from[1], except))
	return next, err
}

// leased selects the pushes in flight, from the low mark of leases on: there are never many,
// and none before the mark.
func leased(begin string) string {
	return `leased AS MATERIALIZED (SELECT tenant, lane FROM push
  WHERE status IN ('picking', 'sent') AND lease_until >= ` + begin + ` ORDER BY lease_until)`
}

// inFlight counts the pushes of a tenant in flight, except those of external workers.
func inFlight(tenant string) string {
	return `(SELECT count(*) FROM leased WHERE leased.tenant = ` + tenant + ` AND leased.lane = '')`
}

var dueTenants = walkTenants + `, ` + leased(`$4`) + ` SELECT t.tenant,
  (SELECT count(*) FROM (SELECT 1 FROM push p
    WHERE p.tenant = t.tenant AND p.status = 'queued' AND p.lane = '' AND p.due_at >= $3 AND p.due_at <= $5 ORDER BY p.due_at, p.seq LIMIT $6) d),
  ` + inFlight(`t.tenant`) + `
FROM t WHERE t.due_at <= $5 LIMIT $7`

// DueTenants lists tenants with due pushes by name: those that follow the tenant after, then the
// others.
func (t *readTx) DueTenants(after string, limit, each int) (list []gatehouse.DueTenant, err error) {
	defer t.useAllTenants()()
	row := func(r *row) error {
		if d := (gatehouse.DueTenant{Tenant: r.Text(), Due: int(r.Int()), InFlight: int(r.Int())}); len(list) < limit {
			list = append(list, d)
		}
		return nil
	}
	from, err := t.scanFrom(&t.s.pushScan)
	if err != nil {
		return nil, err
	}
	queries := []query{ask(dueTenants, row, after, lastTenant, from[0], from[1], t.Now(), each, limit)}
	if after != "" {
		queries = append(queries, ask(dueTenants, row, "", after, from[0], from[1], t.Now(), each, limit))
	}
	return list, t.scanRead(&t.s.pushScan, queries...)
}

// ExpiredLeases lists pushes whose lease has ended, earliest end first.
func (t *readTx) ExpiredLeases(limit int) ([]*gatehouse.Push, error) {
	defer t.useAllTenants()()
	from, err := t.scanFrom(&t.s.pushScan)
	if err != nil {
		return nil, err
	}
	return t.pushes(`SELECT `+pushColumns+` FROM push h WHERE status IN ('picking', 'sent') AND lease_until >= $1 AND lease_until <= $2
ORDER BY lease_until LIMIT $3`, from[1], t.Now(), limit)
}

func (t *readTx) pushes(sql string, args ...any) (list []*gatehouse.Push, err error) {
	err = t.each(sql, func(r *row) error { list = append(list, shared.ScanPush(r)); return nil }, args...)
	return list, err
}

const (
	pushInserted = `INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts,
attempt_base, last_error, error_code, not_before, created_at, next_attempt, picked_at, sent_at, applied_at, finished_at, generation,
lease_owner, lease_until, replays, lane)
SELECT tenant, $3, seq, id, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23 FROM `
	pushAllowed = `action
WHERE tenant = $1 AND id = $2 AND status = 'approved'`
	insertPush = guarded + pushInserted + pushAllowed + ` FOR NO KEY UPDATE` +
		unless + `SELECT 1 FROM action WHERE tenant = $1 AND id = $2` + orSo
	insertPushes = pushInserted + ofEach + pushAllowed + once
)

// InsertPush puts an approved action into the outbox, once and only while it is approved.
func (t *tx) InsertPush(p *gatehouse.Push) error {
	if err := t.checkTenant(p.Tenant); err != nil {
		return err
	}
	if !gatehouse.PushStatus("").CanMove(p.Status) {
		return gatehouse.ErrConflict
	}
	return t.write(insertPush, p.Tenant, p.ActionID,
		p.ID, p.Connector, p.IdempotencyKey, string(p.Digest), string(p.Status), p.Attempts, p.AttemptBase, p.LastError, p.ErrorCode,
		p.NotBefore, p.CreatedAt, p.NextAttempt, p.PickedAt, p.SentAt, p.AppliedAt, p.FinishedAt, p.Generation, p.LeaseOwner,
		p.LeaseUntil, p.Replays, p.Lane)
}

// The due pushes are selected and locked first, once. As a subquery in the condition of the
// UPDATE, the selection could run again for each row and take more than the limit.
var claimPushes = `WITH ` + leased(`$8`) + `, due AS MATERIALIZED (
  SELECT d.seq FROM unnest($4::text[], $5::bigint[], $6::bigint[]) AS s (tenant, n, most) CROSS JOIN LATERAL (
    SELECT seq FROM push WHERE tenant = s.tenant AND status = 'queued' AND lane = '' AND due_at >= $7 AND due_at <= $3 ORDER BY due_at, seq
    LIMIT CASE WHEN s.most = 0 THEN s.n ELSE least(s.n, greatest(0, s.most - ` + inFlight(`s.tenant`) + `)) END
    FOR NO KEY UPDATE SKIP LOCKED) d)
UPDATE push h SET status = 'picking', generation = h.generation + 1, lease_owner = $1, lease_until = $2, picked_at = $3
FROM due WHERE h.seq = due.seq RETURNING ` + pushColumns

// ClaimPushes claims due pushes for one worker and skips those that another worker is claiming.
// Claims for a tenant with a limit on pushes in flight run one after another, so that each
// counts what the previous one took.
func (t *tx) ClaimPushes(owner string, lease time.Duration, shares ...gatehouse.PushShare) (list []*gatehouse.Push, err error) {
	defer t.useAllTenants()()
	if len(shares) == 0 {
		return nil, nil
	}
	now := t.Now()
	tenants, limits, mosts := make([]string, len(shares)), make([]int64, len(shares)), make([]int64, len(shares))
	var bounded []string
	for i, s := range shares {
		tenants[i], limits[i], mosts[i] = s.Tenant, int64(max(s.Limit, 0)), int64(s.Most)
		if s.Most > 0 {
			bounded = append(bounded, s.Tenant)
		}
	}
	var locks []query
	slices.Sort(bounded) // all claimers lock in the same order
	for _, tenant := range bounded {
		locks = append(locks, lockFor("claim", tenant))
	}
	from, err := t.scanFrom(&t.s.pushScan)
	if err != nil {
		return nil, err
	}
	err = t.lockAndRead(locks, ask(claimPushes, func(r *row) error {
		list = append(list,
			shared.ScanPush(r))
		return nil
	},
		owner, now.Add(lease), now, tenants, limits, mosts, from[0], from[1]))
	t.wrote = t.wrote || len(list) > 0
	slices.SortStableFunc(list, func(a, b *gatehouse.Push) int { return dueAt(a).Compare(dueAt(b)) })
	return list, err
}

const claimLane = `WITH due AS MATERIALIZED (SELECT seq FROM push
  WHERE tenant = $4 AND status = 'queued' AND lane <> '' AND lane = ANY ($5::text[]) AND due_at <= $3
  AND ($7 = '' OR EXISTS (
    SELECT 1 FROM action a WHERE a.tenant = push.tenant AND a.id = push.action_id AND a.proposer_id = $7))
  ORDER BY due_at, seq LIMIT $6 FOR NO KEY UPDATE SKIP LOCKED)
UPDATE push h SET status = 'picking', generation = h.generation + 1, lease_owner = $1, lease_until = $2, picked_at = $3
FROM due WHERE h.seq = due.seq RETURNING ` + pushColumns

// ClaimLane claims due pushes for one external worker. No two workers get the same push.
func (t *tx) ClaimLane(
	owner string, lease time.Duration, proposer string, lanes []string, limit int,
) (list []*gatehouse.Push, err error) {
	now := t.Now()
	err = t.lockAndRead(nil, ask(claimLane, func(r *row) error { list = append(list, shared.ScanPush(r)); return nil },
		owner, now.Add(lease), now, t.tenant, lanes, int64(limit), proposer))
	t.wrote = t.wrote || len(list) > 0
	slices.SortStableFunc(list, func(a, b *gatehouse.Push) int { return dueAt(a).Compare(dueAt(b)) })
	return list, err
}

func dueAt(p *gatehouse.Push) time.Time {
	if p.NextAttempt != nil && p.NextAttempt.After(p.NotBefore) {
		return *p.NextAttempt
	}
	return p.NotBefore
}

const (
	pushUpdated = `UPDATE push SET status = $5, attempts = $6, attempt_base = $7, last_error = $8, error_code = $9, not_before = $10,
next_attempt = $11, picked_at = $12, sent_at = $13, applied_at = $14, finished_at = $15, generation = $16, lease_owner = $17,
lease_until = $18, replays = $19, put_back = $20`
	pushGuard = `
WHERE tenant = $1 AND id = $2 AND status = $3 AND generation = $4`
	updatePush   = guarded + pushUpdated + pushGuard + orConflict
	updatePushes = pushUpdated + ` FROM u` + pushGuard
)

// UpdatePush writes the mutable fields of a push, guarded by the status and the generation that
// its holder read. A heartbeat keeps the status.
func (t *tx) UpdatePush(p *gatehouse.Push, from gatehouse.PushStatus, generation int) error {
	if err := t.checkTenant(p.Tenant); err != nil {
		return err
	}
	if p.Status != from && !from.CanMove(p.Status) || p.Generation < generation {
		return gatehouse.ErrConflict
	}
	return t.write(updatePush,
		p.Tenant, p.ID, string(from), generation,
		string(p.Status), p.Attempts, p.AttemptBase, p.LastError, p.ErrorCode, p.NotBefore,
		p.NextAttempt, p.PickedAt, p.SentAt, p.AppliedAt, p.FinishedAt, p.Generation, p.LeaseOwner, p.LeaseUntil, p.Replays, p.PutBack)
}
