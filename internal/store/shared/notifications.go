package shared

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// ScanNotification reads a notification, in the order of the table's columns.
func ScanNotification(r Row) (*gatehouse.Notification, error) {
	return &gatehouse.Notification{
		Tenant: r.Text(), ID: r.Text(), CreatedAt: r.Time(), Kind: gatehouse.NotificationKind(r.Text()),
		ActionID: r.Text(), Entry: r.Int(), Channel: r.Text(), Recipient: r.Text(),
		Status: gatehouse.NotificationStatus(r.Text()), Attempts: int(r.Int()), LastError: r.Text(),
		DueAt: r.TimePtr(), FinishedAt: r.TimePtr(), Generation: int(r.Int()), LeaseOwner: r.Text(), Ref: r.Text(),
		Data: gatehouse.JSON(r.Text()),
	}, nil
}

// scanNamed reads a notification and then the name of its recipient.
func scanNamed(r Row) (*gatehouse.Notification, error) {
	n, err := ScanNotification(r)
	n.RecipientName = r.Text()
	return n, err
}

// LogPosition returns the number of the next log entry to process, -1 before the first MoveLogPosition.
func (t Reads) LogPosition() (int64, error) {
	next := int64(-1)
	err := t.Each(`SELECT next FROM notification_position WHERE tenant = $1`,
		func(r Row) error { next = r.Int(); return nil }, t.Tenant())
	return next, err
}

// MoveLogPosition moves the position; ErrConflict if another process has moved it.
func (t Writes) MoveLogPosition(from, to int64) error {
	if from < 0 {
		return t.Write(`INSERT INTO notification_position (tenant, next) VALUES ($1, $2)`, t.Tenant(), to)
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE notification_position SET next = $1 WHERE tenant = $2 AND next = $3`, to, t.Tenant(), from)
}

// FindNotification finds a notification by id.
func (t Reads) FindNotification(id string) (*gatehouse.Notification, error) {
	return find(t, scanNamed, `
SELECT n.tenant, n.id, n.created_at, n.kind, n.action_id, n.entry, n.channel, n.recipient, n.status, n.attempts,
  n.last_error, n.due_at, n.finished_at, n.generation, n.lease_owner, n.ref, n.data, coalesce(p.name, '')
FROM notification n LEFT JOIN principal p ON p.tenant = n.tenant AND p.id = n.recipient
WHERE n.tenant = $1 AND n.id = $2`, t.Tenant(), id)
}

// ListNotifications lists notifications, newest first.
func (t Reads) ListNotifications(
	f gatehouse.NotificationFilter,
) (gatehouse.Page[*gatehouse.Notification], error) {
	l := listing{
		kind: KindNotifications, cursor: f.Cursor, first: MaxText, limit: f.Limit,
		filter: []string{t.Tenant(), string(f.Status), f.Channel, f.ActionID},
	}
	var since *time.Time
	if !f.FinishedSince.IsZero() {
		since = &f.FinishedSince
		l.filter = append(l.filter, since.UTC().Format(time.RFC3339Nano))
	}
	return page(t, l, scanNamed, func(n *gatehouse.Notification) string { return n.ID }, `
SELECT n.tenant, n.id, n.created_at, n.kind, n.action_id, n.entry, n.channel, n.recipient, n.status, n.attempts,
  n.last_error, n.due_at, n.finished_at, n.generation, n.lease_owner, n.ref, n.data, coalesce(p.name, '')
FROM notification n LEFT JOIN principal p ON p.tenant = n.tenant AND p.id = n.recipient
WHERE n.tenant = $1 AND n.id < $2 AND ($4 = '' OR n.status = $4) AND ($5 = '' OR n.channel = $5)
  AND ($6 = '' OR n.action_id = $6) AND (CAST($7 AS bigint) IS NULL OR n.finished_at >= $7)
ORDER BY n.id DESC LIMIT $3`, string(f.Status), f.Channel, f.ActionID, since)
}

// RecentNotifications counts the notifications to a recipient after since, except muted ones, and finds the
// recipient's digest that is queued and was not attempted yet.
func (t Reads) RecentNotifications(
	channel, recipient string, since time.Time,
) (count int, digest *gatehouse.Notification, err error) {
	count, err = number(t, `
SELECT count(*) FROM notification
WHERE tenant = $1 AND channel = $2 AND recipient = $3 AND created_at > $4 AND status <> 'muted'`,
		t.Tenant(), channel, recipient, since)
	if err != nil {
		return 0, nil, err
	}
	digest, err = OrNone(find(t, scanNamed, `
SELECT n.tenant, n.id, n.created_at, n.kind, n.action_id, n.entry, n.channel, n.recipient, n.status, n.attempts,
  n.last_error, n.due_at, n.finished_at, n.generation, n.lease_owner, n.ref, n.data, coalesce(p.name, '')
FROM notification n LEFT JOIN principal p ON p.tenant = n.tenant AND p.id = n.recipient
WHERE n.tenant = $1 AND n.channel = $2 AND n.recipient = $3 AND n.kind = 'digest' AND n.status = 'queued'
  AND n.attempts = 0
ORDER BY n.id DESC LIMIT 1`, t.Tenant(), channel, recipient))
	return count, digest, err
}

// OpenNotifications counts the unfinished notifications of all tenants.
func (t Reads) OpenNotifications() (int, error) {
	defer t.AllTenants()()
	return number(t, `SELECT count(*) FROM notification WHERE due_at IS NOT NULL`)
}

// NextNotificationAt returns the earliest due time of a channel.
func (t Reads) NextNotificationAt(channel string) (time.Time, error) {
	defer t.AllTenants()()
	return timeOrZero(t, `SELECT min(due_at) FROM notification WHERE channel = $1 AND due_at IS NOT NULL`, channel)
}

// InsertNotifications stores notifications one by one.
func (t Writes) InsertNotifications(all []*gatehouse.Notification) error {
	for _, n := range all {
		if err := t.Owns(n.Tenant); err != nil {
			return err
		}
	}
	for _, n := range all {
		err := t.Write(`
INSERT INTO notification (tenant, id, created_at, kind, action_id, entry, channel, recipient, status, attempts,
  last_error, due_at, finished_at, generation, lease_owner, ref, data)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
			n.Tenant, n.ID, n.CreatedAt, string(n.Kind), n.ActionID, n.Entry, n.Channel, n.Recipient,
			string(n.Status), n.Attempts, n.LastError, n.DueAt, n.FinishedAt, n.Generation, n.LeaseOwner, n.Ref,
			string(n.Data))
		if err != nil {
			return err
		}
	}
	return nil
}

// UpdateNotification writes the mutable fields; ErrConflict unless the stored status is from and the stored
// generation is generation.
func (t Writes) UpdateNotification(
	n *gatehouse.Notification, from gatehouse.NotificationStatus, generation int,
) error {
	if err := t.Owns(n.Tenant); err != nil {
		return err
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE notification SET status = $1, attempts = $2, last_error = $3, due_at = $4, finished_at = $5,
  lease_owner = $6, ref = $7, data = $8
WHERE tenant = $9 AND id = $10 AND status = $11 AND generation = $12`,
		string(n.Status), n.Attempts, n.LastError, n.DueAt, n.FinishedAt, n.LeaseOwner, n.Ref, string(n.Data),
		n.Tenant, n.ID, string(from), generation)
}

// HurryNotifications makes waiting retries of a channel due now.
func (t Writes) HurryNotifications(channel string) error {
	return t.Write(`
UPDATE notification SET due_at = $1
WHERE tenant = $2 AND channel = $3 AND status = 'queued' AND attempts > 0 AND due_at > $1`,
		t.Now(), t.Tenant(), channel)
}
