package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// FindSlackClick finds by id.
func (t *readTx) FindSlackClick(id string) (c *gatehouse.SlackClick, err error) {
	err = t.one(`SELECT `+shared.ClickColumns+` FROM slack_click c WHERE c.tenant = ?1 AND c.id = ?2`,
		func(r *stmt) error { c = shared.ScanClick(r); return nil }, t.tenant, id)
	return c, err
}

// OpenSlackClicks counts the deciding clicks that are not processed yet.
func (t *readTx) OpenSlackClicks(actionID string) (int, error) {
	n, err := t.number(`SELECT count(*) FROM slack_click WHERE tenant = ?1 AND action_id = ?2 AND result = ''`,
		t.tenant, actionID)
	return int(n), err
}

// NextSlackClickAt returns the earliest due time.
func (t *readTx) NextSlackClickAt() (time.Time, error) {
	return t.earliest(`SELECT min(due_at) FROM slack_click WHERE due_at IS NOT NULL`)
}

// NextCardAt returns the earliest due time of a channel's cards.
func (t *readTx) NextCardAt(channel string) (time.Time, error) {
	return t.earliest(`SELECT min(due_at) FROM notification_card WHERE channel = ?1 AND due_at IS NOT NULL`, channel)
}

func (t *readTx) earliest(sql string, args ...any) (next time.Time, err error) {
	err = t.each(sql, func(r *stmt) error {
		if at := r.TimePtr(); at != nil {
			next = *at
		}
		return nil
	}, args...)
	return next, err
}

// InsertSlackClick stores a click; ErrConflict when the same interaction
// exists.
func (t *tx) InsertSlackClick(c *gatehouse.SlackClick) error {
	if err := t.owns(c.Tenant); err != nil {
		return err
	}
	_, err := t.exec(
		`INSERT INTO slack_click (tenant, id, created_at, key, channel, place, ts, issuer, slack_user, action_id,
digest, choice, reason, result, said, attempts, last_error, due_at, finished_at, generation, lease_owner)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)`,
		c.Tenant, c.ID, c.CreatedAt, c.Key[:], c.Channel, c.Place, c.TS, c.Issuer, c.User, c.ActionID, c.Digest,
		string(c.Choice), c.Reason, c.Result, c.Said, c.Attempts, c.LastError, c.DueAt, c.FinishedAt, c.Generation,
		c.LeaseOwner)
	return err
}

const claimClicks = `UPDATE slack_click AS c
SET attempts = c.attempts + 1, generation = c.generation + 1, lease_owner = ?1, due_at = ?2
WHERE (c.tenant, c.id) IN (SELECT tenant, id FROM slack_click INDEXED BY slack_click_due
  WHERE due_at IS NOT NULL AND due_at <= ?3 ORDER BY due_at LIMIT ?4)
RETURNING tenant, id, created_at, key, channel, place, ts, issuer, slack_user, action_id, digest, choice, reason,
result, said, attempts, last_error, due_at, finished_at, generation, lease_owner`

// ClaimSlackClicks claims due clicks of all tenants; no two callers get the
// same one.
func (t *tx) ClaimSlackClicks(
	owner string, lease time.Duration, limit int,
) (list []*gatehouse.SlackClick, err error) {
	err = t.each(claimClicks, func(r *stmt) error { list = append(list, shared.ScanClick(r)); return nil },
		owner, t.at.Add(lease), t.at, limit)
	return list, err
}

// UpdateSlackClick writes the mutable fields, guarded by the generation.
func (t *tx) UpdateSlackClick(c *gatehouse.SlackClick, generation int) error {
	if err := t.owns(c.Tenant); err != nil {
		return err
	}
	return t.guarded(`UPDATE slack_click SET result = ?1, said = ?2, attempts = ?3, last_error = ?4, due_at = ?5,
finished_at = ?6, lease_owner = ?7 WHERE tenant = ?8 AND id = ?9 AND generation = ?10`,
		c.Result, c.Said, c.Attempts, c.LastError, c.DueAt, c.FinishedAt, c.LeaseOwner, c.Tenant, c.ID, generation)
}

// PurgeSlackClicks deletes clicks that finished long ago.
func (t *tx) PurgeSlackClicks(olderThan time.Time, limit int) (int, error) {
	return t.exec(`DELETE FROM slack_click WHERE (tenant, id) IN (SELECT tenant, id
FROM slack_click INDEXED BY slack_click_finished WHERE finished_at IS NOT NULL AND finished_at < ?1 LIMIT ?2)`,
		olderThan, limit)
}

// FindCard finds by channel and action.
func (t *readTx) FindCard(channel, actionID string) (c *gatehouse.PostedCard, err error) {
	err = t.one(`SELECT `+shared.CardColumns+` FROM notification_card c
WHERE c.tenant = ?1 AND c.channel = ?2 AND c.action_id = ?3`,
		func(r *stmt) error { c = shared.ScanCard(r); return nil }, t.tenant, channel, actionID)
	return c, err
}

// PutCard stores a card that is due, or updates its message reference.
func (t *tx) PutCard(c *gatehouse.PostedCard) error {
	if err := t.owns(c.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO notification_card (tenant, channel, action_id, ref, wanted, shown, due_at, attempts,
generation, lease_owner, last_error, updated_at) VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, 0, 0, '', '', ?6)
ON CONFLICT (tenant, channel, action_id) DO UPDATE SET ref = excluded.ref, shown = excluded.shown,
  wanted = notification_card.wanted + 1, updated_at = excluded.updated_at,
  due_at = CASE WHEN notification_card.lease_owner = '' THEN excluded.due_at ELSE notification_card.due_at END`,
		c.Tenant, c.Channel, c.ActionID, c.Ref, c.Shown, t.at)
	return err
}

// TouchCards makes the cards of an action due.
func (t *tx) TouchCards(actionID string) error {
	_, err := t.exec(`UPDATE notification_card SET wanted = wanted + 1,
due_at = CASE WHEN lease_owner = '' THEN ?1 ELSE due_at END WHERE tenant = ?2 AND action_id = ?3`,
		t.at, t.tenant, actionID)
	return err
}

const (
	claimCard = `UPDATE notification_card AS c
SET attempts = c.attempts + 1, generation = c.generation + 1, lease_owner = ?1, due_at = ?2 WHERE `
	claimedCard = ` RETURNING tenant, channel, action_id, ref, wanted, shown, due_at, attempts, generation, lease_owner,
last_error, updated_at`
)

// ClaimCards claims due cards of all tenants; no two callers get the same one.
func (t *tx) ClaimCards(
	channel, owner string, lease time.Duration, limit int,
) (list []*gatehouse.PostedCard, err error) {
	err = t.each(claimCard+`(c.tenant, c.channel, c.action_id) IN (SELECT tenant, channel, action_id
  FROM notification_card INDEXED BY notification_card_due
  WHERE channel = ?3 AND due_at IS NOT NULL AND due_at <= ?4 ORDER BY due_at LIMIT ?5)`+claimedCard,
		func(r *stmt) error { list = append(list, shared.ScanCard(r)); return nil },
		owner, t.at.Add(lease), channel, t.at, limit)
	return list, err
}

// ClaimCard claims one card that nobody holds.
func (t *tx) ClaimCard(
	channel, actionID, owner string, lease time.Duration,
) (c *gatehouse.PostedCard, err error) {
	err = t.each(claimCard+`c.tenant = ?3 AND c.channel = ?4 AND c.action_id = ?5
AND (c.lease_owner = '' OR c.due_at <= ?6)`+claimedCard,
		func(r *stmt) error { c = shared.ScanCard(r); return nil },
		owner, t.at.Add(lease), t.tenant, channel, actionID, t.at)
	if err == nil && c == nil {
		err = gatehouse.ErrConflict
	}
	return c, err
}

// UpdateCard ends a claim. A card that was touched meanwhile becomes due again.
func (t *tx) UpdateCard(c *gatehouse.PostedCard, generation int) error {
	if err := t.owns(c.Tenant); err != nil {
		return err
	}
	return t.guarded(`UPDATE notification_card SET shown = ?1, attempts = ?2, last_error = ?3, lease_owner = '',
updated_at = ?4, due_at = CASE WHEN wanted = ?5 THEN ?6 ELSE ?4 END
WHERE tenant = ?7 AND channel = ?8 AND action_id = ?9 AND generation = ?10`,
		c.Shown, c.Attempts, c.LastError, t.at, c.Wanted, c.DueAt, c.Tenant, c.Channel, c.ActionID, generation)
}

// PurgeCards deletes cards that were last written long ago.
func (t *tx) PurgeCards(olderThan time.Time, limit int) (int, error) {
	return t.exec(`DELETE FROM notification_card WHERE (tenant, channel, action_id) IN (
  SELECT tenant, channel, action_id FROM notification_card INDEXED BY notification_card_old
  WHERE due_at IS NULL AND updated_at < ?1 LIMIT ?2)`, olderThan, limit)
}
