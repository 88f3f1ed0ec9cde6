package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// FindSlackClick finds a click by id.
func (t *readTx) FindSlackClick(id string) (c *gatehouse.SlackClick, err error) {
	err = t.one(`SELECT `+shared.ClickColumns+` FROM slack_click c WHERE c.tenant = $1 AND c.id = $2`,
		func(r *row) error { c = shared.ScanClick(r); return nil }, t.tenant, id)
	return c, err
}

// OpenSlackClicks counts the decision clicks on an action that are not carried out yet.
func (t *readTx) OpenSlackClicks(actionID string) (int, error) {
	n, err := t.number(`SELECT count(*) FROM slack_click WHERE tenant = $1 AND action_id = $2 AND result = ''`,
		t.tenant, actionID)
	return int(n), err
}

// NextSlackClickAt returns the earliest due time of all clicks.
func (t *readTx) NextSlackClickAt() (time.Time, error) {
	defer t.useAllTenants()()
	return t.earliest(`SELECT min(due_at) FROM slack_click WHERE due_at IS NOT NULL`)
}

// NextCardAt returns the earliest due time of a channel's cards.
func (t *readTx) NextCardAt(channel string) (time.Time, error) {
	defer t.useAllTenants()()
	return t.earliest(`SELECT min(due_at) FROM notification_card WHERE channel = $1 AND due_at IS NOT NULL`, channel)
}

func (t *readTx) earliest(sql string, args ...any) (next time.Time, err error) {
	err = t.each(sql, func(r *row) error {
		if at := r.TimePtr(); at != nil {
			next = *at
		}
		return nil
	}, args...)
	return next, err
}

// InsertSlackClick stores a click; ErrConflict if the interaction is known.
func (t *tx) InsertSlackClick(c *gatehouse.SlackClick) error {
	if err := t.checkTenant(c.Tenant); err != nil {
		return err
	}
	return t.write(
		`INSERT INTO slack_click (tenant, id, created_at, key, channel, place, ts, issuer, slack_user, action_id,
digest, choice, reason, result, said, attempts, last_error, due_at, finished_at, generation, lease_owner)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`,
		c.Tenant, c.ID, c.CreatedAt, c.Key[:], c.Channel, c.Place, c.TS, c.Issuer, c.User, c.ActionID, c.Digest,
		string(c.Choice), c.Reason, c.Result, c.Said, c.Attempts, c.LastError, c.DueAt, c.FinishedAt, c.Generation,
		c.LeaseOwner)
}

const claimClicks = `WITH due AS MATERIALIZED (SELECT tenant, id FROM slack_click WHERE due_at <= $3
  ORDER BY due_at LIMIT $4 FOR UPDATE SKIP LOCKED)
UPDATE slack_click c SET attempts = c.attempts + 1, generation = c.generation + 1, lease_owner = $1, due_at = $2
FROM due WHERE c.tenant = due.tenant AND c.id = due.id RETURNING ` + shared.ClickColumns

// ClaimSlackClicks claims due clicks of all tenants. No two claimers get the same one.
func (t *tx) ClaimSlackClicks(
	owner string, lease time.Duration, limit int,
) (list []*gatehouse.SlackClick, err error) {
	defer t.useAllTenants()()
	now := t.Now()
	err = t.lockAndRead(nil, ask(claimClicks, func(r *row) error {
		list = append(list,
			shared.ScanClick(r))
		return nil
	},
		owner, now.Add(lease), now, int64(limit)))
	t.wrote = t.wrote || len(list) > 0
	return list, err
}

// UpdateSlackClick writes the mutable fields, guarded by the generation.
func (t *tx) UpdateSlackClick(c *gatehouse.SlackClick, generation int) error {
	if err := t.checkTenant(c.Tenant); err != nil {
		return err
	}
	return t.write(`
WITH w AS (
  UPDATE slack_click SET result = $1, said = $2, attempts = $3, last_error = $4, due_at = $5,
  finished_at = $6, lease_owner = $7 WHERE tenant = $8 AND id = $9 AND generation = $10
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		c.Result, c.Said, c.Attempts, c.LastError, c.DueAt, c.FinishedAt, c.LeaseOwner, c.Tenant, c.ID, generation)
}

// PurgeSlackClicks deletes clicks that finished long ago. It skips rows that another process is
// deleting.
func (t *tx) PurgeSlackClicks(olderThan time.Time, limit int) (int, error) {
	defer t.useAllTenants()()
	n, err := t.number(`WITH old AS MATERIALIZED (SELECT tenant, id FROM slack_click WHERE finished_at < $1 LIMIT $2
FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM slack_click c USING old WHERE c.tenant = old.tenant AND c.id = old.id RETURNING 1)
SELECT count(*) FROM d`, olderThan, limit)
	t.wrote = t.wrote || n > 0
	return int(n), err
}

// FindCard finds a card by channel and action.
func (t *readTx) FindCard(channel, actionID string) (c *gatehouse.PostedCard, err error) {
	err = t.one(`SELECT `+shared.CardColumns+` FROM notification_card c
WHERE c.tenant = $1 AND c.channel = $2 AND c.action_id = $3`,
		func(r *row) error { c = shared.ScanCard(r); return nil }, t.tenant, channel, actionID)
	return c, err
}

// PutCard stores a due card, or replaces the message of a stored one.
func (t *tx) PutCard(c *gatehouse.PostedCard) error {
	if err := t.checkTenant(c.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO notification_card (tenant, channel, action_id, ref, wanted, shown, due_at, attempts,
generation, lease_owner, last_error, updated_at) VALUES ($1, $2, $3, $4, 1, $5, $6, 0, 0, '', '', $6)
ON CONFLICT (tenant, channel, action_id) DO UPDATE SET ref = excluded.ref, shown = excluded.shown,
  wanted = notification_card.wanted + 1, updated_at = excluded.updated_at,
  due_at = CASE WHEN notification_card.lease_owner = '' THEN excluded.due_at ELSE notification_card.due_at END`,
		c.Tenant, c.Channel, c.ActionID, c.Ref, c.Shown, t.Now())
}

// TouchCards makes the cards of an action due.
func (t *tx) TouchCards(actionID string) error {
	return t.write(`UPDATE notification_card SET wanted = wanted + 1,
due_at = CASE WHEN lease_owner = '' THEN $1 ELSE due_at END WHERE tenant = $2 AND action_id = $3`,
		t.Now(), t.tenant, actionID)
}

const (
	claimCards = `WITH due AS MATERIALIZED (SELECT tenant, channel, action_id FROM notification_card
WHERE channel = $3 AND due_at <= $4 ORDER BY due_at LIMIT $5 FOR UPDATE SKIP LOCKED)
UPDATE notification_card c SET attempts = c.attempts + 1, generation = c.generation + 1, lease_owner = $1,
due_at = $2
FROM due WHERE c.tenant = due.tenant AND c.channel = due.channel AND c.action_id = due.action_id
RETURNING ` + shared.CardColumns
	claimCard = `UPDATE notification_card c SET attempts = c.attempts + 1, generation = c.generation + 1,
lease_owner = $1, due_at = $2 WHERE c.tenant = $3 AND c.channel = $4 AND c.action_id = $5
AND (c.lease_owner = '' OR c.due_at <= $6) RETURNING ` + shared.CardColumns
)

// ClaimCards claims due cards of all tenants. No two claimers get the same one.
func (t *tx) ClaimCards(
	channel, owner string, lease time.Duration, limit int,
) (list []*gatehouse.PostedCard, err error) {
	defer t.useAllTenants()()
	now := t.Now()
	err = t.lockAndRead(nil, ask(claimCards, func(r *row) error { list = append(list, shared.ScanCard(r)); return nil },
		owner, now.Add(lease), channel, now, int64(limit)))
	t.wrote = t.wrote || len(list) > 0
	return list, err
}

// ClaimCard claims a card that nobody holds.
func (t *tx) ClaimCard(
	channel, actionID, owner string, lease time.Duration,
) (c *gatehouse.PostedCard, err error) {
	now := t.Now()
	err = t.lockAndRead(nil, ask(claimCard, func(r *row) error { c = shared.ScanCard(r); return nil },
		owner, now.Add(lease), t.tenant, channel, actionID, now))
	if err == nil && c == nil {
		err = gatehouse.ErrConflict
	}
	t.wrote = t.wrote || c != nil
	return c, err
}

// UpdateCard ends a claim. A card touched during the claim is due again.
func (t *tx) UpdateCard(c *gatehouse.PostedCard, generation int) error {
	if err := t.checkTenant(c.Tenant); err != nil {
		return err
	}
	return t.write(`
WITH w AS (
  UPDATE notification_card SET shown = $1, attempts = $2, last_error = $3, lease_owner = '',
  updated_at = $4::bigint, due_at = CASE WHEN wanted = $5 THEN $6::bigint ELSE $4::bigint END
  WHERE tenant = $7 AND channel = $8 AND action_id = $9 AND generation = $10
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		c.Shown, c.Attempts, c.LastError, t.Now(), c.Wanted, c.DueAt, c.Tenant, c.Channel, c.ActionID, generation)
}

// PurgeCards deletes cards last updated long ago. It skips rows that another process is
// deleting.
func (t *tx) PurgeCards(olderThan time.Time, limit int) (int, error) {
	defer t.useAllTenants()()
	n, err := t.number(`WITH old AS MATERIALIZED (SELECT tenant, channel, action_id FROM notification_card
WHERE due_at IS NULL AND updated_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM notification_card c USING old
WHERE c.tenant = old.tenant AND c.channel = old.channel AND c.action_id = old.action_id RETURNING 1)
SELECT count(*) FROM d`, olderThan, limit)
	t.wrote = t.wrote || n > 0
	return int(n), err
}
