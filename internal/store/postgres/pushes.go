package postgres

import (
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const pushColumns = `h.tenant, h.id, h.action_id, h.connector, h.idempotency_key, h.digest, h.status, h.attempts,
  h.attempt_base, h.last_error, h.error_code, h.not_before, h.created_at, h.next_attempt, h.picked_at, h.sent_at,
  h.applied_at, h.finished_at, h.generation, h.lease_owner, h.lease_until, h.replays, h.lane, h.target_says,
  h.closed_at, h.closed_by, h.closed_reason, h.put_back`

// deadLetters is the condition of an index and the SQL form of [gatehouse.Push.DeadLetter].
const deadLetters = `(status = 'unknown' OR status = 'failed' AND closed_at IS NULL)`

// CountAllDeadLetters counts the dead letters of all tenants.
func (t *readTx) CountAllDeadLetters() (int, error) {
	defer t.AllTenants()()
	n, err := t.number(`SELECT count(*) FROM push WHERE (status = 'unknown' OR status = 'failed' AND closed_at IS NULL)`)
	return int(n), err
}

// effectRow is the hash of a change's effect.
type effectRow struct {
	Tenant string
	Effect gatehouse.Hash
}

// findDeadLetters finds the newest dead letter with each effect. The condition is that of deadLetters.
var findDeadLetters = reads[effectRow](`
SELECT r.n, h.action_id
FROM (
  SELECT tenant, ($2::bytea[])[n] AS effect, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT action_id FROM push
  WHERE tenant = r.tenant AND effect = r.effect
    AND (status = 'unknown' OR status = 'failed' AND closed_at IS NULL)
  ORDER BY id DESC LIMIT 1
) h`)

const (
	markDeadLetter = `
WITH w AS (
  UPDATE push SET target_says = $1, effect = $2
  WHERE tenant = $3 AND id = $4 AND status = $5 AND generation = $6 AND status IN ('failed', 'unknown')
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`
	closePush = `
WITH w AS (
  UPDATE push SET closed_at = $1, closed_by = $2, closed_reason = $3
  WHERE tenant = $4 AND id = $5 AND status = 'failed' AND closed_at IS NULL
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`
)

// MarkDeadLetter stores the target's answer and the effect of a push that is a dead letter.
func (t *tx) MarkDeadLetter(p *gatehouse.Push, effect gatehouse.Hash) error {
	if err := t.Owns(p.Tenant); err != nil {
		return err
	}
	return t.Write(markDeadLetter, p.TargetSays, effect[:], p.Tenant, p.ID, string(p.Status), p.Generation)
}

// ClosePush closes a failed push permanently.
func (t *tx) ClosePush(id, by, reason string) error {
	return t.Write(closePush, t.Now(), by, reason, t.tenant, id)
}

var findPushes = reads[idRow](`
SELECT r.n, h.tenant, h.id, h.action_id, h.connector, h.idempotency_key, h.digest, h.status, h.attempts, h.attempt_base,
  h.last_error, h.error_code, h.not_before, h.created_at, h.next_attempt, h.picked_at, h.sent_at, h.applied_at,
  h.finished_at, h.generation, h.lease_owner, h.lease_until, h.replays, h.lane, h.target_says, h.closed_at,
  h.closed_by, h.closed_reason, h.put_back
FROM (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (SELECT * FROM push WHERE tenant = r.tenant AND id = r.id OFFSET 0) h`)

var lockPushes = locks[idRow](`
SELECT r.n, h.tenant, h.id, h.action_id, h.connector, h.idempotency_key, h.digest, h.status, h.attempts, h.attempt_base,
  h.last_error, h.error_code, h.not_before, h.created_at, h.next_attempt, h.picked_at, h.sent_at, h.applied_at,
  h.finished_at, h.generation, h.lease_owner, h.lease_until, h.replays, h.lane, h.target_says, h.closed_at,
  h.closed_by, h.closed_reason, h.put_back
FROM (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (SELECT * FROM push WHERE tenant = r.tenant AND id = r.id FOR NO KEY UPDATE /* SKIP LOCKED */) h`)

// FindPush finds a push by id.
func (t *readTx) FindPush(id string) (p *gatehouse.Push, err error) {
	err = t.read(findPushes.ask(func(r *row) error { p = shared.ScanPush(r); return nil }, idRow{t.tenant, id}))
	if err == nil && p == nil {
		err = gatehouse.ErrNotFound
	}
	return t.orArchivedPush(id, p, t.tenant, err)
}

// LockPush is FindPush with a lock on the row.
func (t *tx) LockPush(id string) (p *gatehouse.Push, err error) {
	scan := func(r *row) error { p = shared.ScanPush(r); return nil }
	err = t.lockAndRead([]query{lockPushes.ask(scan, idRow{t.tenant, id})})
	if err == nil && p == nil {
		err = gatehouse.ErrNotFound
	}
	return t.orArchivedPush(id, p, t.tenant, err)
}

// PushCounts counts the pushes of all tenants by status.
func (t *readTx) PushCounts() (map[gatehouse.PushStatus]int, error) {
	defer t.AllTenants()()
	counts := make(map[gatehouse.PushStatus]int)
	err := t.each(`SELECT status, count(*) FROM push GROUP BY status`, func(r *row) error {
		status := gatehouse.PushStatus(r.Text())
		counts[status] = int(r.Int())
		return nil
	})
	return counts, err
}

// pushMarks reads the low marks of pushScan (see scanStart): the first due time of the queued pushes, and
// the first lease end of the leased pushes, of all tenants. No transaction stores a due time or lease end
// that is earlier than its own start.
const pushMarks = `WITH RECURSIVE t (tenant, due_at) AS (
  (SELECT tenant, due_at FROM push WHERE status = 'queued' AND lane = '' ORDER BY tenant, due_at, seq LIMIT 1)
  UNION ALL
  SELECT n.tenant, n.due_at FROM t CROSS JOIN LATERAL (SELECT p.tenant, p.due_at FROM push p
    WHERE p.status = 'queued' AND p.lane = '' AND p.tenant > t.tenant ORDER BY p.tenant, p.due_at, p.seq LIMIT 1) n)
SELECT (SELECT min(due_at) FROM t),
  (SELECT lease_until FROM push WHERE status IN ('picking', 'sent') ORDER BY lease_until LIMIT 1)`

// nextPush finds the tenants with queued pushes and the first due time of each, with one index lookup per
// tenant: tenants after $1, up to and including $2, due times from $3 on.
const nextPush = `
WITH RECURSIVE t (tenant, due_at) AS (
  (
    SELECT tenant, due_at FROM push
    WHERE status = 'queued' AND lane = '' AND tenant > $1 AND tenant <= $2 AND due_at >= $3
    ORDER BY tenant, due_at, seq LIMIT 1
  )
  UNION ALL
  SELECT n.tenant, n.due_at FROM t CROSS JOIN LATERAL (
    SELECT p.tenant, p.due_at FROM push p
    WHERE p.status = 'queued' AND p.lane = '' AND p.tenant > t.tenant AND p.tenant <= $2 AND p.due_at >= $3
    ORDER BY p.tenant, p.due_at, p.seq LIMIT 1
  ) n
)
SELECT least(
  (SELECT min(due_at) FROM t WHERE tenant <> ALL ($5::text[])),
  (
    SELECT lease_until FROM push WHERE status IN ('picking', 'sent') AND lease_until >= $4
    ORDER BY lease_until LIMIT 1
  ))`

// NextPushAt returns when the next push falls due or the next lease ends. It ignores the queued pushes of
// the tenants in except.
func (t *readTx) NextPushAt(except ...string) (next time.Time, err error) {
	defer t.AllTenants()()
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
	}, "", shared.MaxText, from[0], from[1], except))
	return next, err
}

// dueTenants finds tenants as nextPush does. For each tenant, it counts the due pushes and the pushes in
// flight, without those of external workers. It reads all leases from the low mark $4 on: there are never
// many.
const dueTenants = `
WITH RECURSIVE t (tenant, due_at) AS (
  (
    SELECT tenant, due_at FROM push
    WHERE status = 'queued' AND lane = '' AND tenant > $1 AND tenant <= $2 AND due_at >= $3
    ORDER BY tenant, due_at, seq LIMIT 1
  )
  UNION ALL
  SELECT n.tenant, n.due_at FROM t CROSS JOIN LATERAL (
    SELECT p.tenant, p.due_at FROM push p
    WHERE p.status = 'queued' AND p.lane = '' AND p.tenant > t.tenant AND p.tenant <= $2 AND p.due_at >= $3
    ORDER BY p.tenant, p.due_at, p.seq LIMIT 1
  ) n
),
leased AS MATERIALIZED (
  SELECT tenant, lane FROM push
  WHERE status IN ('picking', 'sent') AND lease_until >= $4 ORDER BY lease_until
)
SELECT t.tenant, (
    SELECT count(*) FROM (
      SELECT 1 FROM push p
      WHERE p.tenant = t.tenant AND p.status = 'queued' AND p.lane = '' AND p.due_at >= $3 AND p.due_at <= $5
      ORDER BY p.due_at, p.seq LIMIT $6
    ) d
  ),
  (SELECT count(*) FROM leased WHERE leased.tenant = t.tenant AND leased.lane = '')
FROM t WHERE t.due_at <= $5 LIMIT $7`

// DueTenants lists tenants with due pushes by name, round-robin: first those behind the tenant that the caller
// passes as after, then those up to it.
func (t *readTx) DueTenants(after string, limit, each int) (list []gatehouse.DueTenant, err error) {
	defer t.AllTenants()()
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
	queries := []query{ask(dueTenants, row, after, shared.MaxText, from[0], from[1], t.Now(), each, limit)}
	if after != "" {
		queries = append(queries, ask(dueTenants, row, "", after, from[0], from[1], t.Now(), each, limit))
	}
	return list, t.scanRead(&t.s.pushScan, queries...)
}

const expiredLeases = `
SELECT h.tenant, h.id, h.action_id, h.connector, h.idempotency_key, h.digest, h.status,
  h.attempts, h.attempt_base, h.last_error, h.error_code, h.not_before, h.created_at, h.next_attempt, h.picked_at,
  h.sent_at, h.applied_at, h.finished_at, h.generation, h.lease_owner, h.lease_until, h.replays, h.lane,
  h.target_says, h.closed_at, h.closed_by, h.closed_reason, h.put_back
FROM push h WHERE status IN ('picking', 'sent') AND lease_until >= $1 AND lease_until <= $2
ORDER BY lease_until LIMIT $3`

// ExpiredLeases lists pushes whose lease has ended, earliest end first.
func (t *readTx) ExpiredLeases(limit int) ([]*gatehouse.Push, error) {
	defer t.AllTenants()()
	from, err := t.scanFrom(&t.s.pushScan)
	if err != nil {
		return nil, err
	}
	return t.pushes(expiredLeases, from[1], t.Now(), limit)
}

func (t *readTx) pushes(sql string, args ...any) (list []*gatehouse.Push, err error) {
	err = t.each(sql, func(r *row) error { list = append(list, shared.ScanPush(r)); return nil }, args...)
	return list, err
}

// insertPushes locks approved actions and puts them into the outbox.
var insertPushes = writes[gatehouse.Push](rankPush, "ActionID", `
WITH r AS (
  SELECT id, ($2::text[])[n] AS tenant, ($3::text[])[n] AS action_id, ($4::text[])[n] AS connector,
    ($5::text[])[n] AS idempotency_key, ($6::text[])[n] AS digest, ($7::text[])[n] AS status,
    ($8::bigint[])[n] AS attempts, ($9::bigint[])[n] AS attempt_base, ($10::text[])[n] AS last_error,
    ($11::text[])[n] AS error_code, ($12::bigint[])[n] AS not_before, ($13::bigint[])[n] AS created_at,
    ($14::bigint[])[n] AS next_attempt, ($15::bigint[])[n] AS picked_at, ($16::bigint[])[n] AS sent_at,
    ($17::bigint[])[n] AS applied_at, ($18::bigint[])[n] AS finished_at, ($19::bigint[])[n] AS generation,
    ($20::text[])[n] AS lease_owner, ($21::bigint[])[n] AS lease_until, ($22::bigint[])[n] AS replays,
    ($23::bigint[])[n] AS put_back, ($24::text[])[n] AS lane, ($25::text[])[n] AS target_says,
    ($26::bigint[])[n] AS closed_at, ($27::text[])[n] AS closed_by, ($28::text[])[n] AS closed_reason, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(id, n) LIMIT $29
),
w AS (
  INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status,
    attempts, attempt_base, last_error, error_code, not_before, created_at, next_attempt,
    picked_at, sent_at, applied_at, finished_at, generation, lease_owner, lease_until, replays, lane)
  SELECT a.tenant, r.id, a.seq, a.id, r.connector, r.idempotency_key, r.digest, r.status,
    r.attempts, r.attempt_base, r.last_error, r.error_code, r.not_before, r.created_at, r.next_attempt,
    r.picked_at, r.sent_at, r.applied_at, r.finished_at, r.generation, r.lease_owner, r.lease_until,
    r.replays, r.lane
  FROM r CROSS JOIN LATERAL (
    SELECT * FROM action WHERE tenant = r.tenant AND id = r.action_id AND status = 'approved'
    FOR NO KEY UPDATE
  ) a
  RETURNING 1
)
SELECT CASE
  WHEN (SELECT count(*) FROM w) = $29 THEN 0
  WHEN EXISTS (
    SELECT 1 FROM r CROSS JOIN LATERAL (
      SELECT 1 FROM action WHERE tenant = r.tenant AND id = r.action_id OFFSET 0) a
  ) THEN gatehouse_refuse('GH001')
  ELSE gatehouse_refuse('GH002')
END`)

// InsertPush puts an approved action into the outbox, once and only while it is approved.
func (t *tx) InsertPush(p *gatehouse.Push) error {
	if err := t.Owns(p.Tenant); err != nil {
		return err
	}
	if !gatehouse.PushStatus("").CanMove(p.Status) {
		return gatehouse.ErrConflict
	}
	return insertPushes.write(t, *p)
}

// claimPushes selects and locks the due pushes first, once. As a subquery in the condition of the UPDATE,
// the selection could run again for each row and take more than the limit. The statement counts the leases
// from the low mark $8 on.
const claimPushes = `
WITH leased AS MATERIALIZED (
  SELECT tenant, lane FROM push
  WHERE status IN ('picking', 'sent') AND lease_until >= $8 ORDER BY lease_until
),
due AS MATERIALIZED (
  SELECT d.seq
  FROM unnest($4::text[], $5::bigint[], $6::bigint[]) AS s(tenant, n, most)
  CROSS JOIN LATERAL (
    SELECT seq FROM push
    WHERE tenant = s.tenant AND status = 'queued' AND lane = '' AND due_at >= $7 AND due_at <= $3
    ORDER BY due_at, seq
    LIMIT CASE
      WHEN s.most = 0 THEN s.n
      ELSE least(s.n, greatest(0, s.most - (
        SELECT count(*) FROM leased WHERE leased.tenant = s.tenant AND leased.lane = '')))
    END
    FOR NO KEY UPDATE SKIP LOCKED
  ) d
)
UPDATE push h SET status = 'picking', generation = h.generation + 1, lease_owner = $1, lease_until = $2,
  picked_at = $3
FROM due WHERE h.seq = due.seq
RETURNING h.tenant, h.id, h.action_id, h.connector, h.idempotency_key, h.digest, h.status,
  h.attempts, h.attempt_base, h.last_error, h.error_code, h.not_before, h.created_at, h.next_attempt, h.picked_at,
  h.sent_at, h.applied_at, h.finished_at, h.generation, h.lease_owner, h.lease_until, h.replays, h.lane,
  h.target_says, h.closed_at, h.closed_by, h.closed_reason, h.put_back`

// ClaimPushes claims due pushes for one worker and skips those that another worker is claiming.
// Claims for a tenant with a limit on pushes in flight run one after another, so that each
// counts what the previous one took.
func (t *tx) ClaimPushes(
	owner string, lease time.Duration, shares ...gatehouse.PushShare,
) (list []*gatehouse.Push, err error) {
	defer t.AllTenants()()
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
	slices.SortStableFunc(list, shared.ByDueTime)
	return list, err
}

const claimLane = `
WITH due AS MATERIALIZED (
  SELECT seq FROM push
  WHERE tenant = $4 AND status = 'queued' AND lane <> '' AND lane = ANY ($5::text[]) AND due_at <= $3
    AND ($7 = '' OR EXISTS (
      SELECT 1 FROM action a WHERE a.tenant = push.tenant AND a.id = push.action_id AND a.proposer_id = $7))
    AND (lane <> ALL ($8::text[]) OR EXISTS (
      SELECT 1 FROM action a JOIN proposal p USING (seq)
      JOIN unnest($8::text[], $9::text[]) AS o(lane, operation) ON o.operation = p.operation
      WHERE a.tenant = push.tenant AND a.id = push.action_id AND o.lane = push.lane))
  ORDER BY due_at, seq LIMIT $6 FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE push h SET status = 'picking', generation = h.generation + 1, lease_owner = $1, lease_until = $2,
  picked_at = $3
FROM due WHERE h.seq = due.seq
RETURNING h.tenant, h.id, h.action_id, h.connector, h.idempotency_key, h.digest, h.status,
  h.attempts, h.attempt_base, h.last_error, h.error_code, h.not_before, h.created_at, h.next_attempt, h.picked_at,
  h.sent_at, h.applied_at, h.finished_at, h.generation, h.lease_owner, h.lease_until, h.replays, h.lane,
  h.target_says, h.closed_at, h.closed_by, h.closed_reason, h.put_back`

// ClaimLane claims due pushes for one external worker. No two workers get the same push.
func (t *tx) ClaimLane(c gatehouse.LaneClaim) (list []*gatehouse.Push, err error) {
	now := t.Now()
	restricted, operations := []string{}, []string{} // pairs
	for lane, named := range c.Operations {
		for _, operation := range named {
			restricted, operations = append(restricted, lane), append(operations, operation)
		}
	}
	err = t.lockAndRead(nil, ask(claimLane, func(r *row) error { list = append(list, shared.ScanPush(r)); return nil },
		c.Owner, now.Add(c.Lease), now, t.tenant, c.Lanes, int64(c.Limit), c.Proposer, restricted, operations))
	t.wrote = t.wrote || len(list) > 0
	slices.SortStableFunc(list, shared.ByDueTime)
	return list, err
}

// waitingLanes goes from lane to lane, with one lookup in push_due_lane for each.
const waitingLanes = `
WITH RECURSIVE l (lane) AS (
  SELECT (
    SELECT lane FROM push WHERE tenant = $1 AND status = 'queued' AND lane <> '' ORDER BY lane, due_at, seq LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT lane FROM push
    WHERE tenant = $1 AND status = 'queued' AND lane <> '' AND lane > l.lane ORDER BY lane, due_at, seq LIMIT 1
  ) FROM l WHERE lane IS NOT NULL
)
SELECT lane FROM l WHERE lane IS NOT NULL LIMIT $2`

// WaitingLanes returns the lanes with queued pushes.
func (t *readTx) WaitingLanes(limit int) (lanes []string, err error) {
	err = t.each(waitingLanes, func(r *row) error { lanes = append(lanes, r.Text()); return nil }, t.tenant, int64(limit))
	return lanes, err
}

// dueInLane reads the head of push_due_lane, and looks for a lease in push_lease: its ORDER BY leaves no other index.
const dueInLane = `
SELECT (
    SELECT due_at FROM push
    WHERE tenant = $1 AND status = 'queued' AND lane <> '' AND lane = $2 AND due_at <= $3
    ORDER BY due_at, seq LIMIT 1
  ), (
    SELECT lease_until FROM push
    WHERE tenant = $1 AND status IN ('picking', 'sent') AND lane <> '' AND lane = $2 AND lease_until > $3
    ORDER BY lease_until LIMIT 1
  ) IS NOT NULL`

// DueInLane returns when the first push of a lane fell due, and whether one is leased.
func (t *readTx) DueInLane(lane string) (since time.Time, leased bool, err error) {
	err = t.one(dueInLane, func(r *row) error {
		if at := r.TimePtr(); at != nil {
			since = *at
		}
		leased = r.Bool()
		return nil
	}, t.tenant, lane, t.Now())
	return since, leased, err
}

// pushUpdate is a push with its new values, and the status and the generation that its holder read.
type pushUpdate struct {
	FromStatus     gatehouse.PushStatus
	FromGeneration int
	gatehouse.Push
}

var updatePushes = writes[pushUpdate](rankPushUpdate, "ID", `
WITH r AS (
  SELECT from_status, ($2::bigint[])[n] AS from_generation, ($3::text[])[n] AS id, ($4::text[])[n] AS tenant,
    ($5::text[])[n] AS action_id, ($6::text[])[n] AS connector, ($7::text[])[n] AS idempotency_key,
    ($8::text[])[n] AS digest, ($9::text[])[n] AS status, ($10::bigint[])[n] AS attempts,
    ($11::bigint[])[n] AS attempt_base, ($12::text[])[n] AS last_error, ($13::text[])[n] AS error_code,
    ($14::bigint[])[n] AS not_before, ($15::bigint[])[n] AS created_at, ($16::bigint[])[n] AS next_attempt,
    ($17::bigint[])[n] AS picked_at, ($18::bigint[])[n] AS sent_at, ($19::bigint[])[n] AS applied_at,
    ($20::bigint[])[n] AS finished_at, ($21::bigint[])[n] AS generation, ($22::text[])[n] AS lease_owner,
    ($23::bigint[])[n] AS lease_until, ($24::bigint[])[n] AS replays, ($25::bigint[])[n] AS put_back,
    ($26::text[])[n] AS lane, ($27::text[])[n] AS target_says, ($28::bigint[])[n] AS closed_at,
    ($29::text[])[n] AS closed_by, ($30::text[])[n] AS closed_reason, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(from_status, n) LIMIT $31
),
w AS (
  UPDATE push SET status = r.status, attempts = r.attempts, attempt_base = r.attempt_base,
    last_error = r.last_error, error_code = r.error_code, not_before = r.not_before,
    next_attempt = r.next_attempt, picked_at = r.picked_at, sent_at = r.sent_at, applied_at = r.applied_at,
    finished_at = r.finished_at, generation = r.generation, lease_owner = r.lease_owner,
    lease_until = r.lease_until, replays = r.replays, put_back = r.put_back
  FROM r
  WHERE push.tenant = r.tenant AND push.id = r.id AND push.status = r.from_status
    AND push.generation = r.from_generation
  RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $31 THEN 0 ELSE gatehouse_refuse('GH001') END`)

// UpdatePush writes the mutable fields of a push, guarded by the status and the generation that
// its holder read. For a heartbeat, from is the status of p.
func (t *tx) UpdatePush(p *gatehouse.Push, from gatehouse.PushStatus, generation int) error {
	if err := t.Owns(p.Tenant); err != nil {
		return err
	}
	if p.Status != from && !from.CanMove(p.Status) || p.Generation < generation {
		return gatehouse.ErrConflict
	}
	return updatePushes.write(t, pushUpdate{from, generation, *p})
}
