package notify

import (
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// preferences are the stored preferences, by person and channel. People without an entry get
// everything.
type preferences map[[2]string]*preference

type preference struct {
	*gatehouse.Preference
	quiet *gatehouse.Quiet
}

// preferencesOf reads the preferences of a person; those of all people with "".
func preferencesOf(tx gatehouse.PreferenceReader, person string) (preferences, error) {
	list, err := tx.ListPreferences(person)
	all := make(preferences, len(list))
	for _, p := range list {
		one := &preference{Preference: p}
		if p.Quiet != nil {
			// The hours were checked when they were stored. If the system has lost the time zone since, the
			// messages do not wait.
			one.quiet, _ = p.Quiet.Read()
		}
		all[[2]string{p.PrincipalID, p.Channel}] = one
	}
	return all, err
}

// mute reports whether a person has muted a topic on a channel.
func (p preferences) mute(person, channel string, topic gatehouse.MessageTopic) bool {
	one := p[[2]string{person, channel}]
	return one != nil && topic != "" && one.Mutes(topic)
}

// quiet are the person's own quiet hours on a channel, nil for none.
func (p preferences) quiet(person, channel string) *gatehouse.Quiet {
	if one := p[[2]string{person, channel}]; one != nil {
		return one.quiet
	}
	return nil
}

// mutes reports whether a message is not sent to a person on a channel because of their preferences.
// A vital message is sent anyway, unless the person gets it on another of its channels.
func (s *fanOut) mutes(
	kind gatehouse.NotificationKind, c *Configured, p *gatehouse.Principal, channels []*Configured,
) (bool, error) {
	topic := kind.Topic()
	if !s.preferences.mute(p.ID, c.Name, topic) {
		return false, nil
	}
	if !topic.Vital() {
		return true, nil
	}
	for _, other := range channels {
		if !other.Trait().Personal || !s.routes.works(other.Name) || s.preferences.mute(p.ID, other.Name, topic) {
			continue
		}
		if reached, err := s.reaches(other, p); err != nil || reached {
			return reached, err
		}
	}
	return false, nil
}

// mute finishes a row that is not sent because of the recipient's preferences.
func (s *fanOut) mute(row *gatehouse.Notification) *gatehouse.Notification {
	row.Status, row.DueAt, row.FinishedAt, row.LastError = gatehouse.NotificationMuted, nil, &s.now, unwanted(row.Kind)
	return row
}

func unwanted(kind gatehouse.NotificationKind) string {
	return fmt.Sprintf("the recipient has muted %s on this channel", kind.Topic())
}

// dueAt is when a message is sent: at once, or after the quiet hours of the channel and of the
// recipient. A question waits for at most half of the time that is left to answer it.
func dueAt(now time.Time, kind gatehouse.NotificationKind, a *gatehouse.Action, hours ...*gatehouse.Quiet) time.Time {
	due := afterAll(now, hours...)
	if !kind.Asks() || a.Approval == nil {
		return due
	}
	if half := now.Add(a.Approval.ExpiresAt.Sub(now) / 2); half.Before(due) {
		return half
	}
	return due
}

// afterAll returns the first time that is in none of the quiet hours. If together they cover the
// whole day, it is the end of one of them.
func afterAll(at time.Time, hours ...*gatehouse.Quiet) time.Time {
	for range 2 {
		for _, q := range hours {
			at = q.After(at)
		}
	}
	return at
}
