package shared

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// ScanClick reads a click, in the order of the table's columns.
func ScanClick(r Row) (*gatehouse.SlackClick, error) {
	return &gatehouse.SlackClick{
		Tenant: r.Text(), ID: r.Text(), CreatedAt: r.Time(), Key: r.Hash(), Channel: r.Text(), SlackChannel: r.Text(),
		TS: r.Text(), Issuer: r.Text(), User: r.Text(), ActionID: r.Text(), Digest: r.Text(),
		Choice: gatehouse.DecisionKind(r.Text()), Reason: r.Text(), Result: r.Text(), Said: r.Text(),
		Attempts: int(r.Int()), LastError: r.Text(), DueAt: r.TimePtr(), FinishedAt: r.TimePtr(),
		Generation: int(r.Int()), LeaseOwner: r.Text(),
	}, nil
}

// FindSlackClick finds a click by id.
func (t Reads) FindSlackClick(id string) (*gatehouse.SlackClick, error) {
	return find(t, ScanClick, `
SELECT tenant, id, created_at, key, channel, place, ts, issuer, slack_user, action_id, digest, choice, reason,
  result, said, attempts, last_error, due_at, finished_at, generation, lease_owner
FROM slack_click WHERE tenant = $1 AND id = $2`, t.Tenant(), id)
}

// OpenSlackClicks counts the decision clicks on an action that are not carried out yet.
func (t Reads) OpenSlackClicks(actionID string) (int, error) {
	return number(t, `
SELECT count(*) FROM slack_click WHERE tenant = $1 AND action_id = $2 AND result = ''`, t.Tenant(), actionID)
}

// NextSlackClickAt returns the earliest due time of all clicks.
func (t Reads) NextSlackClickAt() (time.Time, error) {
	defer t.AllTenants()()
	return timeOrZero(t, `SELECT min(due_at) FROM slack_click WHERE due_at IS NOT NULL`)
}

// InsertSlackClick stores a click; ErrConflict if the interaction is known.
func (t Writes) InsertSlackClick(c *gatehouse.SlackClick) error {
	if err := t.Owns(c.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO slack_click (tenant, id, created_at, key, channel, place, ts, issuer, slack_user, action_id, digest,
  choice, reason, result, said, attempts, last_error, due_at, finished_at, generation, lease_owner)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`,
		c.Tenant, c.ID, c.CreatedAt, c.Key[:], c.Channel, c.SlackChannel, c.TS, c.Issuer, c.User, c.ActionID, c.Digest,
		string(c.Choice), c.Reason, c.Result, c.Said, c.Attempts, c.LastError, c.DueAt, c.FinishedAt, c.Generation,
		c.LeaseOwner)
}

// UpdateSlackClick writes the mutable fields; ErrConflict unless the stored generation is generation.
func (t Writes) UpdateSlackClick(c *gatehouse.SlackClick, generation int) error {
	if err := t.Owns(c.Tenant); err != nil {
		return err
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE slack_click SET result = $1, said = $2, attempts = $3, last_error = $4, due_at = $5, finished_at = $6,
  lease_owner = $7
WHERE tenant = $8 AND id = $9 AND generation = $10`,
		c.Result, c.Said, c.Attempts, c.LastError, c.DueAt, c.FinishedAt, c.LeaseOwner, c.Tenant, c.ID, generation)
}

// ScanCard reads a card, in the order of the table's columns.
func ScanCard(r Row) (*gatehouse.PostedCard, error) {
	return &gatehouse.PostedCard{
		Tenant: r.Text(), Channel: r.Text(), ActionID: r.Text(), Ref: r.Text(), Wanted: r.Int(), Shown: r.Text(),
		DueAt: r.TimePtr(), Attempts: int(r.Int()), Generation: int(r.Int()), LeaseOwner: r.Text(),
		LastError: r.Text(), UpdatedAt: r.Time(),
	}, nil
}

// FindCard finds a card by channel and action.
func (t Reads) FindCard(channel, actionID string) (*gatehouse.PostedCard, error) {
	return find(t, ScanCard, `
SELECT tenant, channel, action_id, ref, wanted, shown, due_at, attempts, generation, lease_owner, last_error,
  updated_at
FROM notification_card WHERE tenant = $1 AND channel = $2 AND action_id = $3`, t.Tenant(), channel, actionID)
}

// NextCardAt returns the earliest due time of a channel's cards.
func (t Reads) NextCardAt(channel string) (time.Time, error) {
	defer t.AllTenants()()
	return timeOrZero(t, `
SELECT min(due_at) FROM notification_card WHERE channel = $1 AND due_at IS NOT NULL`, channel)
}

// PutCard stores a due card, or replaces the message of a stored one.
func (t Writes) PutCard(c *gatehouse.PostedCard) error {
	if err := t.Owns(c.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO notification_card (tenant, channel, action_id, ref, wanted, shown, due_at, attempts, generation,
  lease_owner, last_error, updated_at)
VALUES ($1, $2, $3, $4, 1, $5, $6, 0, 0, '', '', $6)
ON CONFLICT (tenant, channel, action_id) DO UPDATE SET ref = excluded.ref, shown = excluded.shown,
  wanted = notification_card.wanted + 1, updated_at = excluded.updated_at,
  due_at = CASE WHEN notification_card.lease_owner = '' THEN excluded.due_at ELSE notification_card.due_at END`,
		c.Tenant, c.Channel, c.ActionID, c.Ref, c.Shown, t.Now())
}

// TouchCards makes the cards of an action due. A claimed card becomes due when its claim ends.
func (t Writes) TouchCards(actionID string) error {
	return t.Write(`
UPDATE notification_card SET wanted = wanted + 1, due_at = CASE WHEN lease_owner = '' THEN $1 ELSE due_at END
WHERE tenant = $2 AND action_id = $3`, t.Now(), t.Tenant(), actionID)
}

// ClaimCard claims a card that nobody holds.
func (t Writes) ClaimCard(
	channel, actionID, owner string, lease time.Duration,
) (c *gatehouse.PostedCard, err error) {
	err = t.Returning(`
UPDATE notification_card SET attempts = attempts + 1, generation = generation + 1, lease_owner = $1, due_at = $2
WHERE tenant = $3 AND channel = $4 AND action_id = $5 AND (lease_owner = '' OR due_at <= $6)
RETURNING tenant, channel, action_id, ref, wanted, shown, due_at, attempts, generation, lease_owner, last_error,
  updated_at`, func(r Row) error { c, err = ScanCard(r); return err },
		owner, t.Now().Add(lease), t.Tenant(), channel, actionID, t.Now())
	if err == nil && c == nil {
		err = gatehouse.ErrConflict
	}
	return c, err
}

// UpdateCard ends a claim. A card that was touched during the claim is due again.
func (t Writes) UpdateCard(c *gatehouse.PostedCard, generation int) error {
	if err := t.Owns(c.Tenant); err != nil {
		return err
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE notification_card SET shown = $1, attempts = $2, last_error = $3, lease_owner = '',
  updated_at = CAST($4 AS bigint),
  due_at = CASE WHEN wanted = $5 THEN CAST($6 AS bigint) ELSE CAST($4 AS bigint) END
WHERE tenant = $7 AND channel = $8 AND action_id = $9 AND generation = $10`,
		c.Shown, c.Attempts, c.LastError, t.Now(), c.Wanted, c.DueAt, c.Tenant, c.Channel, c.ActionID, generation)
}
