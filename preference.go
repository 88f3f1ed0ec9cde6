package gatehouse

import (
	"context"
	"slices"
	"time"
)

// MessageTopic groups the kinds of messages that a person can mute on a channel.
type MessageTopic string

// The topics.
const (
	// TopicQuestions: an approval waits for the person.
	TopicQuestions MessageTopic = "questions"
	// TopicReminders: an approval still waits for the person.
	TopicReminders MessageTopic = "reminders"
	// TopicOutcomes: how the person's requests ended.
	TopicOutcomes MessageTopic = "outcomes"
	// TopicDigests: one message that replaces many.
	TopicDigests MessageTopic = "digests"
	// TopicAlerts: a push or a channel needs a person.
	TopicAlerts MessageTopic = "alerts"
)

// MessageTopics lists the topics.
func MessageTopics() []MessageTopic {
	return []MessageTopic{TopicQuestions, TopicReminders, TopicOutcomes, TopicDigests, TopicAlerts}
}

// SortTopics returns the known topics of a list in the order of [MessageTopics], each
// once.
func SortTopics(list []MessageTopic) []MessageTopic {
	return slices.DeleteFunc(MessageTopics(), func(t MessageTopic) bool { return !slices.Contains(list, t) })
}

// Vital topics reach a person on at least one channel, whatever their preferences.
func (t MessageTopic) Vital() bool { return t == TopicQuestions || t == TopicAlerts }

// Topic is the topic of the kind; "" for a kind that cannot be muted.
func (k NotificationKind) Topic() MessageTopic {
	switch k {
	case NotifyAsked, NotifyEscalated:
		return TopicQuestions
	case NotifyReminded:
		return TopicReminders
	case NotifyDecided, NotifyExpired:
		return TopicOutcomes
	case NotifyDigest:
		return TopicDigests
	case NotifyDeadLetter, NotifyUnknown, NotifyChannelFailing:
		return TopicAlerts
	}
	return ""
}

// Preference is the messages that a person does not want on a channel, and the hours without
// messages.
type Preference struct {
	Tenant      string `json:"-"`
	PrincipalID string `json:"-"`
	// Channel is the configured name.
	Channel string `json:"channel"`
	// Kind is the channel's kind, such as email. Reaches says that the channel has an
	// address of the person.
	Kind    string `json:"kind"`
	Reaches bool   `json:"reaches"`
	// Muted are the topics that are not sent, in the order of [MessageTopics].
	Muted []MessageTopic `json:"muted"`
	// Quiet are the person's quiet hours on the channel, nil for none. A question
	// waits for at most half of the time that is left to answer it.
	Quiet *QuietHours `json:"quiet"`
	// ChangedAt is nil until somebody sets the preference.
	ChangedAt *time.Time `json:"changed_at"`
}

// Mutes reports whether the preference mutes a topic.
func (p *Preference) Mutes(t MessageTopic) bool { return slices.Contains(p.Muted, t) }

// PreferenceChange replaces a person's preference for a channel.
type PreferenceChange struct {
	// Channel is the configured name.
	Channel string `json:"channel"`
	// Muted replaces the muted topics; empty mutes none.
	Muted []MessageTopic `json:"muted,omitempty"`
	// Quiet replaces the quiet hours; nil for none.
	Quiet *QuietHours `json:"quiet,omitempty"`
}

// Validate checks the change, and puts the topics in order.
func (c *PreferenceChange) Validate() error {
	var v Violations
	if c.Channel == "" {
		v.Add("/channel", "must not be empty")
	}
	known := MessageTopics()
	for _, t := range c.Muted {
		if !slices.Contains(known, t) {
			v.Add("/muted", "contains %s, which is not a topic; the topics are questions, reminders, outcomes, digests "+
				"and alerts", Quote(string(t)))
		}
	}
	c.Muted = SortTopics(c.Muted)
	if c.Quiet != nil {
		if _, err := c.Quiet.Read(); err != nil {
			v.Add("/quiet", "%s", err.Error())
		}
	}
	return v.Err()
}

// PreferenceService lets people choose their own messages.
type PreferenceService interface {
	// ListPreferences returns the caller's preference for each channel of the tenant
	// that sends to persons.
	ListPreferences(ctx context.Context) ([]*Preference, error)
	// SetPreference replaces the caller's preference for a channel. Questions and
	// alerts can be muted only while another channel that reaches the caller keeps
	// them.
	SetPreference(ctx context.Context, c PreferenceChange) (*Preference, error)
}

// UnsubscribePath is the page of the links in digests.
const UnsubscribePath = "/unsubscribe"

// Unsubscription is the subject of a link in a digest: the digests that a person gets on
// a channel.
type Unsubscription struct {
	Person, Channel string
	// Off says that the person gets no digests on the channel.
	Off bool
}

// UnsubscribeService serves the links in digests. The token is the only proof; a
// wrong token is bad_token, and an old one link_expired.
type UnsubscribeService interface {
	// FindUnsubscription changes nothing.
	FindUnsubscription(ctx context.Context, token string) (*Unsubscription, error)
	// Unsubscribe mutes digests on the channel, and nothing else.
	Unsubscribe(ctx context.Context, token string) (*Unsubscription, error)
}

// PreferenceReader finds preferences.
type PreferenceReader interface {
	// ListPreferences returns the stored preferences of a principal, or, with "", of
	// the whole tenant, sorted by principal and channel. Kind and Reaches are not stored.
	ListPreferences(principal string) ([]*Preference, error)
}

// PreferenceWriter writes preferences.
type PreferenceWriter interface {
	// PutPreference stores a preference; ChangedAt must be set. It replaces the one of
	// the same principal and channel.
	PutPreference(p *Preference) error
}
