package notify

import (
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// failingAfter is the number of consecutive failures after which a channel counts as failing.
	failingAfter = 3
	// The share of failures counts the first attempts of messages within flakyWithin. With at least
	// flakyLeast of them, a channel is flaky if more than one in flakyAbove failed. It recovers when at
	// most one in steadyBelow failed: the gap keeps the state from changing back and forth.
	flakyWithin = 15 * time.Minute
	flakyLeast  = 20
	flakyAbove  = 10
	steadyBelow = 20
	// offAfter is how long a webhook may fail without a success before it is switched off.
	offAfter = 5 * 24 * time.Hour
)

// counted reports whether outcomes count for the share of failures. While a channel is down they
// do not count; otherwise it would be flaky as soon as it has recovered.
func counted(s *gatehouse.ChannelState) bool {
	return s.OffAt == nil && (s.FailingSince == nil || s.Flaky)
}

// count adds a message's first outcome to the current minute, and forgets old minutes.
func count(s *gatehouse.ChannelState, now time.Time, failed bool) {
	minute := now.Unix() / 60
	s.Minutes = recent(s, now)
	if last := len(s.Minutes) - 1; last < 0 || s.Minutes[last].Minute < minute {
		s.Minutes = append(s.Minutes, gatehouse.ChannelMinute{Minute: minute})
	}
	m := &s.Minutes[len(s.Minutes)-1]
	m.Tried++
	if failed {
		m.Failed++
	}
}

// recent are the minutes within flakyWithin.
func recent(s *gatehouse.ChannelState, now time.Time) []gatehouse.ChannelMinute {
	after := now.Add(-flakyWithin).Unix() / 60
	return slices.DeleteFunc(slices.Clone(s.Minutes), func(m gatehouse.ChannelMinute) bool { return m.Minute <= after })
}

// share returns how many messages were tried recently, and how many of them failed.
func share(s *gatehouse.ChannelState, now time.Time) (tried, failed int) {
	for _, m := range recent(s, now) {
		tried, failed = tried+m.Tried, failed+m.Failed
	}
	return tried, failed
}

// endsFailure reports whether a success ends the state of a channel that fails or is off.
func endsFailure(s *gatehouse.ChannelState, now time.Time) bool {
	if !s.Flaky || s.OffAt != nil {
		return true
	}
	tried, failed := share(s, now)
	return failed*steadyBelow <= tried
}

// applyFailure changes the state of a channel after a failure. It returns the event to report, "" for
// none, and its reason.
func applyFailure(s *gatehouse.ChannelState, c *Configured, now time.Time, gone bool) (event, why string) {
	if s.OffAt != nil {
		return "", ""
	}
	tried, failed := share(s, now)
	switch {
	case gone:
		s.OffAt = &now
		return "channel.off", s.LastError
	case s.FailingSince != nil && c.Kind() == "webhook" && !c.Trait().Callback &&
		now.Sub(*s.FailingSince) >= offAfter && (s.LastOKAt == nil || now.Sub(*s.LastOKAt) >= offAfter):
		s.OffAt = &now
		return "channel.off", "no success for 5 days; the last error: " + s.LastError
	case s.FailingSince != nil:
	case s.Failures >= failingAfter:
		s.FailingSince = &now
		return "channel.failing", s.LastError
	case tried >= flakyLeast && failed*flakyAbove > tried:
		s.FailingSince, s.Flaky = &now, true
		return "channel.failing", fmt.Sprintf("%d of %d messages in %d minutes failed; the last error: %s",
			failed, tried, int(flakyWithin.Minutes()), s.LastError)
	}
	return "", ""
}
