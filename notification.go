package gatehouse

import (
	"context"
	"time"
)

// NotificationKind is the subject of a message.
type NotificationKind string

// The kinds of notification.
const (
	// NotifyAsked: an approval waits for the recipient.
	NotifyAsked NotificationKind = "asked"
	// NotifyEscalated: a later stage of an approval asks the recipient as well.
	NotifyEscalated NotificationKind = "escalated"
	// NotifyReminded: an approval still waits for the recipient: at a reminder, when its extension begins,
	// when it is assigned to the recipient, and when the recipient's question is answered.
	NotifyReminded NotificationKind = "reminded"
	// NotifyDecided: people approved or rejected a proposal of the recipient or for the recipient, or it
	// was withdrawn. A shared place learns this too.
	NotifyDecided NotificationKind = "decided"
	// NotifyExpired: the question was not settled in time, and the action expired or the policy rejected it.
	NotifyExpired NotificationKind = "expired"
	// NotifyDeadLetter and NotifyUnknown: a push failed permanently, or its outcome is
	// unknown. Operators have to act.
	NotifyDeadLetter NotificationKind = "dead_letter"
	NotifyUnknown    NotificationKind = "unknown"
	// NotifyDigest replaces many messages that came at once.
	NotifyDigest NotificationKind = "digest"
	// NotifyChannelFailing: another channel fails, or is off.
	NotifyChannelFailing NotificationKind = "channel_failing"
	// NotifyDelegated: somebody made or ended a delegation from or to the recipient.
	NotifyDelegated NotificationKind = "delegated"
	// NotifyTest: a test of a channel or a device, or the weekly test of a channel without messages.
	NotifyTest NotificationKind = "test"
	// NotifyCallbackDecided and NotifyCallbackFinished: the callback of a proposal, once
	// when its action is decided and once when it is finished.
	NotifyCallbackDecided  NotificationKind = "callback_decided"
	NotifyCallbackFinished NotificationKind = "callback_finished"
	// NotifyHeartbeat: a task of Step Functions still waits. The message is queued again and again.
	NotifyHeartbeat NotificationKind = "callback_heartbeat"
)

// Asks reports whether the message asks its recipient to decide.
func (k NotificationKind) Asks() bool {
	return k == NotifyAsked || k == NotifyEscalated || k == NotifyReminded
}

// Calls reports whether the message is a proposal's own callback.
func (k NotificationKind) Calls() bool {
	return k == NotifyCallbackDecided || k == NotifyCallbackFinished || k == NotifyHeartbeat
}

// NotificationStatus is the state of a message.
type NotificationStatus string

// The states of a notification.
const (
	NotificationQueued NotificationStatus = "queued"
	// NotificationSent: a notifier is calling the channel, and the answer is not
	// known yet.
	NotificationSent NotificationStatus = "sent"
	// NotificationAccepted: the next hop, such as an SMTP server, took the message.
	// What happens after that is unknown.
	NotificationAccepted NotificationStatus = "accepted"
	// NotificationDelivered: the channel confirms that the message reached its
	// destination.
	NotificationDelivered NotificationStatus = "delivered"
	// NotificationFailed: the channel refused it permanently, the retries are used up, or
	// the mail came back. A test is not retried.
	NotificationFailed NotificationStatus = "failed"
	// NotificationMuted: not sent, since the message was no longer needed, or the
	// recipient does not want it or cannot be reached; LastError says why.
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
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// CreatedAt is when the message was queued.
	CreatedAt time.Time `json:"created_at"`
	// Kind is the subject, such as asked.
	Kind NotificationKind `json:"kind"`
	// ActionID is the action that the message is about, "" for none.
	ActionID string `json:"action_id,omitempty"`
	// Entry is the index of the log entry that the message reports, -1 for none.
	Entry int64 `json:"entry"`
	// Channel is the configured name. Recipient is the id of a principal, "" for a
	// channel that is a shared place, such as a chat channel, and for a callback.
	Channel   string `json:"channel"`
	Recipient string `json:"recipient,omitempty"`
	// RecipientName is the name of Recipient; the store adds it to what it reads.
	RecipientName string `json:"recipient_name,omitempty"`
	// Status is the state of the delivery.
	Status NotificationStatus `json:"status"`
	// Attempts counts the claims of the message since it was queued or retried, without probes of the channel.
	Attempts int `json:"attempts"`
	// LastError is the last failure, or why a message was muted.
	LastError string `json:"last_error,omitempty"`
	// DueAt is when a queued message is sent, or when the lease of a sent one ends;
	// nil when the message is finished.
	DueAt *time.Time `json:"due_at"`
	// FinishedAt is nil until the message is in a final state.
	FinishedAt *time.Time `json:"finished_at"`
	// Generation fences stale holders: each claim raises it by one.
	Generation int `json:"-"`
	// LeaseOwner names the notifier that holds the lease, "" for none.
	LeaseOwner string `json:"-"`
	// Ref is the channel's id for the message, "" when the channel gives none.
	Ref string `json:"-"`
	// Data holds further data of the kind: see [NotificationFigures]; "" for none.
	Data JSON `json:"data,omitempty"`
}

// Finished reports whether the message is in a final state.
func (n *Notification) Finished() bool {
	return n.Status != NotificationQueued && n.Status != NotificationSent
}

// NotificationFigures is the Data of a digest: the messages that it replaces.
type NotificationFigures struct {
	// Since is when the digest began, Total the number of messages.
	Since time.Time `json:"since"`
	Total int       `json:"total"`
	// ByKind, ByType and ByRisk count by kind, action type, and level such as "L3".
	ByKind map[string]int `json:"by_kind"`
	ByType map[string]int `json:"by_type"`
	ByRisk map[string]int `json:"by_risk"`
	// First holds the ids of the first actions, at most [MaxDigestActions].
	First []string `json:"first"`
}

// MaxDigestActions bounds the actions that a digest names, MaxDigestTypes the
// action types that it counts by name.
const (
	MaxDigestActions = 10
	MaxDigestTypes   = 20
)

// ChannelState is the state of a channel in a tenant.
type ChannelState struct {
	Tenant string `json:"tenant"`
	// Channel is the configured name.
	Channel string `json:"channel"`
	// Failures counts consecutive failures; 0 after a success.
	Failures int `json:"failures"`
	// FailingSince is the time of the third consecutive failure, or the time at which
	// more than a tenth of the messages of the last 15 minutes (at least 20 messages) had
	// failed; nil while the channel works, and if the receiver said that it is gone.
	FailingSince *time.Time `json:"failing_since"`
	// Flaky is true when the cause of FailingSince is the share of failed messages: a
	// single success does not end the state.
	Flaky bool `json:"flaky,omitempty"`
	// Minutes counts the messages of the last 15 minutes, oldest first.
	Minutes []ChannelMinute `json:"-"`
	// OffAt is when the receiver said that it is gone, or when a webhook had failed for
	// 5 days. No new messages are queued for it until one succeeds, such as an
	// administrator's test.
	OffAt *time.Time `json:"off_at"`
	// LastError is the last failure, "" once the channel works.
	LastError string `json:"last_error,omitempty"`
	// LastOKAt is the time of the last success, nil for none.
	LastOKAt *time.Time `json:"last_ok_at"`
	// Kind is the configured kind of channel; "" when the channel is not
	// configured.
	Kind string `json:"kind,omitempty"`
}

// ChannelMinute counts the messages of a channel with the first attempt in one minute,
// and how many of these failed.
type ChannelMinute struct {
	// Minute is in minutes since 1970.
	Minute int64 `json:"minute"`
	// Tried counts the messages with their first attempt in the minute.
	Tried int `json:"tried"`
	// Failed counts those of them that failed.
	Failed int `json:"failed"`
}

// Word is the channel's state: off, failing or works.
func (s *ChannelState) Word() string {
	switch {
	case s.OffAt != nil:
		return "off"
	case s.FailingSince != nil:
		return "failing"
	}
	return "works"
}

// MaxBounce bounds a returned mail, in bytes. The end of a longer one can be cut,
// since the report comes before the returned mail.
const MaxBounce = 256 << 10

// BounceResult is the effect of a returned mail.
type BounceResult string

// The results.
const (
	// BounceFailed: the notification has failed.
	BounceFailed BounceResult = "failed"
	// BounceDelayed: a mail server still tries; the notification's LastError says so.
	BounceDelayed BounceResult = "delayed"
	// BounceIgnored: nothing changed, since the mail reports no failure, or the
	// notification is no longer accepted, was deleted, or went to another address.
	BounceIgnored BounceResult = "ignored"
)

// Bounce is the answer to a returned mail.
type Bounce struct {
	Result BounceResult `json:"result"`
}

// BounceService takes mails that mail servers return.
type BounceService interface {
	// ReceiveBounce takes one mail (RFC 5322). The context has no caller: the MAC in the
	// recipient address authenticates the mail, and a missing or wrong MAC is an error with code
	// bad_token. With recipient "", the address is that of the header X-Original-To, Delivered-To
	// or To. The same mail again changes nothing. After an error with code busy, send the mail
	// again later.
	ReceiveBounce(ctx context.Context, recipient string, mail []byte) (*Bounce, error)
}

// NotificationFilter selects notifications of one tenant, newest first.
type NotificationFilter struct {
	// Status, Channel and ActionID each select by equality; "" matches any.
	Status   NotificationStatus
	Channel  string
	ActionID string
	// FinishedSince, unless zero, selects messages that finished at this time or later.
	FinishedSince time.Time
	// Limit is at most [MaxLimit]: a greater limit means MaxLimit. 0 means [DefaultLimit].
	Limit int
	// Cursor is the NextCursor of the page before, "" for the first.
	Cursor string
}

// RetryRequest selects failed messages to be sent again.
type RetryRequest struct {
	// Channel "" means all channels.
	Channel string `json:"channel,omitempty"`
	// Since selects messages that failed at this time or later.
	Since time.Time `json:"since"`
	// DryRun nil means true.
	DryRun *bool `json:"dry_run,omitempty"`
	// Limit is 1 to [MaxLimit]; 0 means 100.
	Limit int `json:"limit,omitempty"`
	// Cursor is the NextCursor of the answer before, with the same channel and time.
	Cursor string `json:"cursor,omitempty"`
}

// Validate returns an [Error] with code invalid, and sets the default limit.
func (r *RetryRequest) Validate() error {
	var v Violations
	if r.Since.IsZero() {
		v.Add("/since", "must be a time such as 2026-01-02T15:04:05Z")
	}
	if r.Limit == 0 {
		r.Limit = 100
	}
	if r.Limit < 1 || r.Limit > MaxLimit {
		v.Add("/limit", "must be 1 to %d", MaxLimit)
	}
	return v.Err()
}

// RetryAnswer lists the messages that would be, or were, queued again, the newest first.
type RetryAnswer struct {
	// DryRun is true when nothing was queued.
	DryRun bool `json:"dry_run"`
	// Items are the selected messages, newest first.
	Items []*Notification `json:"items"`
	// NextCursor is "" when no further message is selected.
	NextCursor string `json:"next_cursor"`
}

// NotificationService shows operators, auditors and administrators which messages were
// sent, and to whom.
type NotificationService interface {
	// ListNotifications returns a page, newest first.
	ListNotifications(ctx context.Context, f NotificationFilter) (Page[*Notification], error)
	// RetryNotification sends a failed or queued notification now. Any other status
	// is an [Error] with code too_late.
	RetryNotification(ctx context.Context, id string) (*Notification, error)
	// RetryNotifications sends the selected failed notifications now; a dry run lists
	// them. A repeated call finds those beyond the first call's limit, and those that have failed
	// again.
	RetryNotifications(ctx context.Context, r RetryRequest) (*RetryAnswer, error)
	// ListChannels returns the configured channels of the tenant with their states.
	ListChannels(ctx context.Context) ([]*ChannelState, error)
	// TestChannel queues a test message, to the caller unless the channel is a
	// shared place, and waits briefly for its outcome.
	TestChannel(ctx context.Context, channel string) (*Notification, error)
}

// NotificationReader finds notifications.
type NotificationReader interface {
	// LogPosition returns the index of the first entry of the tenant's log that has
	// not been scanned for notifications; -1 when none was ever scanned.
	LogPosition() (int64, error)
	FindNotification(id string) (*Notification, error)
	// ListNotifications returns a page, newest first.
	ListNotifications(f NotificationFilter) (Page[*Notification], error)
	// RecentNotifications counts the messages to one recipient over one channel
	// created after since, without muted ones, and returns the digest that is still open, nil for none.
	RecentNotifications(channel, recipient string, since time.Time) (int, *Notification, error)
	// ChannelStates returns the tenant's states by channel; a channel that was
	// never used has none.
	ChannelStates() ([]*ChannelState, error)
}

// NotificationWriter writes notifications.
type NotificationWriter interface {
	// MoveLogPosition moves the position, guarded by the position as it was read.
	MoveLogPosition(from, to int64) error
	// InsertNotifications stores rows of one tenant. A second row of the same kind,
	// channel and recipient for one log entry fails with ErrConflict.
	InsertNotifications(list []*Notification) error
	// UpdateNotification writes the mutable columns, guarded by status and
	// generation.
	UpdateNotification(n *Notification, from NotificationStatus, generation int) error
	// HurryNotifications makes due now the queued notifications of a tenant's channel
	// that have failed before.
	HurryNotifications(channel string) error
	// ProbeNotification makes one queued notification of a tenant's channel due now: the
	// oldest that failed before and was created after since. It subtracts one from the
	// notification's attempts, so that the probe does not use one up.
	ProbeNotification(channel string, since time.Time) error
	// LockChannelState returns the state, locked; a new state when there is none.
	LockChannelState(channel string) (*ChannelState, error)
	PutChannelState(s *ChannelState) error
}
