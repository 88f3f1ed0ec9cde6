package console

import (
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// timeSpan is a list's filter by time, in UTC. The parameters since and until each name a minute or a
// day; the span includes both.
type timeSpan struct {
	since, until string
	// From and To are the span itself, To exclusive. They are zero without a bound.
	From, To time.Time
}

// readTimeSpan reads the parameters. A time that cannot be read is an error: a page must not show
// everything to a person who asked for one day.
func readTimeSpan(values url.Values) (s timeSpan, err error) {
	if s.From, _, err = readFormTime(values, "since"); err != nil {
		return s, err
	}
	to, unit, err := readFormTime(values, "until")
	if err != nil {
		return s, err
	}
	if !s.From.IsZero() {
		s.since = s.From.Format(formTime)
	}
	if !to.IsZero() {
		s.To = to.Add(unit)
		s.until = s.To.Add(-time.Minute).Format(formTime)
	}
	return s, nil
}

// formTime is how browsers write a time into a form.
const formTime = "2006-01-02T15:04"

// readFormTime reads a parameter that names a minute or a day. It returns the start and the length of
// that minute or day.
func readFormTime(values url.Values, name string) (time.Time, time.Duration, error) {
	text := strings.TrimSpace(values.Get(name))
	if text == "" {
		return time.Time{}, 0, nil
	}
	if t, err := time.Parse(formTime, text); err == nil {
		return t, time.Minute, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, 24 * time.Hour, nil
	}
	return time.Time{}, 0, gatehouse.E(gatehouse.CodeInvalid,
		"%s is a time in UTC such as 2026-11-27T04:00, or a day such as 2026-11-27", name)
}

func (s timeSpan) empty() bool { return s.From.IsZero() && s.To.IsZero() }

// has reports whether a time is in the span.
func (s timeSpan) has(t time.Time) bool {
	return !t.Before(s.From) && (s.To.IsZero() || t.Before(s.To))
}

// set adds the span to URL parameters.
func (s timeSpan) set(v url.Values) {
	if s.since != "" {
		v.Set("since", s.since)
	}
	if s.until != "" {
		v.Set("until", s.until)
	}
}
