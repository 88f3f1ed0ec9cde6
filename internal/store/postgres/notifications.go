package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	selectNotification = `SELECT ` + shared.NotificationColumns + `, coalesce(p.name, '')
FROM notification n LEFT JOIN principal p ON p.tenant = n.tenant AND p.id = n.recipient WHERE n.tenant = $1 AND `
)

// LogPosition returns the next log entry to process, -1 before the first MoveLogPosition.
func (t *readTx) LogPosition() (int64, error) {
	next := int64(-1)
	err := t.each(`SELECT next FROM notification_position WHERE tenant = $1`,
		func(r *row) error { next = r.Int(); return nil }, t.tenant)
	return next, err
}

// MoveLogPosition fails with ErrConflict if another process has moved the position.
func (t *tx) MoveLogPosition(from, to int64) error {
	if from < 0 {
		return t.write(`INSERT INTO notification_position (tenant, next) VALUES ($1, $2)`, t.tenant, to)

	}
	return t.write(
		`
WITH w AS (
  UPDATE notification_position SET next = $1 WHERE tenant = $2 AND next = $3
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		to,
		t.tenant,
		from,
	)
}

// FindNotification finds a notification by id.
func (t *readTx) FindNotification(id string) (n *gatehouse.Notification, err error) {
	err = t.one(selectNotification+`n.id = $2`, func(r *row) error { n = shared.ScanNamed(r); return nil }, t.tenant,
		id)
	return n, err
}

// ListNotifications lists notifications, newest first.
func (t *readTx) ListNotifications(
	f gatehouse.NotificationFilter,
) (page gatehouse.Page[*gatehouse.Notification], err error) {
	filter := []string{t.tenant, string(f.Status), f.Channel, f.ActionID}
	var since *time.Time
	if !f.FinishedSince.IsZero() {
		since = &f.FinishedSince
		filter = append(filter, since.UTC().Format(time.RFC3339Nano))
	}
	c, err := shared.ParseCursor(f.Cursor, shared.KindNotifications, filter...)
	if err != nil {
		return page, err
	}
	before := c.ID
	if before == "" {
		before = "\U0010FFFF"
	}
	limit := shared.PageLimit(f.Limit)
	page.Items = []*gatehouse.Notification{}
	sql := selectNotification + `n.id < $2 AND ($3 = '' OR n.status = $3) AND ($4 = '' OR n.channel = $4)
AND ($5 = '' OR n.action_id = $5) AND ($7::BIGINT IS NULL OR n.finished_at >= $7) ORDER BY n.id DESC LIMIT $6`
	err = t.each(sql, func(r *row) error {
		page.Items = append(page.Items, shared.ScanNamed(r))
		return nil
	}, t.tenant, before, string(f.Status), f.Channel, f.ActionID, limit+1, since)
	return shared.Finish(page, limit, func(n *gatehouse.Notification) shared.Cursor { return shared.Cursor{ID: n.ID} },
		shared.KindNotifications, filter...), err
}

// RecentNotifications counts the notifications since a time, and finds the open digest.
func (t *readTx) RecentNotifications(
	channel, recipient string, since time.Time,
) (count int, digest *gatehouse.Notification, err error) {
	n, err := t.number(`SELECT count(*) FROM notification
WHERE tenant = $1 AND channel = $2 AND recipient = $3 AND created_at > $4 AND status <> 'muted'`, t.tenant, channel, recipient, since)
	if err != nil {
		return 0, nil, err
	}
	err = t.each(selectNotification+`n.channel = $2 AND n.recipient = $3 AND n.kind = 'digest' AND n.status = 'queued'
AND n.attempts = 0 ORDER BY n.id DESC LIMIT 1`, func(r *row) error { digest = shared.ScanNamed(r); return nil }, t.tenant,
		channel, recipient)
	return int(n), digest, err
}

// ChannelStates lists states by channel.
func (t *readTx) ChannelStates() (list []*gatehouse.ChannelState, err error) {
	err = t.each(selectChannelState+` ORDER BY channel`,
		func(r *row) error {
			s, err := shared.ScanChannelState(r)
			list = append(list, s)
			return err
		}, t.tenant)
	return list, err
}

const selectChannelState = `SELECT tenant, channel, failures, failing_since, flaky, minutes, off_at, last_error, last_ok_at
FROM channel_state WHERE tenant = $1`

// OpenNotifications counts the unfinished notifications of all tenants.
func (t *readTx) OpenNotifications() (int, error) {
	defer t.useAllTenants()()
	n, err := t.number(`SELECT count(*) FROM notification WHERE due_at IS NOT NULL`)
	return int(n), err
}

// NextNotificationAt returns the earliest due time of a channel.
func (t *readTx) NextNotificationAt(channel string) (next time.Time, err error) {
	defer t.useAllTenants()()
	err = t.each(`SELECT min(due_at) FROM notification WHERE channel = $1 AND due_at IS NOT NULL`, func(r *row) error {
		if at := r.TimePtr(); at != nil {
			next = *at
		}
		return nil
	}, channel)
	return next, err
}

// InsertNotifications stores notifications one by one.
func (t *tx) InsertNotifications(list []*gatehouse.Notification) error {
	for _, x := range list {
		if err := t.checkTenant(x.Tenant); err != nil {
			return err
		}
	}
	for _, n := range list {
		err := t.write(
			`INSERT INTO notification (tenant, id, created_at, kind, action_id, entry, channel, recipient, status,
attempts,
last_error, due_at, finished_at, generation, lease_owner, ref, data)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
			n.Tenant,
			n.ID,
			n.CreatedAt,
			string(n.Kind),
			n.ActionID,
			n.Entry,
			n.Channel,
			n.Recipient,
			string(n.Status),
			n.Attempts,
			n.LastError,
			n.DueAt,
			n.FinishedAt,
			n.Generation,
			n.LeaseOwner,
			n.Ref,
			string(n.Data),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

const claimNotifications = `WITH due AS MATERIALIZED (SELECT tenant, id FROM notification
WHERE channel = $3 AND due_at <= $4
  ORDER BY due_at LIMIT $5 FOR UPDATE SKIP LOCKED)
UPDATE notification n SET status = 'sent', attempts = n.attempts + 1, generation = n.generation + 1,
lease_owner = $1, due_at = $2
FROM due WHERE n.tenant = due.tenant AND n.id = due.id RETURNING ` + shared.NotificationColumns

// ClaimNotifications claims due notifications of all tenants. No two claimers get the same one.
func (t *tx) ClaimNotifications(
	channel, owner string,
	lease time.Duration,
	limit int,
) (list []*gatehouse.Notification, err error) {
	defer t.useAllTenants()()
	now := t.Now()
	err = t.lockAndRead(
		nil,
		ask(claimNotifications, func(r *row) error { list = append(list, shared.ScanNotification(r)); return nil },
			owner, now.Add(lease), channel, now, int64(limit)),
	)
	t.wrote = t.wrote || len(list) > 0
	return list, err
}

// UpdateNotification writes the mutable fields, guarded by status and generation.
func (t *tx) UpdateNotification(n *gatehouse.Notification, from gatehouse.NotificationStatus, generation int) error {
	if err := t.checkTenant(n.Tenant); err != nil {
		return err
	}
	return t.write(
		`
WITH w AS (
  UPDATE notification SET status = $1, attempts = $2, last_error = $3, due_at = $4, finished_at = $5,
  lease_owner = $6, ref = $7, data = $8 WHERE tenant = $9 AND id = $10 AND status = $11 AND generation = $12
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		string(n.Status),
		n.Attempts,
		n.LastError,
		n.DueAt,
		n.FinishedAt,
		n.LeaseOwner,
		n.Ref,
		string(n.Data),
		n.Tenant,
		n.ID,
		string(from),
		generation,
	)
}

// HurryNotifications makes waiting retries of a channel due now.
func (t *tx) HurryNotifications(channel string) error {
	return t.write(`UPDATE notification SET due_at = $1
WHERE tenant = $2 AND channel = $3 AND status = 'queued' AND attempts > 0 AND due_at > $1`, t.Now(), t.tenant, channel)
}

// ProbeNotification makes the oldest waiting retry due now, and takes one of its attempts back.
func (t *tx) ProbeNotification(channel string, since time.Time) error {
	return t.write(`UPDATE notification SET due_at = $1, attempts = attempts - 1
WHERE tenant = $2 AND id = (SELECT id FROM notification WHERE tenant = $2 AND channel = $3
  AND due_at > $1 AND status = 'queued' AND attempts > 0 AND created_at > $4 ORDER BY created_at, id LIMIT 1)
AND status = 'queued' AND attempts > 0`, t.Now(), t.tenant, channel, since)
}

// LockChannelState inserts the row if it is missing, and locks it.
func (t *tx) LockChannelState(channel string) (s *gatehouse.ChannelState, err error) {
	err = t.write(
		`INSERT INTO channel_state (tenant, channel, failures, last_error) VALUES ($1, $2, 0, '')
ON CONFLICT DO NOTHING`,
		t.tenant,
		channel,
	)
	if err != nil {
		return nil, err
	}
	err = t.lockAndRead([]query{ask(selectChannelState+` AND channel = $2 FOR NO KEY UPDATE`,
		func(r *row) (err error) { s, err = shared.ScanChannelState(r); return err }, t.tenant, channel)})
	if err == nil && s == nil {
		err = gatehouse.ErrNotFound
	}
	return s, err
}

// PutChannelState writes a locked state.
func (t *tx) PutChannelState(s *gatehouse.ChannelState) error {
	if err := t.checkTenant(s.Tenant); err != nil {
		return err
	}
	minutes, err := shared.EncodeJSON(&s.Minutes)
	if err != nil {
		return err
	}
	return t.write(
		`
WITH w AS (
  UPDATE channel_state SET failures = $1, failing_since = $2, flaky = $3, minutes = $4, off_at = $5,
  last_error = $6, last_ok_at = $7
  WHERE tenant = $8 AND channel = $9
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		s.Failures,
		s.FailingSince,
		s.Flaky,
		minutes,
		s.OffAt,
		s.LastError,
		s.LastOKAt,
		s.Tenant,
		s.Channel,
	)
}

// PurgeNotifications deletes notifications that finished long ago. It skips rows that another
// process is deleting.
func (t *tx) PurgeNotifications(olderThan time.Time, limit int) (int, error) {
	defer t.useAllTenants()()
	n, err := t.number(
		`WITH old AS MATERIALIZED (SELECT tenant, id FROM notification WHERE finished_at < $1 LIMIT $2
FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM notification n USING old WHERE n.tenant = old.tenant AND n.id = old.id RETURNING 1)
SELECT count(*) FROM d`,
		olderThan,
		limit,
	)
	t.wrote = t.wrote || n > 0
	return int(n), err
}
