package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	selectNotification = `SELECT ` + shared.NotificationColumns + `, coalesce(p.name, '')
FROM notification n LEFT JOIN principal p ON p.tenant = n.tenant AND p.id = n.recipient WHERE n.tenant = ?1 AND `
)

// LogPosition is -1 before the first MoveLogPosition.
func (t *readTx) LogPosition() (int64, error) {
	next := int64(-1)
	err := t.each(`SELECT next FROM notification_position WHERE tenant = ?1`,
		func(r *stmt) error { next = r.Int(); return nil }, t.tenant)
	return next, err
}

// MoveLogPosition is refused when another caller has moved the position.
func (t *tx) MoveLogPosition(from, to int64) error {
	if from < 0 {
		_, err := t.exec(`INSERT INTO notification_position (tenant, next) VALUES (?1, ?2)`, t.tenant, to)
		return err
	}
	return t.guarded(`UPDATE notification_position SET next = ?1 WHERE tenant = ?2 AND next = ?3`, to, t.tenant, from)
}

// FindNotification finds by id.
func (t *readTx) FindNotification(id string) (n *gatehouse.Notification, err error) {
	err = t.one(selectNotification+`n.id = ?2`, func(r *stmt) error { n = shared.ScanNamed(r); return nil }, t.tenant,
		id)
	return n, err
}

// ListNotifications lists newest first.
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
	sql := selectNotification + `n.id < ?2 AND (?3 = '' OR n.status = ?3) AND (?4 = '' OR n.channel = ?4)
AND (?5 = '' OR n.action_id = ?5) AND (?7 IS NULL OR n.finished_at >= ?7) ORDER BY n.id DESC LIMIT ?6`
	err = t.each(sql, func(r *stmt) error {
		page.Items = append(page.Items, shared.ScanNamed(r))
		return nil
	}, t.tenant, before, string(f.Status), f.Channel, f.ActionID, limit+1, since)
	return shared.Finish(page, limit, func(n *gatehouse.Notification) shared.Cursor { return shared.Cursor{ID: n.ID} },
		shared.KindNotifications, filter...), err
}

// RecentNotifications counts the recent messages and finds the open digest.
func (t *readTx) RecentNotifications(
	channel, recipient string, since time.Time,
) (count int, digest *gatehouse.Notification, err error) {
	n, err := t.number(`SELECT count(*) FROM notification
WHERE tenant = ?1 AND channel = ?2 AND recipient = ?3 AND created_at > ?4 AND status <> 'muted'`, t.tenant, channel, recipient, since)
	if err != nil {
		return 0, nil, err
	}
	err = t.each(selectNotification+`n.channel = ?2 AND n.recipient = ?3 AND n.kind = 'digest' AND n.status = 'queued'
AND n.attempts = 0 ORDER BY n.id DESC LIMIT 1`, func(r *stmt) error { digest = shared.ScanNamed(r); return nil }, t.tenant,
		channel, recipient)
	return int(n), digest, err
}

// ChannelStates lists by channel.
func (t *readTx) ChannelStates() (list []*gatehouse.ChannelState, err error) {
	err = t.each(selectChannelState+` ORDER BY channel`,
		func(r *stmt) error {
			s, err := shared.ScanChannelState(r)
			list = append(list, s)
			return err
		}, t.tenant)
	return list, err
}

const selectChannelState = `SELECT tenant, channel, failures, failing_since, flaky, minutes, off_at, last_error, last_ok_at
FROM channel_state WHERE tenant = ?1`

// OpenNotifications counts the messages that wait or are being sent.
func (t *readTx) OpenNotifications() (int, error) {
	n, err := t.number(`SELECT count(*) FROM notification WHERE due_at IS NOT NULL`)
	return int(n), err
}

// NextNotificationAt returns the earliest due time of a channel.
func (t *readTx) NextNotificationAt(channel string) (next time.Time, err error) {
	err = t.each(`SELECT min(due_at) FROM notification WHERE channel = ?1 AND due_at IS NOT NULL`, func(r *stmt) error {
		if at := r.TimePtr(); at != nil {
			next = *at
		}
		return nil
	}, channel)
	return next, err
}

// InsertNotifications stores them one by one.
func (t *tx) InsertNotifications(list []*gatehouse.Notification) error {
	for _, x := range list {
		if err := t.owns(x.Tenant); err != nil {
			return err
		}
	}
	for _, n := range list {
		_, err := t.exec(
			`INSERT INTO notification (tenant, id, created_at, kind, action_id, entry, channel, recipient, status,
attempts,
last_error, due_at, finished_at, generation, lease_owner, ref, data)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)`,
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

const claimNotifications = `UPDATE notification AS n
SET status = 'sent', attempts = n.attempts + 1, generation = n.generation + 1, lease_owner = ?1, due_at = ?2
WHERE (n.tenant, n.id) IN (SELECT tenant, id FROM notification INDEXED BY notification_due
  WHERE channel = ?3 AND due_at IS NOT NULL AND due_at <= ?4 ORDER BY due_at LIMIT ?5)
RETURNING tenant, id, created_at, kind, action_id, entry, channel, recipient, status, attempts,
last_error, due_at, finished_at, generation, lease_owner, ref, data`

// ClaimNotifications claims due messages of all tenants; no two callers get the
// same one.
func (t *tx) ClaimNotifications(
	channel, owner string,
	lease time.Duration,
	limit int,
) (list []*gatehouse.Notification, err error) {
	err = t.each(claimNotifications, func(r *stmt) error {
		list = append(list,
			shared.ScanNotification(r))
		return nil
	},
		owner, t.at.Add(lease), channel, t.at, limit)
	return list, err
}

// UpdateNotification writes the mutable fields, guarded by status and
// generation.
func (t *tx) UpdateNotification(n *gatehouse.Notification, from gatehouse.NotificationStatus, generation int) error {
	if err := t.owns(n.Tenant); err != nil {
		return err
	}
	return t.guarded(`UPDATE notification SET status = ?, attempts = ?, last_error = ?, due_at = ?, finished_at = ?,
lease_owner = ?, ref = ?, data = ? WHERE tenant = ? AND id = ? AND status = ? AND generation = ?`,
		string(n.Status), n.Attempts, n.LastError, n.DueAt, n.FinishedAt, n.LeaseOwner, n.Ref, string(n.Data),
		n.Tenant, n.ID, string(from), generation)
}

// HurryNotifications makes messages that wait for a retry due now.
func (t *tx) HurryNotifications(channel string) error {
	_, err := t.exec(`UPDATE notification SET due_at = ?1
WHERE tenant = ?2 AND channel = ?3 AND status = 'queued' AND attempts > 0 AND due_at > ?1`, t.at, t.tenant, channel)
	return err
}

// ProbeNotification takes the oldest message that was created after since and
// waits for a retry, makes it due now, and subtracts one attempt.
func (t *tx) ProbeNotification(channel string, since time.Time) error {
	_, err := t.exec(`UPDATE notification SET due_at = ?1, attempts = attempts - 1
WHERE tenant = ?2 AND id = (SELECT id FROM notification INDEXED BY notification_due WHERE tenant = ?2 AND channel = ?3
  AND due_at > ?1 AND status = 'queued' AND attempts > 0 AND created_at > ?4 ORDER BY created_at, id LIMIT 1)`,
		t.at, t.tenant, channel, since)
	return err
}

// LockChannelState creates the row when it is missing; the writer's transaction
// is the lock.
func (t *tx) LockChannelState(channel string) (s *gatehouse.ChannelState, err error) {
	_, err = t.exec(
		`INSERT INTO channel_state (tenant, channel, failures, last_error) VALUES (?, ?, 0, '') ON CONFLICT DO NOTHING`,
		t.tenant,
		channel,
	)
	if err != nil {
		return nil, err
	}
	err = t.one(
		selectChannelState+` AND channel = ?2`,
		func(r *stmt) (err error) { s, err = shared.ScanChannelState(r); return err },
		t.tenant,
		channel,
	)
	return s, err
}

// PutChannelState writes a state that the transaction has locked.
func (t *tx) PutChannelState(s *gatehouse.ChannelState) error {
	if err := t.owns(s.Tenant); err != nil {
		return err
	}
	minutes, err := shared.EncodeJSON(&s.Minutes)
	if err != nil {
		return err
	}
	return t.guarded(
		`UPDATE channel_state SET failures = ?, failing_since = ?, flaky = ?, minutes = ?, off_at = ?, last_error = ?,
last_ok_at = ?
WHERE tenant = ? AND channel = ?`,
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

// PurgeNotifications deletes messages that finished long ago.
func (t *tx) PurgeNotifications(olderThan time.Time, limit int) (int, error) {
	return t.exec(
		`DELETE FROM notification WHERE (tenant, id) IN (SELECT tenant, id
FROM notification INDEXED BY notification_finished
WHERE finished_at IS NOT NULL AND finished_at < ?1 LIMIT ?2)`,
		olderThan,
		limit,
	)
}
