package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// Most statements of this file name their index. No two callers claim the same row: there is one writer.

// ClaimNotifications claims due messages of all tenants.
func (t *tx) ClaimNotifications(
	channel, owner string, lease time.Duration, limit int,
) (list []*gatehouse.Notification, err error) {
	err = t.Returning(`
UPDATE notification SET status = 'sent', attempts = attempts + 1, generation = generation + 1, lease_owner = $1,
  due_at = $2
WHERE (tenant, id) IN (
  SELECT tenant, id FROM notification INDEXED BY notification_due
  WHERE channel = $3 AND due_at IS NOT NULL AND due_at <= $4 ORDER BY due_at LIMIT $5)
RETURNING tenant, id, created_at, kind, action_id, entry, channel, recipient, status, attempts, last_error, due_at,
  finished_at, generation, lease_owner, ref, data`,
		shared.Append(&list, shared.ScanNotification), owner, t.at.Add(lease), channel, t.at, limit)
	return list, err
}

// ProbeNotification makes one waiting retry of a channel due now: the oldest notification that was created after since.
// It lowers the number of attempts by one, so that the probe does not use up an attempt.
func (t *tx) ProbeNotification(channel string, since time.Time) error {
	return t.Write(`
UPDATE notification SET due_at = $1, attempts = attempts - 1
WHERE tenant = $2 AND id = (
  SELECT id FROM notification INDEXED BY notification_due
  WHERE tenant = $2 AND channel = $3 AND due_at > $1 AND status = 'queued' AND attempts > 0 AND created_at > $4
  ORDER BY created_at, id LIMIT 1)`, t.at, t.tenant, channel, since)
}

// ClaimSlackClicks claims due clicks of all tenants.
func (t *tx) ClaimSlackClicks(
	owner string, lease time.Duration, limit int,
) (list []*gatehouse.SlackClick, err error) {
	err = t.Returning(`
UPDATE slack_click SET attempts = attempts + 1, generation = generation + 1, lease_owner = $1, due_at = $2
WHERE (tenant, id) IN (
  SELECT tenant, id FROM slack_click INDEXED BY slack_click_due
  WHERE due_at IS NOT NULL AND due_at <= $3 ORDER BY due_at LIMIT $4)
RETURNING tenant, id, created_at, key, channel, place, ts, issuer, slack_user, action_id, digest, choice, reason,
  result, said, attempts, last_error, due_at, finished_at, generation, lease_owner`,
		shared.Append(&list, shared.ScanClick), owner, t.at.Add(lease), t.at, limit)
	return list, err
}

// ClaimCards claims due cards of all tenants.
func (t *tx) ClaimCards(
	channel, owner string, lease time.Duration, limit int,
) (list []*gatehouse.PostedCard, err error) {
	err = t.Returning(`
UPDATE notification_card SET attempts = attempts + 1, generation = generation + 1, lease_owner = $1, due_at = $2
WHERE (tenant, channel, action_id) IN (
  SELECT tenant, channel, action_id FROM notification_card INDEXED BY notification_card_due
  WHERE channel = $3 AND due_at IS NOT NULL AND due_at <= $4 ORDER BY due_at LIMIT $5)
RETURNING tenant, channel, action_id, ref, wanted, shown, due_at, attempts, generation, lease_owner, last_error,
  updated_at`,
		shared.Append(&list, shared.ScanCard), owner, t.at.Add(lease), channel, t.at, limit)
	return list, err
}

// PurgeNotifications deletes messages that finished long ago.
func (t *tx) PurgeNotifications(olderThan time.Time, limit int) (int, error) {
	return t.exec(`
DELETE FROM notification WHERE (tenant, id) IN (
  SELECT tenant, id FROM notification INDEXED BY notification_finished
  WHERE finished_at IS NOT NULL AND finished_at < $1 LIMIT $2)`, olderThan, limit)
}

// PurgeSlackClicks deletes clicks that finished long ago.
func (t *tx) PurgeSlackClicks(olderThan time.Time, limit int) (int, error) {
	return t.exec(`
DELETE FROM slack_click WHERE (tenant, id) IN (
  SELECT tenant, id FROM slack_click INDEXED BY slack_click_finished
  WHERE finished_at IS NOT NULL AND finished_at < $1 LIMIT $2)`, olderThan, limit)
}

// PurgeCards deletes cards that are not due and were last written long ago.
func (t *tx) PurgeCards(olderThan time.Time, limit int) (int, error) {
	return t.exec(`
DELETE FROM notification_card WHERE (tenant, channel, action_id) IN (
  SELECT tenant, channel, action_id FROM notification_card INDEXED BY notification_card_old
  WHERE due_at IS NULL AND updated_at < $1 LIMIT $2)`, olderThan, limit)
}

// PurgeReviews deletes reviews that expired long ago.
func (t *tx) PurgeReviews(olderThan time.Time, limit int) (int, error) {
	return t.exec(`
DELETE FROM review WHERE (tenant, id) IN (
  SELECT tenant, id FROM review INDEXED BY review_expired WHERE expires_at < $1 LIMIT $2)`, olderThan, limit)
}

// PurgeIdempotency deletes old answers, oldest first.
func (t *tx) PurgeIdempotency(olderThan time.Time, limit int) (int, error) {
	return t.exec(`
DELETE FROM idempotency WHERE seq IN (
  SELECT seq FROM idempotency WHERE created_at < $1 ORDER BY created_at LIMIT $2)`, olderThan, limit)
}

// PurgeSessions deletes sessions and set-up links that ended, and step-ups that happened, long ago: step-ups
// first, since they refer to sessions.
func (t *tx) PurgeSessions(olderThan time.Time, limit int) (total int, err error) {
	for _, sql := range []string{`
DELETE FROM step_up WHERE (tenant, id) IN (SELECT tenant, id FROM step_up WHERE at < $1 LIMIT $2)`, `
DELETE FROM session WHERE hash IN (
  SELECT hash FROM session s
  WHERE coalesce(revoked_at, expires_at) < $1
    AND NOT EXISTS (SELECT 1 FROM step_up u WHERE u.tenant = s.tenant AND u.session_id = s.id)
  LIMIT $2)`, `
DELETE FROM setup_link WHERE hash IN (
  SELECT hash FROM setup_link WHERE coalesce(used_at, expires_at) < $1 LIMIT $2)`,
	} {
		n, err := t.exec(sql, olderThan, limit-total)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// InsertCeremony stores a ceremony, and deletes some expired ones.
func (t *tx) InsertCeremony(c *gatehouse.Ceremony) error {
	err := t.Write(`
DELETE FROM ceremony WHERE hash IN (
  SELECT hash FROM ceremony WHERE expires_at <= $1 ORDER BY expires_at LIMIT 16)`, t.at)
	if err != nil {
		return err
	}
	return t.Write(`INSERT INTO ceremony (hash, tenant, session_id, data, expires_at) VALUES ($1, $2, $3, $4, $5)`,
		c.Hash[:], c.Tenant, c.SessionID, c.Data, c.ExpiresAt)
}
