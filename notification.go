package gatehouse

import (
	"context"
	"time"
)

// NotificationKind is what a message tells.
type NotificationKind string

// The kinds of notification.
const (
	// NotifyAsked: an approval waits for the recipient.
	NotifyAsked NotificationKind = "asked"
	// NotifyEscalated: a later stage of an approval asks the recipient as well.
	NotifyEscalated NotificationKind = "escalated"
	// NotifyReminded: an approval still waits for the recipient.
	NotifyReminded NotificationKind = "reminded"
	// NotifyDecided: people, or a withdrawal, settled what the recipient asked for.
	NotifyDecided NotificationKind = "decided"
	// NotifyExpired: nobody decided in time.
	NotifyExpired NotificationKind = "expired"
	// NotifyDeadLetter and NotifyUnknown: a push failed for good, or its outcome is
	// not known. Operators act on it.
	NotifyDeadLetter NotificationKind = "dead_letter"
	NotifyUnknown    NotificationKind = "unknown"
	// NotifyDigest stands for many messages of which there were too many at once.
	NotifyDigest NotificationKind = "digest"
	// NotifyChannelFailing: another channel has failed three times in a row.
	NotifyChannelFailing NotificationKind = "channel_failing"
	// NotifyDelegated: somebody made or ended a delegation from or to the recipient.
	NotifyDelegated NotificationKind = "delegated"
	// NotifyTest: an administrator tries a channel.
	NotifyTest NotificationKind = "test"
)

// Asks reports whether the message asks its recipient to decide.
func (k NotificationKind) Asks() bool {
	return k == NotifyAsked || k == NotifyEscalated || k == NotifyReminded
}

// NotificationStatus is how far a message came.
type NotificationStatus string

// The states of a notification.
const (
	NotificationQueued NotificationStatus = "queued"
	// NotificationSent: a notifier calls the channel, and its answer is not known yet.
	NotificationSent NotificationStatus = "sent"
	// NotificationAccepted: the next hop took it, as an SMTP server does. Nothing is
	// known of what follows.
	NotificationAccepted NotificationStatus = "accepted"
	// NotificationDelivered: the channel says that the message is where it is read.
	NotificationDelivered NotificationStatus = "delivered"
	// NotificationFailed: refused for good, or out of retries.
	NotificationFailed NotificationStatus = "failed"
	// NotificationMuted: not sent, since there was nothing left to tell; LastError
	// says why.
	NotificationMuted NotificationStatus = "muted"
)

// NotificationStatuses lists the states.
func NotificationStatuses() []NotificationStatus {
	return []NotificationStatus{
		NotificationQueued, NotificationSent, NotificationAccepted, NotificationDelivered, NotificationFailed,
		NotificationMuted,
	}
}

// Notification is one message to one recipient over one channel.
type Notification struct {
	ID        string           `json:"id"`
	Tenant    string           `json:"tenant"`
	CreatedAt time.Time        `json:"created_at"`
	Kind      NotificationKind `json:"kind"`
	// ActionID is the action that it tells of, "" for none.
	ActionID string `json:"action_id,omitempty"`
	// Entry is the index of the log entry that it tells, -1 for none.
	Entry int64 `json:"entry"`
	// Channel is the configured name, Recipient the id of a principal; "" where the
	// channel is a place of its own.
	Channel       string             `json:"channel"`
	Recipient     string             `json:"recipient,omitempty"`
	RecipientName string             `json:"recipient_name,omitempty"`
	Status        NotificationStatus `json:"status"`
	// Attempts counts the calls of the channel.
	Attempts  int    `json:"attempts"`
	LastError string `json:"last_error,omitempty"`
	// DueAt is when a queued message is sent, or the lease of a sent one ends; nil
	// when nothing more is done.
	DueAt      *time.Time `json:"due_at"`
	FinishedAt *time.Time `json:"finished_at"`
	// Generation fences stale holders: each claim raises it by one.
	Generation int    `json:"-"`
	LeaseOwner string `json:"-"`
	// Ref is what the channel calls the message, "" where it does not say.
	Ref string `json:"-"`
	// Data is what the kind tells besides: see [NotificationFigures]; "" for none.
	Data JSON `json:"data,omitempty"`
}

// Finished reports whether nothing more is done for the message.
func (n *Notification) Finished() bool {
	return n.Status != NotificationQueued && n.Status != NotificationSent
}

// NotificationFigures is the Data of a digest: how many messages it stands for.
type NotificationFigures struct {
	Since time.Time `json:"since"`
	Total int       `json:"total"`
	// ByKind, ByType and ByRisk count by kind, action type, and level such as "L3".
	ByKind map[string]int `json:"by_kind"`
	ByType map[string]int `json:"by_type"`
	ByRisk map[string]int `json:"by_risk"`
	// First are the first actions, at most [MaxDigestActions].
	First []string `json:"first"`
}

// MaxDigestActions bounds the actions that a digest names, MaxDigestTypes the
// action types that it counts by name.
const (
	MaxDigestActions = 10
	MaxDigestTypes   = 20
)

// ChannelState is how a channel fares in a tenant.
type ChannelState struct {
	Tenant  string `json:"tenant"`
	Channel string `json:"channel"`
	// Failures counts those in a row; 0 after a success.
	Failures int `json:"failures"`
	// FailingSince is when the third failure in a row came; nil while it works.
	FailingSince *time.Time `json:"failing_since"`
	// OffAt is when the receiver said that it is gone; nothing is sent to it until
	// an administrator tests the channel with success.
	OffAt     *time.Time `json:"off_at"`
	LastError string     `json:"last_error,omitempty"`
	LastOKAt  *time.Time `json:"last_ok_at"`
	// Kind is that of the configuration; "" where the channel is not configured.
	Kind string `json:"kind,omitempty"`
}

// NotificationFilter selects notifications of one tenant, the newest first.
type NotificationFilter struct {
	// Status, Channel and ActionID select; "" is any.
	Status   NotificationStatus
	Channel  string
	ActionID string
	Limit    int
	Cursor   string
}

// NotificationService shows operators and administrators what was told, and to
// whom.
type NotificationService interface {
	// ListNotifications returns a page, newest first.
	ListNotifications(ctx context.Context, f NotificationFilter) (Page[*Notification], error)
	// RetryNotification queues a failed or queued one to be sent now. One of another
	// state is an [Error] with code invalid_state.
	RetryNotification(ctx context.Context, id string) (*Notification, error)
	// ListChannels returns the configured channels of the tenant with their states.
	ListChannels(ctx context.Context) ([]*ChannelState, error)
	// TestChannel queues a test message to the caller, or to the channel's place,
	// and waits a moment for what becomes of it.
	TestChannel(ctx context.Context, channel string) (*Notification, error)
}

// NotificationReader finds notifications.
type NotificationReader interface {
	// LogPosition returns the index of the first entry of the tenant's log that was
	// not looked at for whom to tell; -1 when none was.
	LogPosition(tenant string) (int64, error)
	FindNotification(tenant, id string) (*Notification, error)
	// ListNotifications returns a page, newest first.
	ListNotifications(tenant string, f NotificationFilter) (Page[*Notification], error)
	// RecentNotifications counts the messages of one recipient and channel created
	// after since, and returns the digest that is still open, nil for none.
	RecentNotifications(tenant, channel, recipient string, since time.Time) (int, *Notification, error)
	// ChannelStates returns those of a tenant by channel; one that was never used
	// has none.
	ChannelStates(tenant string) ([]*ChannelState, error)
	// OpenNotifications counts those that are not finished, over all tenants.
	OpenNotifications() (int, error)
	// NextNotificationAt returns when the next one of a channel is due, over all
	// tenants; zero for none.
	NextNotificationAt(channel string) (time.Time, error)
}

// NotificationWriter writes them.
type NotificationWriter interface {
	// MoveLogPosition is guarded by the position as it was read.
	MoveLogPosition(tenant string, from, to int64) error
	// InsertNotifications stores rows of one tenant. The same kind, channel and
	// recipient of one entry twice is ErrConflict.
	InsertNotifications(list []*Notification) error
	// ClaimNotifications moves up to limit that are due on a channel, or whose lease
	// has ended, to sent: it sets owner and lease end, and raises attempts and
	// generation. Nobody else claims the same row.
	ClaimNotifications(channel, owner string, lease time.Duration, limit int) ([]*Notification, error)
	// UpdateNotification writes what can change, guarded by status and generation.
	UpdateNotification(n *Notification, from NotificationStatus, generation int) error
	// HurryNotifications makes the queued ones of a tenant's channel that failed
	// before due now.
	HurryNotifications(tenant, channel string) error
	// LockChannelState returns the state, locked; one that is not there is new.
	LockChannelState(tenant, channel string) (*ChannelState, error)
	PutChannelState(s *ChannelState) error
	// PurgeNotifications deletes up to limit that finished before olderThan, over
	// all tenants.
	PurgeNotifications(olderThan time.Time, limit int) (int, error)
}
