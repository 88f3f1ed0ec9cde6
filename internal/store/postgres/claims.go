package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// The claims and deletions of this file skip the rows that another process is claiming or deleting.

// ClaimNotifications claims due messages of all tenants.
func (t *tx) ClaimNotifications(
	channel, owner string, lease time.Duration, limit int,
) (list []*gatehouse.Notification, err error) {
	defer t.AllTenants()()
	now := t.Now()
	err = t.Returning(`
WITH due AS MATERIALIZED (
  SELECT tenant, id FROM notification WHERE channel = $3 AND due_at <= $4 ORDER BY due_at LIMIT $5
  FOR UPDATE SKIP LOCKED)
UPDATE notification n SET status = 'sent', attempts = n.attempts + 1, generation = n.generation + 1,
  lease_owner = $1, due_at = $2
FROM due WHERE n.tenant = due.tenant AND n.id = due.id
RETURNING n.tenant, n.id, n.created_at, n.kind, n.action_id, n.entry, n.channel, n.recipient, n.status, n.attempts,
  n.last_error, n.due_at, n.finished_at, n.generation, n.lease_owner, n.ref, n.data`,
		shared.Append(&list, shared.ScanNotification), owner, now.Add(lease), channel, now, limit)
	return list, err
}

// ProbeNotification selects the oldest waiting retry of a channel that was created after since, makes it due now,
// and takes one of its attempts back.
func (t *tx) ProbeNotification(channel string, since time.Time) error {
	return t.Write(`
UPDATE notification SET due_at = $1, attempts = attempts - 1
WHERE tenant = $2 AND id = (
    SELECT id FROM notification
    WHERE tenant = $2 AND channel = $3 AND due_at > $1 AND status = 'queued' AND attempts > 0 AND created_at > $4
    ORDER BY created_at, id LIMIT 1)
  AND status = 'queued' AND attempts > 0`, t.Now(), t.tenant, channel, since)
}

// ClaimSlackClicks claims due clicks of all tenants.
func (t *tx) ClaimSlackClicks(
	owner string, lease time.Duration, limit int,
) (list []*gatehouse.SlackClick, err error) {
	defer t.AllTenants()()
	now := t.Now()
	err = t.Returning(`
WITH due AS MATERIALIZED (
  SELECT tenant, id FROM slack_click WHERE due_at <= $3 ORDER BY due_at LIMIT $4 FOR UPDATE SKIP LOCKED)
UPDATE slack_click c SET attempts = c.attempts + 1, generation = c.generation + 1, lease_owner = $1, due_at = $2
FROM due WHERE c.tenant = due.tenant AND c.id = due.id
RETURNING c.tenant, c.id, c.created_at, c.key, c.channel, c.place, c.ts, c.issuer, c.slack_user, c.action_id,
  c.digest, c.choice, c.reason, c.result, c.said, c.attempts, c.last_error, c.due_at, c.finished_at, c.generation,
  c.lease_owner`,
		shared.Append(&list, shared.ScanClick), owner, now.Add(lease), now, limit)
	return list, err
}

// ClaimCards claims due cards of all tenants.
func (t *tx) ClaimCards(
	channel, owner string, lease time.Duration, limit int,
) (list []*gatehouse.PostedCard, err error) {
	defer t.AllTenants()()
	now := t.Now()
	err = t.Returning(`
WITH due AS MATERIALIZED (
  SELECT tenant, channel, action_id FROM notification_card WHERE channel = $3 AND due_at <= $4
  ORDER BY due_at LIMIT $5 FOR UPDATE SKIP LOCKED)
UPDATE notification_card c SET attempts = c.attempts + 1, generation = c.generation + 1, lease_owner = $1,
  due_at = $2
FROM due WHERE c.tenant = due.tenant AND c.channel = due.channel AND c.action_id = due.action_id
RETURNING c.tenant, c.channel, c.action_id, c.ref, c.wanted, c.shown, c.due_at, c.attempts, c.generation,
  c.lease_owner, c.last_error, c.updated_at`,
		shared.Append(&list, shared.ScanCard), owner, now.Add(lease), channel, now, limit)
	return list, err
}

// purge runs a statement that deletes up to limit old rows of all tenants and returns their number.
func (t *tx) purge(sql string, olderThan time.Time, limit int) (int, error) {
	defer t.AllTenants()()
	n, err := t.number(sql, olderThan, limit)
	t.wrote = t.wrote || n > 0
	return int(n), err
}

// PurgeNotifications deletes messages that finished long ago.
func (t *tx) PurgeNotifications(olderThan time.Time, limit int) (int, error) {
	return t.purge(`
WITH old AS MATERIALIZED (
  SELECT tenant, id FROM notification WHERE finished_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM notification n USING old WHERE n.tenant = old.tenant AND n.id = old.id RETURNING 1)
SELECT count(*) FROM d`, olderThan, limit)
}

// PurgeSlackClicks deletes clicks that finished long ago.
func (t *tx) PurgeSlackClicks(olderThan time.Time, limit int) (int, error) {
	return t.purge(`
WITH old AS MATERIALIZED (
  SELECT tenant, id FROM slack_click WHERE finished_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM slack_click c USING old WHERE c.tenant = old.tenant AND c.id = old.id RETURNING 1)
SELECT count(*) FROM d`, olderThan, limit)
}

// PurgeCards deletes cards that are not due and were last written long ago.
func (t *tx) PurgeCards(olderThan time.Time, limit int) (int, error) {
	return t.purge(`
WITH old AS MATERIALIZED (
  SELECT tenant, channel, action_id FROM notification_card WHERE due_at IS NULL AND updated_at < $1 LIMIT $2
  FOR UPDATE SKIP LOCKED),
d AS (
  DELETE FROM notification_card c USING old
  WHERE c.tenant = old.tenant AND c.channel = old.channel AND c.action_id = old.action_id RETURNING 1)
SELECT count(*) FROM d`, olderThan, limit)
}

// PurgeReviews deletes reviews that expired long ago.
func (t *tx) PurgeReviews(olderThan time.Time, limit int) (int, error) {
	return t.purge(`
WITH old AS MATERIALIZED (
  SELECT tenant, id FROM review WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM review v USING old WHERE v.tenant = old.tenant AND v.id = old.id RETURNING 1)
SELECT count(*) FROM d`, olderThan, limit)
}

// PurgeIdempotency deletes old answers, oldest first.
func (t *tx) PurgeIdempotency(olderThan time.Time, limit int) (int, error) {
	return t.purge(`
WITH old AS MATERIALIZED (
  SELECT seq FROM idempotency WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM idempotency i USING old WHERE i.seq = old.seq RETURNING 1)
SELECT count(*) FROM d`, olderThan, limit)
}

// PurgeSessions deletes sessions and set-up links that ended, and step-ups that happened, long ago: step-ups
// first, since they refer to sessions.
func (t *tx) PurgeSessions(olderThan time.Time, limit int) (total int, err error) {
	for _, sql := range []string{`
WITH old AS MATERIALIZED (SELECT tenant, id FROM step_up WHERE at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM step_up u USING old WHERE u.tenant = old.tenant AND u.id = old.id RETURNING 1)
SELECT count(*) FROM d`, `
WITH old AS MATERIALIZED (
  SELECT hash FROM session s
  WHERE coalesce(revoked_at, expires_at) < $1
    AND NOT EXISTS (SELECT 1 FROM step_up u WHERE u.tenant = s.tenant AND u.session_id = s.id)
  LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM session s USING old WHERE s.hash = old.hash RETURNING 1)
SELECT count(*) FROM d`, `
WITH old AS MATERIALIZED (
  SELECT hash FROM setup_link WHERE coalesce(used_at, expires_at) < $1 LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM setup_link l USING old WHERE l.hash = old.hash RETURNING 1)
SELECT count(*) FROM d`,
	} {
		n, err := t.purge(sql, olderThan, limit-total)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// InsertCeremony stores a ceremony, and deletes some expired ones.
func (t *tx) InsertCeremony(c *gatehouse.Ceremony) error {
	defer t.AllTenants()()
	err := t.Write(`
DELETE FROM ceremony WHERE hash IN (
  SELECT hash FROM ceremony WHERE expires_at <= $1 ORDER BY expires_at LIMIT 16 FOR UPDATE SKIP LOCKED)`, t.Now())
	if err != nil {
		return err
	}
	return t.Write(`INSERT INTO ceremony (hash, tenant, session_id, data, expires_at) VALUES ($1, $2, $3, $4, $5)`,
		c.Hash[:], c.Tenant, c.SessionID, c.Data, c.ExpiresAt)
}
